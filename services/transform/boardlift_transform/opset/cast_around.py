"""Step below a version that only took more types: nothing to do, or Casts around where the type is new.

The wider type holds every value exactly, and the operators listed compute the same there, so casting back gives the
same bits: integer sums, differences and products wrap alike, comparisons and selections don't compute at all, and a
float16 operator worked in float32 rounds once instead of at every step.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.schemas import allowed_types, formal, gains_plain, is_variadic, schema_at, type_name
from boardlift_transform.opset.step import Step
from boardlift_transform.opset.type_steps import TYPE_STEPS

T = TensorProto
WIDER: dict[int, tuple[int, ...]] = {
    T.INT8: (T.INT32, T.INT64, T.FLOAT, T.DOUBLE),
    T.UINT8: (T.INT32, T.INT64, T.FLOAT, T.DOUBLE),
    T.INT16: (T.INT32, T.INT64, T.FLOAT, T.DOUBLE),
    T.UINT16: (T.INT32, T.INT64, T.FLOAT, T.DOUBLE),
    T.UINT32: (T.INT64, T.DOUBLE),
    T.INT32: (T.INT64, T.DOUBLE),
    T.BOOL: (T.UINT8, T.INT32, T.FLOAT),
    T.FLOAT16: (T.FLOAT,),
}
"""Types that hold all values of a type, nearest first."""

PRODUCTS = frozenset({"Mul", "Pow"})
"""Operators whose exact result may need more than float's 24 bits from 16-bit operands."""
WIDENS = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Clip", "Relu", "MaxPool", "ReduceMax", "ReduceMin", "Equal", "Pad"}
    | {"Where", "Neg", "Abs", "Sign", "CumSum", "IsInf", "IsNaN", "PRelu", "LeakyRelu", "Less", "Greater", "Range"}
    | {"ReduceSum", "ReduceMean", "Softmax", "Sum", "Mean", "Resize", "TopK", "Mod", "Round", "DepthToSpace"}
    | {"SpaceToDepth", "MatMul", "Gemm", "ConvTranspose", "Conv", "Cast", "GatherND", "MaxUnpool", "Celu", "Erf"}
)
"""Operators that may be computed in a wider type."""


def step_types(step: Step) -> list[tuple[NodeProto, int]]:
    """Step below a version whose form and meaning are those of the version before.

    Args:
        step: The node.

    Returns:
        The node itself, a version lower, or the node in a wider type between Casts.

    Raises:
        NoForm: Nobody has looked at this version, or its type can't be had below.
    """
    kind, since = step.node.op_type, step.since
    if since not in TYPE_STEPS.get(kind, ()):
        if schema_at(kind, since - 1) is None:
            raise NoForm(f"does not exist below opset {since} and has no decomposition here", "avoid the operator")
        raise NoForm("is a version that nobody has written a downgrade for", "avoid the operator")
    if not step.scope.late and not gains_plain(kind, since):
        return [(step.node, since - 1)]
    plan = widening(step, since - 1)
    if not plan:
        return [(step.node, since - 1)]
    return apply_widening(step, plan)


def widening(step: Step, level: int) -> dict[str, tuple[int, int]]:
    """Type variables whose type is not taken at `level`: name -> (type, wider type)."""
    node = step.node
    inputs, outputs = allowed_types(node.op_type, level)
    schema = schema_at(node.op_type, level)
    plan: dict[str, tuple[int, int]] = {}
    for i, name in enumerate(node.input):
        elem = step.elem(name) if name else 0
        if not elem:
            continue
        allowed, variable = inputs[formal(i, len(inputs), is_variadic(schema))]
        if elem not in allowed and variable not in plan:
            plan[variable] = (elem, wider(step, elem, allowed))
    for i, name in enumerate(node.output):
        elem = step.elem(name) if name else 0
        if elem:
            allowed, variable = outputs[formal(i, len(outputs), is_variadic(schema, True))]
            if elem not in allowed and variable not in plan:
                raise NoForm(f"makes {type_name(elem)}, which it can't below opset {step.since}", "use another type")
    return plan


def wider(step: Step, elem: int, allowed: frozenset[int]) -> int:
    """Nearest wider type that the lower version takes."""
    kind = step.node.op_type
    found = [w for w in WIDER.get(elem, ()) if w in allowed]
    if kind in PRODUCTS and elem in (T.INT16, T.UINT16):
        found = [w for w in found if w != T.FLOAT]
    if kind not in WIDENS or not found:
        raise NoForm(
            f"works on {type_name(elem)}, a type it takes since opset {step.since} and that no wider type replaces "
            "exactly",
            "use float32 or int32 tensors here",
        )
    return found[0]


def apply_widening(step: Step, plan: dict[str, tuple[int, int]]) -> list[tuple[NodeProto, int]]:
    """Casts into the wider types, the node, Casts back."""
    node, level = step.node, step.since - 1
    inputs, outputs = allowed_types(node.op_type, level)
    schema = schema_at(node.op_type, level)
    fed = []
    for i, name in enumerate(node.input):
        variable = inputs[formal(i, len(inputs), is_variadic(schema))][1]
        fed.append(step.cast(name, plan[variable][1]) if name and variable in plan else name)
    results, back = [], []
    for i, name in enumerate(node.output):
        variable = outputs[formal(i, len(outputs), is_variadic(schema, True))][1]
        if name and variable in plan:
            inner = step.fresh("wide")
            back.append((inner, plan[variable][0], name))
            results.append(inner)
        else:
            results.append(name)
    wide = NodeProto()
    wide.CopyFrom(node)
    wide.input[:] = fed
    wide.output[:] = results
    step.made.append((wide, level))
    for inner, _, _ in back:
        step.scope.producers[inner] = (wide, level)
    for inner, elem, name in back:
        step.cast(inner, elem, name)
    return step.made
