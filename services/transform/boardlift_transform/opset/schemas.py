"""Look up operator schemas of ai.onnx, once per operator and opset."""

from __future__ import annotations

from functools import cache

import onnx
from onnx import TensorProto, defs

NEWEST = defs.onnx_opset_version()
"""Newest ai.onnx opset that the installed onnx knows."""

PLAIN = frozenset(
    {TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.STRING}
    | {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64}
    | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)
"""Element types that every target knows."""

_SPECIAL = {"double": "DOUBLE", "float": "FLOAT"}


@cache
def schema_at(op: str, opset: int) -> onnx.defs.OpSchema | None:
    """Schema that rules at an opset.

    Args:
        op: Operator of ai.onnx.
        opset: The opset of a model.

    Returns:
        The newest form not above `opset`; None where the operator does not exist there.
    """
    try:
        return defs.get_schema(op, opset, "")
    except defs.SchemaError:
        return None


@cache
def allowed_types(op: str, opset: int) -> tuple[tuple[tuple[frozenset[int], str], ...], ...]:
    """Element types that each formal input and each formal output takes.

    Args:
        op: Operator of ai.onnx that exists at `opset`.
        opset: The opset.

    Returns:
        ``(inputs, outputs)``; each a tuple of (tensor element types, name of the type variable).
    """
    schema = schema_at(op, opset)
    if schema is None:
        raise ValueError(f"{op} does not exist at opset {opset}")
    named = {c.type_param_str: frozenset(map(tensor_code, c.allowed_type_strs)) for c in schema.type_constraints}
    inputs = tuple((named.get(p.type_str, frozenset({tensor_code(p.type_str)})), p.type_str) for p in schema.inputs)
    outputs = tuple((named.get(p.type_str, frozenset({tensor_code(p.type_str)})), p.type_str) for p in schema.outputs)
    return inputs, outputs


@cache
def gains_plain(op: str, since: int) -> bool:
    """Whether a version takes element types that the version before doesn't, of those that every target knows."""
    now, before = allowed_types(op, since), allowed_types(op, since - 1)
    old = [(types, name) for side in before for types, name in side]
    new = [(types, name) for side in now for types, name in side]
    return any((a - b) & PLAIN for (a, _), (b, _) in zip(new, old, strict=False))


def tensor_code(text: str) -> int:
    """``tensor(float16)`` -> TensorProto.FLOAT16; 0 for sequences, optionals and types unknown here."""
    if not text.startswith("tensor("):
        return 0
    word = text[7:-1]
    try:
        return int(TensorProto.DataType.Value(_SPECIAL.get(word, word.upper())))
    except ValueError:
        return 0


def type_name(code: int) -> str:
    """TensorProto.FLOAT16 -> ``float16``."""
    return str(TensorProto.DataType.Name(code)).lower() if code else "unknown"


def formal(index: int, count: int, variadic: bool) -> int:
    """Index of the formal parameter that an actual one belongs to."""
    return min(index, count - 1) if variadic else index


def is_variadic(schema: onnx.defs.OpSchema | None, outputs: bool = False) -> bool:
    """Whether the last formal parameter takes any number of values."""
    if schema is None:
        return False
    params = schema.outputs if outputs else schema.inputs
    return bool(params) and params[-1].option == defs.OpSchema.FormalParameterOption.Variadic
