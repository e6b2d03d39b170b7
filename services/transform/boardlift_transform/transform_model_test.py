import numpy as np
import pytest

from boardlift_transform import Refusal, transform
from boardlift_transform.build_test_models import elu_policy


def test_policy_reaches_the_form_the_board_takes() -> None:
    result = transform(elu_policy(), target="rdk-x5", outputs=["actions"])
    assert [(o.domain, o.version) for o in result.model.opset_import] == [("", 11)]
    assert result.model.ir_version == 7
    entry, out = result.io_map
    assert (entry.before.name, entry.after.name, entry.after.shape) == ("obs", "obs_4d", (1, 1, 1, 225))
    assert (out.after.name, out.after.shape) == ("actions", (1, 12, 1, 1))
    assert result.proof.comparisons[0].max_abs < 1e-5 and result.proof.random_inputs
    assert result.proof.batch == "proven"
    assert "obs: dimension 0 (batch) = 1, taken as the batch" in result.assumptions


def test_new_nodes_name_the_pass_that_made_them() -> None:
    result = transform(elu_policy(), outputs=["actions"])
    made = {p.value for n in result.model.graph.node for p in n.metadata_props if p.key == "boardlift.pass"}
    assert "lift-to-4d" in made


def test_samples_take_the_place_of_random_inputs() -> None:
    samples = {"obs": np.random.default_rng(0).standard_normal((10, 225)).astype(np.float32)}
    result = transform(elu_policy(), outputs=["actions"], samples=samples)
    assert result.proof.comparisons[0].samples == 10 and not result.proof.random_inputs


@pytest.mark.parametrize("step", ["fold-constants", "prove-equivalence"])
def test_a_listener_that_raises_ends_the_work(step: str) -> None:
    told = []

    def listener(name: str, index: int, count: int) -> None:
        told.append((name, index))
        if name == step and index >= 2:
            raise KeyboardInterrupt

    samples = {"obs": np.zeros((50, 225), np.float32)}
    with pytest.raises(KeyboardInterrupt):
        transform(elu_policy(), outputs=["actions"], samples=samples, listener=listener)
    assert told[-1][0] == step and told[-1][1] < 10


def test_snippet_runs() -> None:
    from boardlift_transform.equivalence import Session

    result = transform(elu_policy(), outputs=["actions"])
    scope: dict[str, object] = {}
    exec(result.snippet, scope)  # noqa: S102 - the point of the test
    session = Session(result.model.SerializeToString())
    answer = scope["run_policy"](session.run, {"obs": np.zeros((1, 225))})  # type: ignore[operator]
    assert answer["actions"].shape == (1, 12)


def test_a_single_pass_leaves_the_rest_of_the_model_as_it_is() -> None:
    result = transform(elu_policy(opset=17), passes=["cut-outputs", "eliminate-dead"])
    assert result.model.opset_import[0].version == 17
    assert result.proof.passed and not result.findings


def test_one_pass_can_be_asked_for() -> None:
    result = transform(
        elu_policy(opset=11), passes=["fix-dynamic-dims", ("cut-outputs", {"outputs": ["value"]}), "fold-constants"]
    )
    assert [p.id for p in result.passes] == ["fix-dynamic-dims", "cut-outputs", "fold-constants"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "rdk-x9"}, "TARGET_UNKNOWN"),
        ({"outputs": ["nothing"]}, "OUTPUT_NOT_FOUND"),
        ({"passes": ["make-coffee"]}, "PASS_UNKNOWN"),
        ({"precision": "int4"}, "PRECISION_UNKNOWN"),
        ({"input_shapes": {"obs": [1, 5]}}, "INPUT_SHAPE_MISMATCH"),
        ({"samples": {"obs": np.zeros((3, 7), np.float32)}}, "DATASET_SHAPE"),
        ({"samples": {"x": np.zeros((3, 225), np.float32)}}, "DATASET_INPUT_MISSING"),
    ],
)
def test_refusals_are_named(options: dict[str, object], reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        transform(elu_policy(), **options)  # type: ignore[arg-type]
    assert caught.value.reason == reason
