"""Constant, Cast, Dropout, Einsum-free odds: operators whose attributes were reshaped.

Exactness: bit-exact.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.schemas import type_name
from boardlift_transform.opset.step import FLOATS, INTS, Step

PLAIN = frozenset((*FLOATS, *INTS, TensorProto.BOOL, TensorProto.STRING))
"""Element types that Cast knows below opset 13."""
_NUMBERS = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}


@adapter("Constant", 12)
def plain_value(step: Step) -> None:
    """value_int, value_floats, ... -> value."""
    name = next(iter(step.attrs))
    if name in _NUMBERS:
        tensor = numpy_helper.from_array(np.asarray(step.attr(name), _NUMBERS[name]))
    elif name in ("value_string", "value_strings"):
        raw = helper.get_attribute_value(step.attrs[name])
        dims = [len(raw)] if name == "value_strings" else []
        tensor = helper.make_tensor("value", TensorProto.STRING, dims, raw if dims else [raw])
    else:
        step.same()
        return
    step.op("Constant", [], step.y(), value=tensor)


@adapter("Constant", 11)
def dense_value(step: Step) -> None:
    """sparse_value -> value."""
    if "sparse_value" not in step.attrs:
        step.same()
        return
    sparse: onnx.SparseTensorProto = step.attrs["sparse_value"].sparse_tensor
    values, index = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    flat = index if index.ndim == 1 else np.ravel_multi_index(tuple(index.T), dense.shape)
    dense.reshape(-1)[flat] = values
    step.op("Constant", [], step.y(), value=numpy_helper.from_array(dense))


@adapter("Cast", 19, 24)
def drop_float8_options(step: Step) -> None:
    """Saturate and round_mode only matter for float8, which doesn't exist below."""
    to = step.attr("to")
    if to not in PLAIN:
        raise NoForm(f"casts to {type_name(to)}, a type that opset {step.target} lacks", "use float16 or float32")
    step.op("Cast", [step.x(0)], step.y(), to=to)


@adapter("CastLike", 15, 19, 24)
def cast_to_known(step: Step) -> None:
    """CastLike -> Cast to the type that shape inference tells."""
    to = step.need_elem(step.x(1))
    if to not in PLAIN:
        raise NoForm(f"casts to {type_name(to)}, a type that opset {step.target} lacks", "use float16 or float32")
    step.op("Cast", [step.x(0)], step.y(), to=to)


@adapter("Dropout", 12)
def inference_only(step: Step) -> None:
    """Out of training a copy; the mask is all true."""
    training, ratio = step.x(2), step.x(1)
    if training:
        mode = step.need_const(training, "training_mode")
        rate = step.const(ratio) if ratio else np.float32(0.5)
        if bool(mode.any()) and (rate is None or float(rate) != 0.0):
            raise NoForm(
                "drops values at random (training_mode is true), which no inference model does",
                "export the model in evaluation mode",
            )
    step.op("Identity", [step.x(0)], step.y(0))
    if step.y(1):
        true = helper.make_tensor("value", TensorProto.BOOL, [1], [True])
        step.op("ConstantOfShape", [step.op("Shape", [step.x(0)])], step.y(1), value=true)
