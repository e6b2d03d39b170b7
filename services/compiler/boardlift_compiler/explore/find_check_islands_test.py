from __future__ import annotations

from boardlift.v1 import compiler_pb2

from boardlift_compiler.explore.find_check_islands import islands_of_check
from boardlift_compiler.read_model import ModelSummary, Node


def chain(*names: str) -> ModelSummary:
    nodes = tuple(Node(n, n.title(), "", (f"t{k}",), (f"t{k + 1}",), {}) for k, n in enumerate(names))
    return ModelSummary(7, {"": 11}, "g", (), (), nodes, {})


def rows(*cells: tuple[str, str, int]) -> list[compiler_pb2.NodePlacement]:
    return [compiler_pb2.NodePlacement(node=n, device=d, subgraph=s, type=n.title()) for n, d, s in cells]


def test_islands_between_subgraphs_cost_a_handover_and_those_at_the_ends_none():
    model = chain("cast", "conv", "softmax", "gemm", "argmax")
    table = rows(("cast", "CPU", -1), ("conv", "BPU", 0), ("softmax", "CPU", -1), ("added", "CPU", -1),
                 ("gemm", "BPU", 1), ("argmax", "CPU", -1))  # fmt: skip
    found = islands_of_check(table, model)
    assert [i.names for i in found] == [("cast (Cast)",), ("softmax (Softmax)", "added (Added)"), ("argmax (Argmax)",)]
    assert [i.splits for i in found] == [False, True, False]
    assert [i.handover_us[0] > 0 for i in found] == [False, True, False]


def test_branches_that_the_table_lists_apart_are_one_island():
    nodes = (
        Node("experts", "Gemm", "", ("x",), ("e",), {}),
        Node("elu", "Elu", "", ("e",), ("f",), {}),
        Node("gate", "Gemm", "", ("x",), ("g",), {}),
        Node("softmax", "Softmax", "", ("g",), ("s",), {}),
        Node("mix", "Mul", "", ("f", "s"), ("y",), {}),
    )
    model = ModelSummary(7, {"": 11}, "g", (), (), nodes, {})
    table = rows(
        ("experts", "BPU", 0), ("elu", "CPU", -1), ("gate", "BPU", 0), ("softmax", "CPU", -1), ("mix", "BPU", 1)
    )
    assert [i.names for i in islands_of_check(table, model)] == [("elu (Elu)", "softmax (Softmax)")]


def test_a_model_that_is_all_on_the_bpu_has_none():
    assert islands_of_check(rows(("conv", "BPU", 0)), chain("conv")) == []
