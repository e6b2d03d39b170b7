from dataclasses import replace

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.inspect import ModelSummary, summarise
from boardlift_transform.load_model import load_model
from boardlift_transform.passes import PASSES, PASSES_BY_ID
from boardlift_transform.plan import STEPS, Asked, plan
from boardlift_transform.request import Request
from boardlift_transform.targets import RDK_X5

ON_REQUEST_ONLY = {"dense-grouped-conv", "pin-batch"}


def _summary(*operators: str, functions: int = 0) -> ModelSummary:
    b = GraphBuilder(17)
    b.node("Relu", [b.input("x", [1, 4])], "y")
    b.output("y", [1, 4])
    found = summarise(load_model(b.model()).to_ir())
    return replace(found, operators={"Relu": 1, **dict.fromkeys(operators, 1)}, functions=functions)


def _ids(summary: ModelSummary, **asked: object) -> set[str]:
    return {step.id for step in plan(RDK_X5, summary, Request(**asked)).passes}  # type: ignore[arg-type]


def test_the_table_and_the_passes_name_each_other() -> None:
    assert {s.id for s in STEPS} <= set(PASSES_BY_ID)
    assert set(PASSES_BY_ID) - {s.id for s in STEPS} == ON_REQUEST_ONLY


def test_a_step_gives_only_parameters_that_its_pass_knows() -> None:
    asked = Asked(RDK_X5, _summary("RNN"), Request(outputs=["y"], frozen_inputs={"x": 1}))
    for step in STEPS:
        known = {p.name for p in PASSES_BY_ID[step.id].parameters}
        assert step.parameters(asked).keys() <= known, step.id


def test_what_depends_on_the_precision() -> None:
    int8, both, int16 = (_ids(_summary(), precision=p) for p in ("int8", "", "int16"))
    assert both - int8 == {"buffer-max-pool", "rows-to-channels", "split-wide-head"}
    assert int16 - both == {"keep-int16", "matmul-to-products", "shuffle-conv-transpose"}
    assert int8 < both < int16


def test_what_depends_on_the_operators() -> None:
    plain = _ids(_summary())
    assert _ids(_summary("RNN")) - plain == {"unroll-recurrent"}
    assert _ids(_summary("Loop")) - plain == {"unroll-loop", "if-to-where"}
    assert _ids(_summary("SplitToSequence")) - plain == {"replace-sequences"}
    stripped = {"expand-quantised", "unpack-weights", "strip-dynamic-quantisation", "strip-quantisation"}
    assert _ids(_summary("QuantizeLinear")) - plain == stripped
    assert _ids(_summary("com.microsoft::QGemm")) - plain == stripped | {"replace-foreign"}


def test_a_local_function_may_hold_anything() -> None:
    more = _ids(_summary(functions=1)) - _ids(_summary())
    assert {"inline-functions", "unroll-loop", "replace-sequences", "strip-quantisation", "replace-foreign"} <= more
    assert "unroll-recurrent" in more


def test_what_depends_on_the_target_and_the_request() -> None:
    bare = plan(replace(RDK_X5, wrap_io=False, wide_head_channels=0), _summary(), Request()).passes
    assert _ids(_summary()) - {s.id for s in bare} == {"wrap-inputs", "wrap-outputs", "split-wide-head"}
    more = _ids(_summary(), outputs=["y"], frozen_inputs={"x": 1}) - _ids(_summary())
    assert more == {"cut-outputs", "freeze-inputs"}
    assert "free-batch" not in _ids(_summary(), skip_passes=["free-batch"])


def test_the_passes_stand_in_the_plan_s_order() -> None:
    first = list(dict.fromkeys(s.id for s in STEPS))
    assert [p.id for p in PASSES if p.id not in ON_REQUEST_ONLY] == first
