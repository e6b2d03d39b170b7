import pytest

from boardlift_compiler.find_coarse_lookups import find_coarse_lookups
from boardlift_compiler.parse_reports import NodeQuantization
from boardlift_compiler.parse_tables import NodeRow

LONG = "/time/embedding/with/a/rather/long/path/of/modules/in/it/Sin"


def row(node: str, device: str, dtype: str) -> NodeRow:
    return NodeRow(node, device, 0, "HzLut2Layer", 0.99998, "26", dtype)


@pytest.mark.parametrize(
    ("operator", "angle", "device", "dtype", "found"),
    [
        ("Sin", 26.0, "BPU", "int8", True),
        ("Cos", -26.0, "BPU", "int8", True),
        ("Sin", 24.0, "BPU", "int8", False),
        ("Sin", 99.0, "BPU", "int16", False),
        ("Sin", 999.0, "BPU", "int16", True),
        ("Sin", 999.0, "CPU", "float", False),
        ("Tanh", 999.0, "BPU", "int8", False),
    ],
)
@pytest.mark.parametrize(("name", "printed"), [("/Sin", "/Sin"), (LONG, "..." + LONG[-47:])])
def test_only_wide_angles_on_the_bpu(
    name: str, printed: str, operator: str, angle: float, device: str, dtype: str, found: bool
) -> None:
    quantization = {name: NodeQuantization(operator, ("x",), ("y",), ((angle,),), 0.99998)}
    findings = find_coarse_lookups([row(printed, device, dtype)], quantization)
    assert [f.code for f in findings] == ["LOOKUP_TOO_COARSE"] * found
    assert all(f.subject == name and f.severity == "error" for f in findings)


def test_a_node_without_thresholds_is_left_alone() -> None:
    quantization = {"/Sin": NodeQuantization("Sin", ("x",), ("y",), (), None)}
    assert find_coarse_lookups([row("/Sin", "BPU", "int8")], quantization) == []
