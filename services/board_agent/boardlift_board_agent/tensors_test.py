"""Any shape and stride round-trips; the plain copy is seen; NV12 follows its rules."""

import numpy as np
import pytest
from boardlift.errors import InvalidInputError
from hypothesis import given
from hypothesis import strategies as st

from boardlift_board_agent.tensor_spec import TensorSpec
from boardlift_board_agent.tensors import (
    dequantize,
    find_plain_copy,
    pack,
    pack_nv12,
    quantize,
    read_plainly,
    strides_of,
    unpack,
    unpack_nv12,
)

TYPES = {"S8": np.int8, "S16": np.int16, "S32": np.int32, "F32": np.float32}


@st.composite
def specs(draw: st.DrawFn, series: str = "x5") -> TensorSpec:
    valid = tuple(draw(st.lists(st.integers(1, 6), min_size=4 if series == "x5" else 1, max_size=4)))
    aligned = tuple(v + draw(st.integers(0, 5)) for v in valid)
    short = draw(st.sampled_from(sorted(TYPES)))
    stride: tuple[int, ...] = ()
    step = np.dtype(TYPES[short]).itemsize
    for extent in reversed(aligned):
        stride = (step, *stride)
        step *= extent
    return TensorSpec(
        name="t",
        input=False,
        valid=valid,
        type=f"HB_DNN_TENSOR_TYPE_{short}",
        size_bytes=step,
        aligned=aligned if series == "x5" else (),
        stride=stride,
    )


def values_of(spec: TensorSpec, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 100, spec.valid).astype(spec.dtype)


@given(specs())
def test_round_trip_by_stride_on_x5(spec: TensorSpec) -> None:
    values = values_of(spec)
    memory = pack(values, spec)
    assert len(memory) == spec.size_bytes
    assert np.array_equal(unpack(memory, spec), values)


@given(specs(series="s100"))
def test_round_trip_without_aligned_shape_on_s_series(spec: TensorSpec) -> None:
    values = values_of(spec)
    assert np.array_equal(unpack(pack(values, spec), spec), values)


@given(specs())
def test_aligned_shape_alone_gives_the_same_strides(spec: TensorSpec) -> None:
    bare = TensorSpec(**{**spec.__dict__, "stride": ()})
    assert strides_of(bare) == strides_of(spec)


@given(specs())
def test_plain_copy_is_recognised_exactly_when_it_matters(spec: TensorSpec) -> None:
    values = values_of(spec)
    right = pack(values, spec)
    wrong = values.tobytes() + bytes(spec.size_bytes - values.nbytes)
    assert not find_plain_copy(right, spec)
    assert find_plain_copy(wrong, spec) == (wrong != right)


def test_seed_case_two_the_plain_copy_ruins_the_cosine() -> None:
    """A [1, T, D] float tensor whose rows are padded: reading it densely is nearly uncorrelated, by stride exact."""
    spec = TensorSpec("x", False, (1, 64, 50), "HB_DNN_TENSOR_TYPE_F32", 64 * 256, stride=(64 * 256, 256, 4))
    values = np.random.default_rng(1).standard_normal(spec.valid).astype(np.float32)
    memory = pack(values, spec)
    plain = read_plainly(memory, spec)

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.dot(a.ravel(), b.ravel()) / np.linalg.norm(a) / np.linalg.norm(b))

    assert cosine(unpack(memory, spec), values) == pytest.approx(1.0)
    assert abs(cosine(plain, values)) < 0.2


def test_open_strides_are_worked_out() -> None:
    spec = TensorSpec("x", True, (1, 4, 5, 1), "HB_DNN_TENSOR_TYPE_U8", 4 * 32, stride=(-1, 32, 1, 1))
    assert strides_of(spec) == (128, 32, 1, 1)


