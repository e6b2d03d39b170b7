"""Leaves that lie in the user's code: the very mistake made by a small program on a real compiled model."""

import copy
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

from boardlift_board_agent.diagnosis.tree_test import UserCode, ask, first, right_inputs
from boardlift_board_agent.feed_model import rgb_to_nv12
from boardlift_board_agent.tensors import dequantize, unpack

pytestmark = pytest.mark.toolchain


@pytest.fixture(scope="module")
def agent(toolchain, tmp_path_factory):
    from services.board_agent.conftest import AgentProcess  # the conftest of this service

    process = AgentProcess(toolchain, tmp_path_factory.mktemp("agent")).start()
    yield process
    process.stop()


@pytest.fixture
def user(toolchain, tmp_path):
    return lambda item: UserCode(toolchain, tmp_path, item.model)


def half_bytes(array: np.ndarray) -> np.ndarray:
    """Float16 bytes at the start of a float32 buffer, as a program leaves them that copies what it has."""
    rows = []
    for sample in array:
        buffer = bytearray(sample.size * 4)
        raw = sample.astype(np.float16).tobytes()
        buffer[: len(raw)] = raw
        rows.append(np.frombuffer(bytes(buffer), np.float32).reshape(sample.shape))
    return np.stack(rows)


INPUT_MISTAKES = {
    "input-nchw-as-nhwc": ("nhwc", lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 2))),
    "input-divided-by-255-twice": ("policy8", lambda a: a / np.float32(255)),
    "input-float16-bytes": ("policy8", half_bytes),
    "input-reversed-channels": ("pair", lambda a: a[:, :, ::-1].copy()),
}


@pytest.mark.parametrize("cause", INPUT_MISTAKES)
async def test_a_mistake_with_the_input_is_named_by_what_it_gives(agent, call, materials, user, cause) -> None:
    name, break_it = INPUT_MISTAKES[cause]
    item = materials[name]
    wrong = {n: break_it(a) for n, a in right_inputs(item).items()}
    result = await ask(call(agent), item, user_outputs=user(item).run(wrong))
    assert [(d.cause, round(d.confidence, 2)) for d in result.diagnoses] == [(cause, 0.99)]


@pytest.mark.parametrize("cause", INPUT_MISTAKES)
async def test_the_same_mistake_is_named_from_the_fed_bytes_alone(agent, call, materials, cause) -> None:
    name, break_it = INPUT_MISTAKES[cause]
    fed = {n: break_it(a) for n, a in right_inputs(materials[name]).items()}
    result = await ask(call(agent), materials[name], user_inputs=fed)
    assert (first(result), round(result.diagnoses[0].confidence, 2)) == (cause, 0.99)


async def test_channel_last_data_with_reversed_channels(agent, call, materials, user) -> None:
    item = materials["nhwc"]
    wrong = {n: a[..., ::-1].copy() for n, a in right_inputs(item).items()}
    assert first(await ask(call(agent), item, user_outputs=user(item).run(wrong))) == "input-reversed-channels"
    fine = await ask(call(agent), item, user_outputs=user(item).run(right_inputs(item)))
    assert [d.cause for d in fine.diagnoses] == ["consistent"]


async def test_outputs_swapped(agent, call, materials, user) -> None:
    item = materials["pair"]
    outputs = user(item).run(right_inputs(item))
    swapped = {"first": outputs["second"], "second": outputs["first"]}
    result = await ask(call(agent), item, user_outputs=swapped)
    assert [(d.cause, d.subject) for d in result.diagnoses] == [("outputs-swapped", "first, second")]


async def test_all_channels_scaled_by_the_first_ones_scale(agent, call, materials, user) -> None:
    item = materials["padded"]

    def read(memory: bytes, spec) -> np.ndarray:
        return unpack(memory, spec).astype(np.float32) * np.float32(spec.scale[0])

    assert len(next(s for s in user(item).specs if not s.input).scale) > 1
    outputs = user(item).run(right_inputs(item), read)
    assert first(await ask(call(agent), item, user_outputs=outputs)) == "output-scaled-by-first-channel"


