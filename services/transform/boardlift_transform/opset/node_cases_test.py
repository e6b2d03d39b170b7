"""Every node test that ships inside onnx, through the downgrade to each target: legal, runs, same numbers.

The truth is the shipped output, where onnxruntime reproduces it from the case as it is. A refusal is counted; a result
that is illegal, doesn't run or differs is a silent failure, of which there may be none.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

from boardlift_transform.opset import InvalidModel, UnsupportedDowngrade, downgrade
from boardlift_transform.opset.check_result import ResultNotLegal, misfits, walk
from boardlift_transform.opset.schemas import PLAIN


def runtime_faults() -> tuple:
    """Every exception class of onnxruntime."""
    module = onnxruntime.capi.onnxruntime_pybind11_state
    return tuple(v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Exception))


PARAMETERS = frozenset(
    {"axes", "shape", "pads", "constant_value", "split", "starts", "ends", "steps", "repeats", "scales", "sizes", "roi"}
    | {"K", "depth", "values", "axis", "dft_length", "frame_step", "frame_length", "image_shape", "block_shape", "size"}
    | {"min", "max", "ratio", "training_mode", "k", "start", "limit", "delta", "num_mel_bins", "sample_rate"}
    | {"lower_edge_hertz", "upper_edge_hertz", "output_shape"}
)
"""Formal inputs that any exported model holds as constants."""
BEYOND = ("Sequence", "Optional", "String", "Regex", "ImageDecoder", "BitCast")
"""Operators on types that no tensor pipeline holds: may be refused, may not go wrong."""
FAULTS = (RuntimeError, ValueError, TypeError, NotImplementedError, KeyError, IndexError, *runtime_faults())
SILENT = ("illegal", "does not run", "wrong numbers")


@dataclass(frozen=True)
class NodeCase:
    name: str
    model: ModelProto
    inputs: list
    outputs: list

    @property
    def opset(self) -> int:
        return max((o.version for o in self.model.opset_import if o.domain == ""), default=0)


def as_array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value if isinstance(value, list) or value is None else np.asarray(value)


def frozen(model: ModelProto, values: list) -> tuple[ModelProto, list]:
    """The case with its parameters turned into initialisers."""
    names = set()
    for node in model.graph.node:
        try:
            formal = onnx.defs.get_schema(node.op_type, node.domain).inputs
        except onnx.defs.SchemaError:
            continue
        names |= {i for i, f in zip(node.input, formal, strict=False) if f.name in PARAMETERS}
    copy = ModelProto()
    copy.CopyFrom(model)
    keep, fed = [], []
    for info, value in zip(model.graph.input, values, strict=False):
        if info.name in names and isinstance(value, np.ndarray) and value.dtype.kind != "O":
            copy.graph.initializer.append(
                numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), info.name)
            )
        else:
            keep.append(info)
            fed.append(value)
    del copy.graph.input[:]
    copy.graph.input.extend(keep)
    return copy, fed


def load(freeze: bool) -> list[NodeCase]:
    cases = []
    for test in load_model_tests(kind="node"):
        if test.model is None or not test.data_sets:
            continue
        inputs, outputs = ([as_array(v) for v in side] for side in test.data_sets[0])
        model = test.model
        if freeze:
            model, inputs = frozen(model, inputs)
        cases.append(NodeCase(test.name, model, inputs, outputs))
    return cases


def run(model: ModelProto, values: list) -> list:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    initial = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initial]
    feeds = {n: v for n, v in zip(names, values, strict=False) if v is not None}
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run([o.name for o in model.graph.output], feeds)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(model).run(None, feeds)  # no kernel for that type at that opset


def same(got: list, want: list) -> bool:
    if len(got) != len(want):
        return False
    for g, w in zip(got, want, strict=True):
        if isinstance(w, list):
            if not isinstance(g, list) or not same(g, w):
                return False
            continue
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape or (g.dtype != w.dtype and w.dtype.kind not in "OUS"):
            return False
        if w.dtype.kind in "fc":
            if not np.allclose(g.astype(np.float64), w.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
                return False
        elif not np.array_equal(g, w):
            return False
    return True


def holds(case: NodeCase) -> bool:
    """Whether the case itself runs here and gives the shipped outputs."""
    try:
        return same(run(case.model, case.inputs), case.outputs)
    except FAULTS:  # no truth to compare with
        return False


def is_beyond(model: ModelProto) -> bool:
    """Values of types that no target has, or operators of other domains."""
    nodes = list(walk(model.graph.node))
    if any(n.op_type.startswith(BEYOND) or "Sequence" in n.op_type or n.domain not in ("", "ai.onnx") for n in nodes):
        return True
    graph = model.graph
    if any(not v.type.HasField("tensor_type") for v in [*graph.input, *graph.output]):
        return True
    with_types = onnx.shape_inference.infer_shapes(model).graph
    kinds = {v.type.tensor_type.elem_type for g in ("input", "output", "value_info") for v in getattr(with_types, g)}
    kinds |= {a.i for n in nodes for a in n.attribute if a.name in ("to", "output_datatype", "softmax_precision")}
    return bool(kinds - PLAIN - {0}) or onnx.TensorProto.STRING in kinds


def verdict(case: NodeCase, target: int) -> str:
    try:
        result = downgrade(case.model, target)
    except (UnsupportedDowngrade, InvalidModel, ResultNotLegal) as why:
        assert str(why)
        return "refused"
    if result.ir_version > 7 or any(m for n in walk(result.graph.node) if n.domain == "" for m in misfits(n, target)):
        return "illegal"
    if [o.name for o in result.graph.output] != [o.name for o in case.model.graph.output]:
        return "illegal"
    onnx.checker.check_model(result, full_check=True)
    try:
        got = run(result, case.inputs)
    except FAULTS:
        return "does not run"
    return "right" if same(got, case.outputs) else "wrong numbers"


@pytest.fixture(scope="module")
def cases() -> dict[bool, list[NodeCase]]:
    onnxruntime.set_default_logger_severity(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {freeze: [c for c in load(freeze) if c.opset > 10 and holds(c)] for freeze in (True, False)}


def tally(cases: list[NodeCase], target: int) -> tuple[Counter, list[str], list[str]]:
    counts: Counter = Counter()
    silent, refused = [], []
    for case in cases:
        if case.opset <= target:
            continue
        beyond = is_beyond(case.model)
        found = verdict(case, target)
        counts[f"{found} (beyond)" if beyond else found] += 1
        if found in SILENT:
            silent.append(f"{case.name}: {found}")
        if found == "refused" and not beyond:
            refused.append(case.name)
    return counts, silent, refused


FLOORS = {13: (1190, 1), 11: (1496, 1), 10: (1491, 26)}
"""Target -> fewest cases that must come out right, most that may be refused, parameters frozen."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", FLOORS)
def test_shipped_node_cases_come_out_right(cases, target):
    counts, silent, refused = tally(cases[True], target)
    print(f"opset {target}: {dict(counts)}")
    assert silent == []
    assert counts["right"] >= FLOORS[target][0], dict(counts)
    assert len(refused) <= FLOORS[target][1], refused


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_parameters_made_at_run_time_are_right_or_refused(cases):
    counts, silent, _ = tally(cases[False], 11)
    print(f"opset 11, as shipped: {dict(counts)}")
    assert silent == []
    assert counts["right"] >= 1420, dict(counts)
