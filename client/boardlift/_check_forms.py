"""The forms of a job's inputs, checked before anything runs: the compiler would say the same, one transform later."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from boardlift.errors import InvalidInputError
from boardlift.models import InputFormat, Variant

TYPE_PAIRS = {
    "featuremap": ("featuremap",),
    "rgb": ("nv12", "yuv444", "rgb", "bgr"),
    "bgr": ("nv12", "yuv444", "rgb", "bgr"),
    "yuv444": ("nv12", "yuv444"),
    "gray": ("gray",),
}
"""What an input was trained with -> what the board may feed; the compiler's own table, held equal by a test."""
SOURCE_TYPES = {
    "ddr": ("featuremap", "rgb", "bgr", "yuv444", "gray"),
    "pyramid": ("nv12", "gray"),
    "resizer": ("nv12", "gray"),
}
"""Where the board takes an input from -> what may come from there; as above."""
_LAYOUTS = ("NCHW", "NHWC")
_WORDS = {
    "type_train": tuple(TYPE_PAIRS),
    "type_rt": tuple(dict.fromkeys(kind for fed in TYPE_PAIRS.values() for kind in fed)),
    "layout_train": _LAYOUTS,
    "layout_rt": _LAYOUTS,
    "norm_type": ("no_preprocess", "data_mean", "data_scale", "data_mean_and_scale"),
    "space_and_range": ("regular", "bt601_video"),
    "source": tuple(SOURCE_TYPES),
}
"""Field of an input's form -> what it may say."""


def check_forms(variants: Iterable[Variant]) -> None:
    """Refuse forms of inputs that no tool takes, whatever the model is.

    Raises:
        InvalidInputError: There is one: a word that does not exist (`INPUT_FORMAT_INVALID`), or the compiler's own code
            (`INPUT_TYPE_PAIR`, `SPACE_AND_RANGE_PAIR`, `INPUT_SOURCE_PAIR`, `NORM_TYPE_INVALID`, `NORM_VALUE`).
    """
    for item in (item for variant in variants for item in variant.inputs):
        for reason, field, text, remedy in _problems(item):
            metadata = {"input": item.name, "field": field}
            raise InvalidInputError(text, reason=reason, remedy=remedy, metadata=metadata)


def _problems(item: InputFormat) -> Iterator[tuple[str, str, str, str]]:
    """Yield code, field, text and remedy of what is wrong; words first, then pairs, then numbers."""
    for field, words in _WORDS.items():
        if (value := getattr(item, field)) and value not in words:
            text = f"{field} of input {item.name} can't be {value!r}."
            yield "INPUT_FORMAT_INVALID", field, text, f"Use one of {', '.join(words)}."
    train, fed = item.type_train or "featuremap", item.type_rt or "featuremap"
    if fed not in TYPE_PAIRS[train]:
        text = f"Input {item.name} was trained as {train} and can't be fed as {fed}."
        yield "INPUT_TYPE_PAIR", "type_rt", text, f"{train} is fed as {', '.join(TYPE_PAIRS[train])}."
    if item.space_and_range == "bt601_video" and (fed != "nv12" or train not in ("rgb", "bgr")):
        text = f"Input {item.name}, fed as {fed}, has no bt601_video range."
        yield (
            "SPACE_AND_RANGE_PAIR",
            "space_and_range",
            text,
            "It is for nv12 of an input that was trained as rgb or bgr.",
        )
    if item.source and fed not in SOURCE_TYPES[item.source]:
        text = f"Input {item.name}, fed as {fed}, can't come from {item.source}."
        remedy = f"{item.source} gives {', '.join(SOURCE_TYPES[item.source])}; without the key the tool chooses."
        yield "INPUT_SOURCE_PAIR", "source", text, remedy
    if train == "featuremap" and (item.mean or item.scale or item.norm_type not in ("", "no_preprocess")):
        text = f"Input {item.name} is a featuremap, which takes no mean and no scale."
        yield "NORM_TYPE_INVALID", "norm_type", text, "Normalise before the model, or give type_train of an image."
    if any(not math.isfinite(v) for v in (*item.mean, *item.scale)) or 0 in item.scale:
        text = f"Mean or scale of input {item.name} holds NaN, Inf or a factor of zero."
        yield "NORM_VALUE", "scale", text, "Give finite numbers, the factors other than zero."
