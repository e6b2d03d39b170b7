"""Windows, DFT, STFT and the mel matrix: constants, MatMul and Conv.

A transform of n points is a product with an [n, bins] matrix of cosines and sines, worked out in float64 and rounded
once. An STFT is a strided Conv with those rows, windowed. Direct summation of n terms, so the error grows like sqrt(n)
rounding errors; the fast transform that this replaces doesn't exist below opset 17.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.families.expansion import expand_body
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import Step

Floats = npt.NDArray[np.float64]
MATRIX_LIMIT = 1 << 24
"""Most elements of a transform matrix: beyond it the model would grow by more than 64 MB."""
_COSINES = {
    "HannWindow": (0.5, -0.5, 0.0),
    "HammingWindow": (25 / 46, -21 / 46, 0.0),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@adapter("HannWindow", 17)
@adapter("HammingWindow", 17)
@adapter("BlackmanWindow", 17)
def window(step: Step) -> None:
    """A constant for a constant size, the defining formula otherwise."""
    size = step.const(step.x(0))
    if size is None:
        expand_body(step)
        return
    n = int(size)
    turn = 2 * np.pi * np.arange(n) / max(n if step.attr("periodic", 1) else n - 1, 1)
    a, b, c = _COSINES[step.node.op_type]
    value = step.constant(a + b * np.cos(turn) + c * np.cos(2 * turn), step.attr("output_datatype", TensorProto.FLOAT))
    step.op("Identity", [value], step.y())


@adapter("MelWeightMatrix", 17)
def mel_matrix(step: Step) -> None:
    """A constant for constant parameters."""
    what = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bins, length, rate, low, high = (float(step.need_const(step.x(i), w)) for i, w in enumerate(what))
    ends = [2595 * np.log10(1 + f / 700) for f in (low, high)]
    count = int(bins)
    mels = ends[0] + np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2))
    place = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(int)
    made = np.zeros((int(length) // 2 + 1, count))
    for i in range(count):
        first, middle, last = place[i : i + 3]
        if middle == first:
            made[middle, i] = 1.0
        else:
            made[first : middle + 1, i] = np.arange(middle - first + 1) / (middle - first)
        if last > middle:
            made[middle:last, i] = np.arange(last - middle, 0, -1) / (last - middle)
    value = step.constant(made, step.attr("output_datatype", TensorProto.FLOAT))
    step.op("Identity", [value], step.y())


def rotations(points: int, bins: int, sign: int) -> tuple[Floats, Floats]:
    """Cosines and sines [points, bins] of a transform over `points`; angles are reduced exactly before the cosine."""
    if points * bins > MATRIX_LIMIT:
        raise NoForm(
            f"transforms {points} points, which takes a matrix of {points * bins} elements", "transform outside"
        )
    turn = (np.outer(np.arange(points), np.arange(bins)) % points) * (2 * np.pi / points)
    return np.cos(turn), sign * np.sin(turn)


@adapter("DFT", 17, 20)
def dft(step: Step) -> None:
    """Bring the axis to the end, multiply real and imaginary parts by cosines and sines, put them side by side."""
    x, rank = step.x(0), step.rank(step.x(0))
    if step.since == 20:
        axis = int(step.need_const(step.x(2), "axis")) % rank if step.x(2) else rank - 2
    else:
        axis = step.attr("axis", 1) % rank
    inverse, onesided = bool(step.attr("inverse", 0)), bool(step.attr("onesided", 0))
    size, parts = step.static_shape_from(x, axis)[0], step.static_shape_from(x, rank - 1)[0]
    length = 2 * (size - 1) if inverse and onesided else size
    if step.x(1):
        length = int(step.need_const(step.x(1), "dft_length"))
    planes = [step.squeeze(part, [rank - 1]) for part in (step.split(x, [1] * parts, rank - 1) if parts > 1 else [x])]
    order = [i for i in range(rank - 1) if i != axis] + [axis]
    moved = planes if axis == rank - 2 else [step.op("Transpose", [p], perm=order) for p in planes]
    made = real_inverse(step, moved, size, length) if inverse and onesided else complex_sums(
        step, moved, size, length, inverse, length // 2 + 1 if onesided else length
    )  # fmt: skip
    if axis != rank - 2:
        made = [step.op("Transpose", [m], perm=[order.index(i) for i in range(rank - 1)]) for m in made]
    joined = [step.unsqueeze(m, [rank - 1]) for m in made]
    step.op(
        "Concat" if len(joined) > 1 else "Identity", joined, step.y(), **({"axis": rank - 1} if len(joined) > 1 else {})
    )


def complex_sums(step: Step, planes: list[str], size: int, length: int, inverse: bool, bins: int) -> list[str]:
    """Real and imaginary part; input longer than the transform is cut, shorter counts as zero-padded."""
    kind = step.need_elem(planes[0])
    cosine, sine = rotations(length, bins, 1 if inverse else -1)
    scale = 1.0 / length if inverse else 1.0
    used = min(size, length)
    if size > used:
        planes = [step.slice(p, [0], [used], [step.rank(p) - 1]) for p in planes]
    c, s = (step.constant(m[:used] * scale, kind) for m in (cosine, sine))
    real, imaginary = step.op("MatMul", [planes[0], c]), step.op("MatMul", [planes[0], s])
    if len(planes) > 1:
        real = step.op("Sub", [real, step.op("MatMul", [planes[1], s])])
        imaginary = step.op("Add", [imaginary, step.op("MatMul", [planes[1], c])])
    return [real, imaginary]


def real_inverse(step: Step, planes: list[str], size: int, length: int) -> list[str]:
    """Real signal from half a spectrum: all but the first and the middle bin count twice."""
    kind = step.need_elem(planes[0])
    used = min(size, length // 2 + 1)
    if size > used:
        planes = [step.slice(p, [0], [used], [step.rank(p) - 1]) for p in planes]
    cosine, sine = rotations(length, length, 1)
    twice = np.full(used, 2.0)
    twice[0] = 1.0
    if length % 2 == 0 and used == length // 2 + 1:
        twice[-1] = 1.0
    c, s = (step.constant(m[:used] * twice[:, None] / length, kind) for m in (cosine, sine))
    real = step.op("MatMul", [planes[0], c])
    return [real if len(planes) == 1 else step.op("Sub", [real, step.op("MatMul", [planes[1], s])])]


@adapter("STFT", 17)
def stft(step: Step) -> None:
    """Conv over time with stride frame_step: one channel per bin and part."""
    signal, hop = step.x(0), int(step.need_const(step.x(1), "frame_step"))
    parts, kind = step.static_shape_from(signal, 2)[0], step.need_elem(signal)
    shape = step.shape(step.x(2)) if step.x(2) else None
    if step.x(3):
        length = int(step.need_const(step.x(3), "frame_length"))
    elif shape is not None and shape[0] is not None:
        length = shape[0]
    else:
        raise NoForm("needs its frame length or a window of static size", "give frame_length as a constant")
    bins = length // 2 + 1 if step.attr("onesided", 1) else length
    cosine, sine = (m.T for m in rotations(length, bins, -1))
    rows = np.stack([np.concatenate([cosine, sine]), np.concatenate([-sine, cosine])], 1)[:, :parts]
    kernel = step.constant(rows, kind)
    if step.x(2):
        kernel = windowed(step, rows, step.x(2), kind)
    moved = step.op("Transpose", [signal], perm=[0, 2, 1])
    made = step.op("Conv", [moved, kernel], kernel_shape=[length], strides=[hop])
    split = step.split(made, [bins, bins], 1)
    pair = step.op("Concat", [step.unsqueeze(v, [3]) for v in split], axis=3)
    step.op("Transpose", [pair], step.y(), perm=[0, 2, 1, 3])


def windowed(step: Step, rows: Floats, name: str, kind: int) -> str:
    """Rows times the window; folded where the window is a constant."""
    value = step.const(name)
    if value is not None:
        return step.constant(rows * value.astype(np.float64), kind)
    return step.op("Mul", [step.constant(rows, kind), name])
