"""Operators that no combination of older ones can express, refused by name."""

from __future__ import annotations

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step

SEQUENCE_OPERATORS = (
    "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
    "SplitToSequence", "ConcatFromSequence",
)  # fmt: skip
REFUSED = {
    ("ImageDecoder", 20): ("decodes image files, which nothing older can", "decode before the model"),
    ("BitCast", 26): ("reads the bits of one type as another, which nothing older can", "convert before the model"),
    ("StringConcat", 20): ("joins strings, which nothing older can", "prepare strings before the model"),
    ("StringSplit", 20): ("splits strings, which nothing older can", "prepare strings before the model"),
    ("RegexFullMatch", 20): ("matches strings, which nothing older can", "prepare strings before the model"),
    ("Optional", 15): ("makes an optional value, a type since opset 15", "make the value always present"),
    ("Optional", 28): ("makes an optional value, a type since opset 15", "make the value always present"),
    ("OptionalGetElement", 15): ("reads an optional value, a type since opset 15", "make the value always present"),
    ("OptionalGetElement", 18): ("reads an optional value, a type since opset 15", "make the value always present"),
    ("OptionalGetElement", 28): ("reads an optional value, a type since opset 15", "make the value always present"),
    ("OptionalHasElement", 15): ("asks for an optional value, a type since opset 15", "make the value always present"),
    ("OptionalHasElement", 18): ("asks for an optional value, a type since opset 15", "make the value always present"),
    ("OptionalHasElement", 28): ("asks for an optional value, a type since opset 15", "make the value always present"),
    **{
        (op, 11): ("works on sequences, a type since opset 11", "target opset 11 or above") for op in SEQUENCE_OPERATORS
    },
    ("Det", 11): ("is a determinant, which no older operator works out", "target opset 11 or above"),
    ("Unique", 11): ("finds distinct values, which no older operator does", "target opset 11 or above"),
}
"""(operator, version) -> reason, remedy."""


def refuse(step: Step) -> None:
    """Say why."""
    reason, remedy = REFUSED[(step.node.op_type, step.since)]
    raise NoForm(reason, remedy)


for _op, _version in REFUSED:
    adapter(_op, _version)(refuse)
