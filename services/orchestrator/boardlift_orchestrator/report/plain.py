"""Turn messages into plain JSON values: short words for kinds, numbers as numbers, ISO times. Pure."""

from __future__ import annotations

import math
from typing import Any, Final

from boardlift.v1 import toolchain_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

KINDS: Final = {
    toolchain_pb2.FIGURE_KIND_UNSPECIFIED: "unspecified",
    toolchain_pb2.FIGURE_KIND_MEASURED: "measured",
    toolchain_pb2.FIGURE_KIND_ESTIMATED: "estimated",
    toolchain_pb2.FIGURE_KIND_SIMULATED: "simulated",
}


def plain(message: Message | None, leave_out: tuple[str, ...] = ()) -> Any:
    """Return a message as a dict of all its fields; an absent sub-message is None.

    Args:
        message: Any of our messages.
        leave_out: Top-level fields to leave out.

    Returns:
        Nested dicts, lists, strings, numbers, booleans and None. A number that is not finite becomes a string.
    """
    if message is None:
        return None
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    if isinstance(message, Duration):
        return message.ToNanoseconds() / 1e9
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields if field.name not in leave_out}


def _value(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {str(key): _single(item, None) for key, item in sorted(value.items())}
    if _repeated(field):
        return [_single(item, field) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(value, field)


def _single(value: Any, field: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if field is not None and field.enum_type is not None:
        if field.enum_type.name == "FigureKind":
            return KINDS[value]
        return _short_word(field.enum_type, value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _short_word(enum: Any, number: int) -> str:
    """Return an enum value's name without its prefix, in lower case: OUTCOME_PASS -> pass."""
    name = enum.values_by_number[number].name
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return str(name.removeprefix(prefix).lower())


def _repeated(field: Any) -> bool:
    known = getattr(field, "is_repeated", None)
    return bool(known) if known is not None else field.label == FieldDescriptor.LABEL_REPEATED
