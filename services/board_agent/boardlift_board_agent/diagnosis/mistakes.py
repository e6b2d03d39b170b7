"""Mistakes that user code makes with inputs and outputs, as functions on arrays. Pure.

Each input mistake turns right inputs into what the mistaken code would feed; the board is then run on them, and if it
answers what the user's code got, that is the mistake. Output mistakes are worked out from the right answer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from boardlift_board_agent.diagnosis.evidence import Array, Arrays, Evidence
from boardlift_board_agent.feed_model import input_bytes
from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.tensors import read_plainly


@dataclass(frozen=True)
class Mistake:
    """One known mistake."""

    id: str
    """Stable, kebab-case."""
    message: str
    """What the code does, one sentence."""
    next_step: str
    """What to change."""


INPUT_MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "input-nhwc-as-nchw",
        "The code feeds channel-last data (NHWC) where the model takes channel-first (NCHW).",
        "Transpose the input to NCHW before copying it, or compile with input_layout_rt NHWC.",
    ),
    Mistake(
        "input-nchw-as-nhwc",
        "The code feeds channel-first data (NCHW) where the model takes channel-last (NHWC).",
        "Transpose the input to NHWC before copying it.",
    ),
    Mistake(
        "inputs-swapped",
        "The code feeds the inputs in another order than the compiled model has them.",
        "Match inputs by name: the compiled model's order is not the ONNX file's.",
    ),
    Mistake(
        "input-not-divided-by-255",
        "The code feeds values 255 times too large: 0 to 255 instead of 0 to 1.",
        "Normalise the input as in training.",
    ),
    Mistake(
        "input-divided-by-255-twice",
        "The code feeds values 255 times too small: normalised twice.",
        "Leave one of the two normalisations out: the model may hold one already.",
    ),
    Mistake(
        "input-truncated-to-integers",
        "The code feeds integers where the model takes float32.",
        "Keep the input in float32 all the way.",
    ),
    Mistake(
        "input-float64-bytes",
        "The code copies float64 bytes into a float32 input.",
        "Convert the input to float32 before copying its bytes.",
    ),
    Mistake(
        "input-float16-bytes",
        "The code copies float16 bytes into a float32 input.",
        "Convert the input to float32 before copying its bytes.",
    ),
    Mistake(
        "input-reversed-channels",
        "The code feeds the channels in reverse order (BGR for RGB).",
        "Swap the colour channels.",
    ),
    Mistake(
        "input-nv12-planar",
        "The code feeds I420 (a plane of U, then one of V) where the model takes NV12 (U and V in turns).",
        "Interleave U and V behind the luma plane.",
    ),
)
OUTPUT_MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "output-stride-ignored",
        "The code reads the output row after row although its rows are padded.",
        "Read with the tensor's stride; model_info shows it.",
    ),
    Mistake(
        "output-not-dequantised",
        "The code takes the integers of the output for its values.",
        "Multiply by the tensor's scale, per channel on its quantizeAxis.",
    ),
    Mistake(
        "output-scaled-by-first-channel",
        "The code multiplies all channels by the first channel's scale.",
        "Use one scale per channel.",
    ),
    Mistake(
        "output-layout-misread",
        "The code reads the output in the other layout (NCHW for NHWC or the reverse).",
        "Index the output by the layout model_info prints.",
    ),
    Mistake(
        "outputs-swapped",
        "The code takes one output for another.",
        "Match outputs by name: the compiled model's order is not the ONNX file's.",
    ),
)
BY_ID: Mapping[str, Mistake] = {m.id: m for m in (*INPUT_MISTAKES, *OUTPUT_MISTAKES)}


def mistaken_inputs(samples: Arrays, specs: tuple[TensorSpec, ...]) -> dict[str, dict[str, Array]]:
    """Inputs as mistaken code would feed them; mistakes that change nothing here are left out.

    Args:
        samples: right inputs, `[n, ...]`.
        specs: tensors of the compiled model.

    Returns:
        Mistake id -> inputs by name.
    """
    tensors = [t for t in specs if t.input and not t.image]
    names = [t.name for t in tensors]
    right = {t.name: np.asarray(samples[t.name]) for t in specs if t.input}
    made: dict[str, dict[str, Array]] = {}
    for mistake, change in _CHANGES.items():
        changes = {t.name: change(right[t.name], t) for t in specs if t.input}
        made[mistake] = {name: array for name, array in changes.items() if array is not None}
    if len(names) > 1:
        made["inputs-swapped"] = _swap(right, names)
    found = {}
    for mistake, wrong in made.items():
        changed = {n: a for n, a in wrong.items() if not np.array_equal(a, right[n], equal_nan=True)}
        if changed:
            found[mistake] = {**samples, **changed}
    return found


def _swap(right: dict[str, Array], names: list[str]) -> dict[str, Array]:
    """Neighbours of equal size change places."""
    wrong = {}
    for one, other in pairwise(names):
        if right[one].size == right[other].size and one not in wrong:
            wrong[one] = right[other].reshape(right[one].shape)
            wrong[other] = right[one].reshape(right[other].shape)
    return wrong


def _relaid(array: Array, axes: tuple[int, int, int]) -> Array | None:
    """The last three dimensions stored in another order, read in the right one."""
    if array.ndim < 4:
        return None
    lead = tuple(range(array.ndim - 3))
    moved = np.transpose(array, (*lead, *(array.ndim - 3 + a for a in axes)))
    return np.ascontiguousarray(moved).reshape(array.shape)


def _read_as(array: Array, axes: tuple[int, int, int]) -> Array | None:
    """The last three dimensions read from memory in another order, then put in the right one."""
    if array.ndim < 4:
        return None
    lead = array.ndim - 3
    order = (*range(lead), *(lead + a for a in axes))
    return np.ascontiguousarray(array.reshape([array.shape[a] for a in order]).transpose(np.argsort(order)))


def _bytes_as_float32(array: Array, kind: type[np.floating]) -> Array:
    """What float32 code sees in the bytes of another float type; the tail is cut off or zero."""
    rows = []
    for sample in array:
        raw = sample.astype(kind).tobytes()[: sample.size * 4].ljust(sample.size * 4, b"\0")
        rows.append(np.nan_to_num(np.frombuffer(raw, np.float32).reshape(sample.shape)))
    return np.stack(rows)


Change = Callable[[Array, TensorSpec], Array | None]


def _of_floats(change: Callable[[Array], Array | None], unless: str = "") -> Change:
    """For tensors of floats; not where the compiled model has the layout `unless`, in which that is no mistake."""

    def apply(array: Array, spec: TensorSpec) -> Array | None:
        fits = array.dtype.kind == "f" and not spec.image and not (unless and spec.layout.endswith(unless))
        return change(array) if fits else None

    return apply


def _reversed_channels(array: Array, spec: TensorSpec) -> Array | None:
    """The three channels the other way round, wherever they are; raw bytes of a picture have none."""
    if array.ndim < 4:
        return None
    axes = [axis for axis in (-3, -1) if array.shape[axis] == 3]
    if len(axes) == 2:
        axes = [-1] if spec.layout.endswith("NHWC") else [-3]
    return np.flip(array, axes[0]).copy() if axes else None


def _planar_chroma(array: Array, spec: TensorSpec) -> Array | None:
    """The bytes of an NV12 picture with its chroma in two planes (I420), uint8 [n, bytes]."""
    if not spec.type.endswith("NV12"):
        return None
    rows = []
    for sample in array:
        memory = np.frombuffer(input_bytes(sample, spec), np.uint8)
        luma, chroma = np.split(memory, [memory.size * 2 // 3])
        rows.append(np.concatenate([luma, chroma[0::2], chroma[1::2]]))
    return np.stack(rows)


_CHANGES: Mapping[str, Change] = {
    "input-nhwc-as-nchw": _of_floats(lambda a: _relaid(a, (1, 2, 0)), unless="NHWC"),
    "input-nchw-as-nhwc": _of_floats(lambda a: _relaid(a, (2, 0, 1)), unless="NCHW"),
    "input-not-divided-by-255": _of_floats(lambda a: a * np.asarray(255, a.dtype)),
    "input-divided-by-255-twice": _of_floats(lambda a: a / np.asarray(255, a.dtype)),
    "input-truncated-to-integers": _of_floats(np.trunc),
    "input-float64-bytes": _of_floats(lambda a: _bytes_as_float32(a, np.float64)),
    "input-float16-bytes": _of_floats(lambda a: _bytes_as_float32(a, np.float16)),
    "input-reversed-channels": _reversed_channels,
    "input-nv12-planar": _planar_chroma,
}


def mistaken_outputs(evidence: Evidence) -> list[tuple[str, dict[str, Array]]]:
    """Outputs as mistaken code would read them, from the right answer.

    Args:
        evidence: `board`, `board_raw`, `memory` and `specs` are used.

    Returns:
        (mistake id, outputs by name), only those that differ from the right ones; one mistake may be made in two ways.
    """
    specs = {t.name: t for t in evidence.specs if not t.input}
    made: dict[str, dict[str, Array]] = {m.id: {} for m in OUTPUT_MISTAKES}
    for name, spec in specs.items():
        raw = evidence.board_raw.get(name)
        memory = evidence.memory.get(name, ())
        if memory and spec.padded:
            plain = np.stack([read_plainly(m, spec) for m in memory])
            made["output-stride-ignored"][name] = _scaled(plain, spec)
        if raw is not None and spec.scale:
            made["output-not-dequantised"][name] = raw.astype(np.float32)
            made["output-scaled-by-first-channel"][name] = raw.astype(np.float32) * np.float32(spec.scale[0])
    right = {name: np.asarray(evidence.board[name]) for name in specs}
    made["outputs-swapped"] = _swap(right, list(specs))
    ways = list(made.items())
    for misread in (_relaid, _read_as):
        for axes in ((1, 2, 0), (2, 0, 1)):
            moved = {name: misread(array, axes) for name, array in right.items()}
            ways.append(("output-layout-misread", {name: a for name, a in moved.items() if a is not None}))
    return [
        (mistake, changed)
        for mistake, wrong in ways
        if (changed := {n: a for n, a in wrong.items() if not np.array_equal(a, right[n], equal_nan=True)})
    ]


def _scaled(values: Array, spec: TensorSpec) -> Array:
    if not spec.scale:
        return values.astype(np.float32)
    scale = np.asarray(spec.scale, np.float32)
    if scale.size > 1:
        shape = [1] * values.ndim
        shape[spec.axis + 1] = scale.size
        scale = scale.reshape(shape)
    return np.asarray(values.astype(np.float32) * scale)
