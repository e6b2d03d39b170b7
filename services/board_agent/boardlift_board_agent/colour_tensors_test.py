import pytest
from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2

from boardlift_board_agent.colour_tensors import colour_tensors
from boardlift_board_agent.tensor_spec import TensorSpec

CAMERA = TensorSpec("camera", True, (1, 3, 2, 2), "HB_DNN_IMG_TYPE_NV12", 6)
STATE = TensorSpec("state", True, (1, 4), "HB_DNN_TENSOR_TYPE_F32", 16)


def form(colour: str = "", space_and_range: str = "") -> board_agent_pb2.PictureForm:
    return board_agent_pb2.PictureForm(colour=colour, space_and_range=space_and_range)


def test_named_pictures_are_coloured_and_the_rest_stays() -> None:
    camera, state = colour_tensors((CAMERA, STATE), {"camera": form("bgr", "bt601_video"), "state": form("bgr")})
    assert (camera.colour, camera.video_range) == ("bgr", True)
    assert state is STATE
    assert colour_tensors((CAMERA,), {}) == (CAMERA,)
    assert colour_tensors((CAMERA,), {"camera": form()}) == (CAMERA,)


@pytest.mark.parametrize("wrong", [form("yuv"), form("rgb", "full")])
def test_an_unknown_form_is_refused_by_input(wrong: board_agent_pb2.PictureForm) -> None:
    with pytest.raises(InvalidInputError) as caught:
        colour_tensors((CAMERA,), {"camera": wrong})
    assert caught.value.reason == "SAMPLE_COLOUR_INVALID" and caught.value.metadata == {"input": "camera"}
