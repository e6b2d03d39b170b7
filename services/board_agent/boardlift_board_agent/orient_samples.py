"""Samples in the float model's layout -> in the layout that the compiled model takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from boardlift.errors import InvalidInputError
from numpy.typing import NDArray

from boardlift_board_agent.tensor_spec import TensorSpec

Array = NDArray[Any]
_MOVES = {("NCHW", "NHWC"): (-3, -1), ("NHWC", "NCHW"): (-1, -3)}


def orient_samples(
    samples: Mapping[str, Array], tensors: tuple[TensorSpec, ...], layouts: Mapping[str, str]
) -> dict[str, Array]:
    """Moves the channels where the compiled input has them.

    Args:
        samples: input name -> [n, ...].
        tensors: the compiled model's tensors.
        layouts: input name -> NCHW or NHWC, as the samples are; others stay as they are, and so do pictures, tensors
            without a layout, and samples of fewer than three dimensions.

    Raises:
        InvalidInputError: SAMPLE_LAYOUT_INVALID.
    """
    oriented = dict(samples)
    for name, layout in layouts.items():
        if layout not in ("NCHW", "NHWC"):
            raise InvalidInputError(
                f"The samples of {name} can't have the layout {layout!r}.",
                reason="SAMPLE_LAYOUT_INVALID",
                remedy="Name NCHW or NHWC.",
                metadata={"input": name},
            )
        spec = next((t for t in tensors if t.input and t.name == name and not t.image), None)
        move = _MOVES.get((layout, spec.layout.rpartition("_")[2])) if spec is not None else None
        if move is not None and name in oriented and np.ndim(oriented[name]) >= 4:
            oriented[name] = np.ascontiguousarray(np.moveaxis(oriented[name], *move))
    return oriented
