"""Are the inputs and outputs of a model things that a board can be fed and read: numbers in tensors?"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from boardlift_transform.edit_graph import source_of
from boardlift_transform.refusal import Refusal


def refuse_map(value: onnx.ValueInfoProto, makers: dict[str, str]) -> None:
    """Refuse a value that holds dictionaries, as classical classifiers are exported.

    Args:
        value: An input or output as the file describes it.
        makers: Node name by output name.

    Raises:
        Refusal: VALUE_TYPE.
    """
    kind = value.type
    while kind.HasField("sequence_type") or kind.HasField("optional_type"):
        kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind.optional_type.elem_type
    if kind.HasField("map_type"):
        node = makers.get(value.name, "")
        raise Refusal(
            "VALUE_TYPE",
            f"output {value.name} holds dictionaries" + (f", made by node {node}" if node else "") + ": a board gives"
            " tensors only",
            remedy="convert without ZipMap: skl2onnx.to_onnx(model, x, options={'zipmap': False})",
            metadata={"value": value.name, "node": node},
        )


def check_ends(model: ir.Model) -> None:
    """Refuse inputs and outputs that are no tensors of numbers, and outputs that are inputs or each other.

    Raises:
        Refusal: VALUE_TYPE, OUTPUT_IS_INPUT or OUTPUT_TWICE.
    """
    graph = model.graph
    for what, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            kind = "" if value.type is None or isinstance(value.type, ir.TensorType) else type(value.type).__name__
            if not kind and value.dtype == ir.DataType.STRING:
                kind = "text"
            if kind:
                raise Refusal(
                    "VALUE_TYPE",
                    f"{what} {value.name} is no tensor of numbers ({kind})",
                    remedy="export with one tensor per value" if what == "input" else
                    "ask only for other outputs, or export with one tensor per value",
                    metadata={"value": value.name or ""},
                )  # fmt: skip
    for value in graph.outputs:
        if value.is_graph_input():
            raise Refusal(
                "OUTPUT_IS_INPUT",
                f"output {value.name} is the input {value.name} itself: nothing is computed for it",
                remedy=f"ask only for the other outputs, and keep {value.name} on the caller's side",
                metadata={"value": value.name or ""},
            )
        source = source_of(value)
        if source is not value and source.is_graph_output():
            raise Refusal(
                "OUTPUT_TWICE",
                f"outputs {source.name} and {value.name} are the same value, which the tool does not take",
                remedy=f"ask only for one of them: leave {value.name} out",
                metadata={"value": value.name or ""},
            )
