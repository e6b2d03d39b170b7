"""Protobuf messages as plain dicts for `--json` and reports: proto field names, numbers as numbers, enums as words.

Protobuf's own JSON mapping turns 64-bit numbers into texts and names into camelCase; people who read the proto or use
jq want neither.
"""

from __future__ import annotations

from datetime import timezone
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp


def message_to_plain(message: Message) -> Any:
    """Return a message as dicts, lists, texts and numbers; fields that are not set are left out."""
    if isinstance(message, Timestamp):
        return message.ToDatetime(tzinfo=timezone.utc).isoformat()
    if isinstance(message, Duration):
        return message.ToTimedelta().total_seconds()
    plain: dict[str, Any] = {}
    for field, value in message.ListFields():
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            plain[field.name] = {key: _plain(kind.fields_by_name["value"], item) for key, item in value.items()}
        elif isinstance(value, (Message, str, bytes, bool, int, float)):
            plain[field.name] = _plain(field, value)
        else:
            plain[field.name] = [_plain(field, item) for item in value]
    return plain


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return message_to_plain(value)
    if field.enum_type is not None:
        return _enum_word(field.enum_type, value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value


def _enum_word(enum: EnumDescriptor, number: int) -> str:
    """Return the value's name without the part that all values share."""
    if number not in enum.values_by_number:
        return "unknown"
    shared = enum.values[0].name.removesuffix("UNSPECIFIED")
    return str(enum.values_by_number[number].name.removeprefix(shared).lower())
