"""Note on every picture input what its samples hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2

from boardlift_board_agent.tensor_spec import TensorSpec

COLOURS = ("rgb", "bgr", "yuv444", "gray")
RANGES = ("regular", "bt601_video")


def colour_tensors(
    tensors: tuple[TensorSpec, ...], pictures: Mapping[str, board_agent_pb2.PictureForm]
) -> tuple[TensorSpec, ...]:
    """Return the tensors with the colours of their samples.

    Args:
        tensors: The compiled model's tensors.
        pictures: Form by input; inputs that are no pictures, or not named, stay as they are.

    Raises:
        InvalidInputError: SAMPLE_COLOUR_INVALID.
    """
    for name, form in pictures.items():
        if (form.colour or "rgb") not in COLOURS or (form.space_and_range or "regular") not in RANGES:
            raise InvalidInputError(
                f"The samples of {name} can't be {form.colour!r} of {form.space_and_range!r}.",
                reason="SAMPLE_COLOUR_INVALID",
                remedy=f"Name one of {', '.join(COLOURS)} and one of {', '.join(RANGES)}.",
                metadata={"input": name},
            )
    return tuple(
        replace(
            spec,
            colour=pictures[spec.name].colour or "rgb",
            video_range=pictures[spec.name].space_and_range == "bt601_video",
        )
        if spec.input and spec.image and spec.name in pictures
        else spec
        for spec in tensors
    )