@pytest.mark.parametrize("transposed", [True, False])
async def test_an_output_read_from_memory_in_the_other_layout(agent, call, materials, user, transposed) -> None:
    item = materials["twins"]

    def read(memory: bytes, spec) -> np.ndarray:
        _, channels, height, width = spec.valid
        channel_last = np.frombuffer(memory, np.float32).reshape(1, height, width, channels)
        return np.moveaxis(channel_last, -1, 1) if transposed else channel_last

    outputs = user(item).run(right_inputs(item), read)
    result = await ask(call(agent), item, user_outputs=outputs)
    assert [(d.cause, round(d.confidence, 2)) for d in result.diagnoses] == [("output-layout-misread", 0.99)]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda outputs: {"action": outputs["actions"]}, "output-name-unknown"),
        (lambda outputs: {"actions": outputs["actions"][:, :, :6]}, "output-size-wrong"),
    ],
)
async def test_outputs_that_can_not_be_compared_are_a_cause_and_not_silence(
    agent, call, materials, user, change, cause
) -> None:
    item = materials["policy8"]
    outputs = change(user(item).run(right_inputs(item)))
    assert first(await ask(call(agent), item, user_outputs=outputs)) == cause


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda a: {"obs": a}, "input-name-unknown"),
        (lambda a: {"obs_4d": a[..., :100]}, "input-size-wrong"),
        (lambda a: {"obs_4d": np.random.default_rng(1).normal(size=a.shape)}, "input-other-data"),
    ],
)
async def test_what_was_fed_is_not_the_sample(agent, call, materials, change, cause) -> None:
    fed = change(right_inputs(materials["policy8"])["obs_4d"])
    result = await ask(call(agent), materials["policy8"], user_inputs=fed)
    assert first(result) == cause
    assert cause != "input-name-unknown" or "it has obs_4d." in result.diagnoses[0].message


async def test_calibration_data_of_one_value(agent, call, materials) -> None:
    result = await ask(call(agent), materials["constant"])
    assert first(result) == "calibration-data-broken"


async def test_float_and_compiled_model_of_different_rounds(agent, call, materials) -> None:
    item = copy.copy(materials["policy8"])
    item.reference = materials["older"].reference
    assert [d.cause for d in (await ask(call(agent), item)).diagnoses] == ["quantised-model-distorted"]


@pytest.fixture(scope="module")
def pictures(compiled_models):
    """The camera model (NV12 on the board) with pictures from 0 to 255; the compiled model divides by 255 itself."""
    folder = compiled_models / "camera"
    samples = np.random.default_rng(4).integers(0, 256, (1, 1, 3, 64, 96)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    reference = np.stack([session.run(None, {"images": sample / 255})[0] for sample in samples])
    return SimpleNamespace(
        model=folder / "camera.bin", calibration=folder / "calibration.npz", samples={"images": samples},
        reference={"boxes": reference}, quantized_outputs={},
    )  # fmt: skip


def planar(nv12: bytes) -> bytes:
    luma, chroma = nv12[: len(nv12) * 2 // 3], nv12[len(nv12) * 2 // 3 :]
    return luma + chroma[0::2] + chroma[1::2]


PICTURE_MISTAKES = {
    "input-nv12-planar": lambda picture: planar(rgb_to_nv12(picture)),
    "input-reversed-channels": lambda picture: rgb_to_nv12(picture[..., ::-1]),
}


@pytest.mark.parametrize("cause", PICTURE_MISTAKES)
async def test_a_picture_fed_wrongly(agent, call, pictures, user, cause) -> None:
    picture = np.moveaxis(pictures.samples["images"][0, 0], 0, -1)
    program = user(pictures)
    outputs = program.run_bytes({"images": [PICTURE_MISTAKES[cause](picture)]})
    result = await ask(call(agent), pictures, user_outputs=outputs)
    assert (first(result), round(result.diagnoses[0].confidence, 2)) == (cause, 0.99)
    right = program.run_bytes({"images": [rgb_to_nv12(picture)]})
    assert "user-code" not in {d.stage for d in (await ask(call(agent), pictures, user_outputs=right)).diagnoses}


async def test_planar_chroma_is_named_from_the_fed_bytes(agent, call, pictures) -> None:
    picture = np.moveaxis(pictures.samples["images"][0, 0], 0, -1)
    fed = np.frombuffer(planar(rgb_to_nv12(picture)), np.uint8)[None]
    assert first(await ask(call(agent), pictures, user_inputs={"images": fed})) == "input-nv12-planar"


def test_dequantised_reading_is_what_the_other_tests_rely_on(user, materials) -> None:
    item = materials["padded"]
    read = user(item).run(right_inputs(item), lambda memory, spec: dequantize(unpack(memory, spec), spec))
    assert all(np.allclose(read[n], item.quantized_outputs[n][:1], atol=1e-4) for n in read)
