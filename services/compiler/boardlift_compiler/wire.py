"""Read and write the protobuf wire format without a schema.

Two files need it: the user's ONNX (described before the tool sees it) and the compiled ``.bin`` (whose paths are
stripped). Both are untrusted or foreign, so no generated parser of theirs is imported; unknown fields survive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True)
class Field:
    """One field as it stands on the wire."""

    number: int
    """Field number, >= 1."""
    kind: int
    """Wire type: VARINT, FIXED64, BYTES or FIXED32."""
    value: int
    """The number of a VARINT; 0 otherwise."""
    data: memoryview
    """Payload of BYTES, FIXED32 and FIXED64; empty for a VARINT."""

    @property
    def text(self) -> str:
        """The payload as text; undecodable bytes become replacement characters."""
        return bytes(self.data).decode("utf-8", errors="replace")


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number at ``at`` and the position behind it.

    Raises:
        WireError: when the bytes end early or the number is longer than ten bytes.
    """
    result = 0
    for index in range(MAX_VARINT_BYTES):
        if at + index >= len(data):
            raise WireError("a number is cut off")
        byte = data[at + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return result, at + index + 1
    raise WireError("a number is longer than ten bytes")


def fields(data: memoryview | bytes) -> Iterator[Field]:
    """Yield the fields of one message in file order.

    Raises:
        WireError: when the bytes are no protobuf message.
    """
    view = memoryview(data)
    at = 0
    while at < len(view):
        key, at = read_varint(view, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("field number 0")
        if kind == VARINT:
            value, at = read_varint(view, at)
            yield Field(number, kind, value, view[:0])
            continue
        if kind == BYTES:
            size, at = read_varint(view, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"wire type {kind} of field {number} is not in use")
        if at + size > len(view):
            raise WireError(f"field {number} wants {size} bytes and only {len(view) - at} are left")
        yield Field(number, kind, 0, view[at : at + size])
        at += size


def signed(value: int) -> int:
    """Return a varint read as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def packed_numbers(field: Field) -> list[int]:
    """Return the int64 numbers of a repeated field that may be packed or not."""
    if field.kind == VARINT:
        return [signed(field.value)]
    numbers: list[int] = []
    at = 0
    while at < len(field.data):
        value, at = read_varint(field.data, at)
        numbers.append(signed(value))
    return numbers


def write_varint(value: int) -> bytes:
    """Return ``value`` (>= 0) as a varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_field(field: Field, data: bytes | None = None) -> bytes:
    """Return the field's bytes, with another payload when ``data`` is given."""
    key = write_varint(field.number << 3 | field.kind)
    if field.kind == VARINT:
        return key + write_varint(field.value)
    payload = bytes(field.data) if data is None else data
    return key + (write_varint(len(payload)) if field.kind == BYTES else b"") + payload


def write_text(number: int, text: str) -> bytes:
    """Return a string field."""
    payload = text.encode()
    return write_varint(number << 3 | BYTES) + write_varint(len(payload)) + payload
