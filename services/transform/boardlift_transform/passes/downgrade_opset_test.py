from boardlift_transform.build_test_models import elu_policy
from boardlift_transform.run_one_pass import run_one_pass


def test_opset_and_ir_version_reach_the_target() -> None:
    run = run_one_pass(elu_policy(), "downgrade-opset", {"opset": 11, "ir_version": 7})
    assert [o.version for o in run.model.opset_import if o.domain == ""] == [11]
    assert run.model.ir_version == 7
    assert run.max_rel == 0


def test_large_weights_come_back_unchanged() -> None:
    model = elu_policy()
    run = run_one_pass(model, "downgrade-opset")
    before = {w.name: w.raw_data for w in model.graph.initializer}
    after = {w.name: w.raw_data for w in run.model.graph.initializer}
    assert {k: after[k] for k in before if k in after} == before
    assert [i.name for i in run.model.graph.input] == ["obs"]
