import numpy as np
import pytest
from boardlift.datasets.archive import Dataset
from onnx import TensorProto, helper

from boardlift_transform import Refusal
from boardlift_transform.load_model import LoadedModel, load_model
from boardlift_transform.prepare_dataset import prepare_dataset


def model() -> LoadedModel:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in ("a", "b", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "g", infos[:2], infos[2:])
    return load_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))


def samples(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)


def test_no_sample_is_on_both_sides_and_inputs_stay_together() -> None:
    a = np.repeat(samples(40), 2, axis=0)  # every sample twice
    made = prepare_dataset(model(), Dataset({"a": a, "b": a + 1}, {"provenance": {"log": "walk"}}), calibration=20)
    left, right = made.calibration.arrays, made.heldout.arrays
    assert (made.calibration.samples, made.heldout.samples) == (20, 20)
    assert not {row.tobytes() for row in left["a"]} & {row.tobytes() for row in right["a"]}
    assert all(np.array_equal(side["a"] + 1, side["b"]) for side in (left, right))
    assert made.heldout.document == {"provenance": {"log": "walk"}} and made.model.nodes == 1
    assert "DATASET_DUPLICATES" in {f.code for f in made.findings}


def test_an_input_that_is_frozen_needs_no_samples() -> None:
    data = Dataset({"a": samples(30)})
    with pytest.raises(Refusal) as caught:
        prepare_dataset(model(), data)
    assert caught.value.reason == "DATASET_INPUT_MISSING"
    assert set(prepare_dataset(model(), data, {"b"}).calibration.arrays) == {"a"}
