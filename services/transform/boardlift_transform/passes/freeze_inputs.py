"""Turn inputs that never change into constants.

Before -> After: input `sr` (int64 scalar) fed with 16000 -> constant 16000.
Why: control flow and shapes that hang on such an input become static; the toolchain takes neither `If` nor int64
scalars.
Exactness: bit-exact for that value of the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from boardlift_transform.edit_graph import Editor
from boardlift_transform.passes._base import BIT_EXACT, Parameter, Pass, PassResult
from boardlift_transform.refusal import Refusal


def apply(model: ir.Model, parameters: Mapping[str, Any]) -> PassResult:
    """Replace each input named in `values` by its constant."""
    result = PassResult()
    graph = model.graph
    editor = Editor(graph, PASS.id)
    inputs = {v.name: v for v in graph.inputs}
    for name, content in (parameters.get("values") or {}).items():
        old = inputs.get(name)
        if old is None:
            raise Refusal(
                "INPUT_NOT_FOUND",
                f"no input named {name}",
                remedy=f"inputs are {', '.join(str(n) for n in inputs)}",
                metadata={"input": name},
            )
        dtype = (old.dtype or ir.DataType.FLOAT).numpy()
        array = np.asarray(content, dtype)
        if old.shape is not None and len(old.shape) != array.ndim and array.size == 1:
            array = array.reshape([1] * len(old.shape))
        constant = editor.constant(array, f"{name}_frozen")
        graph.inputs.remove(old)
        editor.replace(old, constant)
        result.apply(name, f"input {dtype} {list(array.shape)}", f"constant {array.reshape(-1)[:4].tolist()}")
    return result


PASS = Pass(
    id="freeze-inputs",
    summary="turn inputs that never change into constants",
    exactness=BIT_EXACT,
    apply=apply,
    parameters=(Parameter("values", "map of input name to its value; default: none"),),
)
