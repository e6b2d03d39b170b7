import pytest
from hypothesis import given
from hypothesis import strategies as st

from boardlift_compiler.wire import WireError, fields, packed_numbers, read_varint, signed, write_field, write_varint


@given(st.integers(0, 2**64 - 1))
def test_varint_round_trip(value):
    data = write_varint(value)
    assert read_varint(memoryview(data), 0) == (value, len(data))


@given(st.binary(max_size=200))
def test_any_bytes_give_fields_or_a_wire_error_and_fields_write_back(data):
    try:
        parts = list(fields(data))
    except WireError:
        return
    again = b"".join(write_field(p) for p in parts)
    assert [(p.number, p.kind, p.value, bytes(p.data)) for p in fields(again)] == [
        (p.number, p.kind, p.value, bytes(p.data)) for p in parts
    ]


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x08" + b"\xff" * 10, b"\x00", b"\x0b", b"\x09\x00"])
def test_cut_or_foreign_bytes_are_refused(data):
    with pytest.raises(WireError):
        list(fields(data))


def test_negative_numbers_and_packed_lists():
    assert signed(2**64 - 1) == -1
    (field,) = fields(b"\x0a\x02\x01\x05")
    assert packed_numbers(field) == [1, 5]
