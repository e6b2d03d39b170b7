"""Real, trained, public models through the downgrade: same outputs in onnxruntime."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from boardlift_transform.opset import downgrade

FOLDER = Path(__file__).parents[5] / "shared" / "models"
FILES = sorted(FOLDER.glob("*/*.onnx"))

pytestmark = pytest.mark.shared


def samples(name: str) -> list[dict[str, np.ndarray]]:
    spec = importlib.util.spec_from_file_location("gen_inputs", FOLDER / "gen_inputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [module.make_inputs(name, k) for k in (0, 1)]


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def test_all_seventeen_are_there():
    assert len(FILES) == 17


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_real_model_gives_the_same_at_opset_11(path):
    model = onnx.load(path)
    result = downgrade(model)
    assert max(o.version for o in result.opset_import if o.domain == "") <= 11
    assert result.ir_version <= 7
    assert [p.key for p in result.metadata_props] == [p.key for p in model.metadata_props]
    before, after = session(model), session(result)
    for feeds in samples(path.parent.name):
        for want, got in zip(before.run(None, feeds), after.run(None, feeds), strict=True):
            assert want.dtype == got.dtype
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
