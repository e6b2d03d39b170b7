from __future__ import annotations

import re
from pathlib import Path

import pytest

from boardlift_compiler.explore.suggest_remedies import (
    GROUPED_CONV,
    LAST_AXIS,
    LIFT,
    PASS_OF_TYPE,
    SHUFFLE,
    suggest_remedies,
)
from boardlift_compiler.read_model import ModelSummary, Node, Weight
from boardlift_compiler.spec import CalibrationSpec, CompileSpec

PASSES = Path(__file__).resolve().parents[3] / "transform/boardlift_transform/passes"


def model(*nodes: Node) -> ModelSummary:
    weights = {"w3": Weight("w3", "float32", (256, 256, 1)), "w2": Weight("w2", "float32", (8, 8, 3, 3))}
    weights["w4"] = Weight("w4", "float32", (256, 256, 1, 1))
    return ModelSummary(7, {"": 11}, "g", (), (), nodes, weights)


SOFTMAX = Node("soft", "Softmax", "", ("x",), ("y",), {"axis": 3})
GROUPED = Node("experts", "Conv", "", ("x", "w3"), ("y",), {"group": 8})
NEG = Node("neg", "Neg", "", ("x",), ("y",))


@pytest.mark.parametrize(
    ("node", "passes"),
    [
        (GROUPED, [LIFT, GROUPED_CONV]),
        (Node("g4", "Conv", "", ("x", "w4"), ("y",), {"group": 8}), [GROUPED_CONV]),
        (Node("c1", "Conv", "", ("x", "w3"), ("y",)), [LIFT]),
        (NEG, ["replace-neg"]),
        (SOFTMAX, []),
        (Node("s", "Softmax", "", ("x",), ("y",), {"axis": 1}), [LAST_AXIS]),
    ],
)
def test_pass_that_helps(node, passes):
    found = suggest_remedies([node.name], model(node), CompileSpec())
    assert [s.transform_pass for s in found if s.kind == "transform"] == passes


def test_softmax_gets_both_precisions_and_all_int16():
    names = [s.name for s in suggest_remedies(["soft"], model(SOFTMAX), CompileSpec())]
    assert names == ["softmax-int8", "softmax-int16", "int16", "run-on-bpu"]


def test_int16_is_not_suggested_to_who_has_it():
    spec = CompileSpec(calibration=CalibrationSpec(optimization=("set_all_nodes_int16",)))
    assert "int16" not in [s.name for s in suggest_remedies(["neg"], model(NEG), spec)]


def test_no_cpu_node_needs_no_remedy():
    assert suggest_remedies([], model(SOFTMAX), CompileSpec()) == []


@pytest.mark.parametrize(("block", "cpu", "passes"), [(3, [], [SHUFFLE]), (2, [], []), (3, ["shuffle"], [])])
def test_a_costly_node_on_the_bpu_gets_its_pass(block, cpu, passes):
    node = Node("shuffle", "DepthToSpace", "", ("x",), ("y",), {"blocksize": block})
    found = suggest_remedies(cpu, model(node), CompileSpec())
    assert [s.transform_pass for s in found if s.kind == "transform"] == passes
    assert all(s.nodes == ("shuffle",) for s in found)


def test_every_pass_that_is_named_exists():
    text = "\n".join(p.read_text(encoding="utf-8") for p in PASSES.glob("*.py") if not p.name.endswith("_test.py"))
    known = set(re.findall(r'\bid="([a-z0-9-]+)"', text))
    assert {*PASS_OF_TYPE.values(), GROUPED_CONV, LAST_AXIS, LIFT, SHUFFLE} <= known