def test_dense_dump_of_a_padded_tensor_is_read_too() -> None:
    spec = TensorSpec("x", False, (1, 2, 3), "HB_DNN_TENSOR_TYPE_S32", 64, stride=(64, 32, 4))
    values = np.arange(6, dtype=np.int32).reshape(1, 2, 3)
    assert np.array_equal(unpack(values.tobytes(), spec), values)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (TensorSpec("x", False, (1, 4), "HB_DNN_TENSOR_TYPE_F32", 8, stride=(16, 4)), "TENSOR_LAYOUT_INVALID"),
        (TensorSpec("x", False, (1, 4), "HB_DNN_TENSOR_TYPE_Q7", 16), "TENSOR_TYPE_UNKNOWN"),
        (TensorSpec("x", False, (1, 4), "HB_DNN_TENSOR_TYPE_F32", 1 << 40, stride=(16, 4)), "TENSOR_LAYOUT_INVALID"),
    ],
)
def test_contradicting_reports_are_refused(spec: TensorSpec, reason: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        strides_of(spec)
    assert caught.value.reason == reason


def test_short_dump_is_refused() -> None:
    spec = TensorSpec("x", False, (1, 4), "HB_DNN_TENSOR_TYPE_F32", 16, stride=(16, 4))
    with pytest.raises(InvalidInputError) as caught:
        unpack(b"\0" * 8, spec)
    assert caught.value.reason == "TENSOR_SIZE_WRONG"


def test_pack_refuses_other_shape_and_type() -> None:
    spec = TensorSpec("x", True, (1, 4), "HB_DNN_TENSOR_TYPE_F32", 16, stride=(16, 4))
    for values, reason in (
        (np.zeros((4,), np.float32), "TENSOR_SHAPE_WRONG"),
        (np.zeros((1, 4)), "TENSOR_DTYPE_WRONG"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            pack(values, spec)
        assert caught.value.reason == reason


@given(st.integers(0, 3), st.integers(1, 4))
def test_quantise_and_dequantise_by_channel(axis: int, channels: int) -> None:
    valid = tuple(channels if i == axis else 3 for i in range(4))
    scale = tuple(0.5 / 2**i for i in range(channels))
    spec = TensorSpec("x", True, valid, "HB_DNN_TENSOR_TYPE_S16", 2 * int(np.prod(valid)), quantization="SCALE",
                      scale=scale, axis=axis)  # fmt: skip
    x = np.random.default_rng(2).integers(-50, 50, valid).astype(np.float32)
    assert np.array_equal(dequantize(quantize(x, spec), spec), x)


def test_quantise_clips_and_rounds_half_to_even() -> None:
    spec = TensorSpec("x", True, (1, 4), "HB_DNN_TENSOR_TYPE_S8", 4, quantization="SCALE", scale=(1.0,))
    assert quantize(np.array([[0.5, 1.5, 300, -300]]), spec).tolist() == [[0, 2, 127, -128]]


@given(st.integers(1, 20), st.integers(1, 20))
def test_nv12_round_trip_with_padded_rows(half_width: int, half_height: int) -> None:
    rng = np.random.default_rng(3)
    luma = rng.integers(0, 256, (2 * half_height, 2 * half_width)).astype(np.uint8)
    chroma = rng.integers(0, 256, (half_height, half_width, 2)).astype(np.uint8)
    memory = pack_nv12(luma, chroma)
    assert len(memory) == 3 * half_height * (-(-2 * half_width // 16) * 16)
    y, uv = unpack_nv12(memory, 2 * half_width, 2 * half_height)
    assert np.array_equal(y, luma)
    assert np.array_equal(uv, chroma)


def test_nv12_refuses_odd_sizes() -> None:
    with pytest.raises(InvalidInputError) as caught:
        pack_nv12(np.zeros((3, 4), np.uint8), np.zeros((1, 2, 2), np.uint8))
    assert caught.value.reason == "NV12_SIZE_ODD"
    with pytest.raises(InvalidInputError) as caught:
        pack_nv12(np.zeros((4, 6), np.uint8), np.zeros((2, 4, 3), np.uint8))  # YUV444 by hand
    assert caught.value.reason == "NV12_SHAPE_WRONG"
