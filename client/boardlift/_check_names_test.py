from __future__ import annotations

import numpy as np
import pytest

from boardlift import Client, RunOptions, Variant
from boardlift.errors import InvalidInputError
from boardlift.models import InputFormat
from boardlift.testing import FakeServer

WRONG = {
    "INPUT_NOT_FOUND: The model has no input named UNKNOWN. Remedy: The inputs are obs.": {"freeze": {"UNKNOWN": 1}},
    "INPUT_NOT_FOUND: The model has no input named osb. Remedy: Did you mean obs?": {"input_shapes": {"osb": (1, 3)}},
    "OUTPUT_NOT_FOUND: A gate names the output act, .* The outputs are y, z": {"gates": ["cosine@act>=0.9"]},
    "OUTPUT_NOT_FOUND: A gate names the output y, .* The outputs are z": {
        "gates": ["cosine@y>=0.9"],
        "outputs": ("z",),
    },
}


@pytest.fixture
def two_outputs(tmp_path):
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    nodes = [onnx.helper.make_node(kind, ["obs"], [name]) for kind, name in (("Relu", "y"), ("Tanh", "z"))]
    graph = onnx.helper.make_graph(
        nodes, "g", [value("obs", 1, [1, 3])], [value("y", 1, [1, 3]), value("z", 1, [1, 3])]
    )
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize(("said", "fields"), WRONG.items())
def test_names_that_the_model_does_not_have_cost_no_job(two_outputs, said, fields):
    with FakeServer() as server, Client(server.address) as client:
        with pytest.raises(InvalidInputError, match=said):
            client.run(two_outputs, {"obs": np.ones((4, 3), np.float32)}, ["int8"], **fields)
        assert "CreateJob" not in server.calls


def test_names_of_the_compiled_model_and_of_inner_values_are_left_to_the_servers(two_outputs):
    forms = Variant("int8", inputs=(InputFormat("obs_4d", type_train="featuremap"),))
    with FakeServer() as server, Client(server.address) as client:
        samples = {"obs": np.ones((4, 3), np.float32)}
        job = client.run(two_outputs, samples, [forms], outputs=("inner",), gates=["cosine@inner>=0.9"])
        assert client.run(client.push_model(two_outputs), samples, ["int8"], freeze={"obs": 1.0}).id != job.id


def test_a_plan_refuses_what_a_job_would(two_outputs):
    with FakeServer() as server, Client(server.address) as client:
        model, data = client.push_model(two_outputs), client.push_data({"obs": np.ones((4, 3), np.float32)})
        assert (model.inputs, model.outputs) == (("obs",), ("y", "z"))
        with pytest.raises(InvalidInputError, match="INPUT_NOT_FOUND"):
            client.plan(model, data, ["int8"], RunOptions(freeze={"UNKNOWN": 1}))
