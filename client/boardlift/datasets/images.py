"""Build a dataset from a folder of pictures, in the form the model was trained with: size, layout, colour, mean, scale.

Needs Pillow (`pip install boardlift[images]`).
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from boardlift._local_files import unreadable
from boardlift.datasets.archive import Array, Dataset
from boardlift.datasets.arrays import apply_split
from boardlift.datasets.draw import SplitRequest
from boardlift.errors import InvalidInputError, PreconditionError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
COLORS = ("rgb", "bgr", "gray")


@dataclass(frozen=True)
class ImageOptions:
    """What a picture becomes."""

    input_name: str
    """Input of the model."""
    height: int
    """Rows of the input."""
    width: int
    """Columns of the input."""
    layout: str = "NCHW"
    """"NCHW" or "NHWC"."""
    color: str = "rgb"
    """"rgb", "bgr" or "gray": what the model was trained with."""
    mean: tuple[float, ...] = ()
    """Subtracted per channel, in units of 0..255; empty subtracts nothing."""
    scale: tuple[float, ...] = ()
    """Multiplied per channel after the mean; empty multiplies by 1."""
    resize: bool = False
    """Stretch pictures of another size; otherwise they are refused."""


def build_from_images(folder: Path, options: ImageOptions, split: SplitRequest | None = None) -> Dataset:
    """Build a dataset from the pictures of a folder, float32 [N, C, H, W] or [N, H, W, C].

    Raises:
        InvalidInputError: There are no pictures, one can't be read, or one has another size.
        PreconditionError: Pillow is not installed.
    """
    _check_options(options)
    if not folder.is_dir():
        there = "is a file, no folder" if folder.exists() else "is not there"
        raise InvalidInputError(
            f"{folder} {there}.", reason="NO_IMAGES", remedy="Name a folder.", metadata={"file": str(folder)}
        )
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES)
    if not paths:
        raise InvalidInputError(
            f"{folder} holds no pictures.",
            reason="NO_IMAGES",
            remedy=f"Name a folder with files of these kinds: {' '.join(SUFFIXES)}.",
        )
    samples = np.stack([_load_image(path, options) for path in paths])
    files = [
        {"name": p.name, "sha256": hashlib.sha256(p.read_bytes()).hexdigest(), "size_bytes": p.stat().st_size}
        for p in paths
    ]
    document: dict[str, Any] = {
        "synthetic": False,
        "inputs": {options.input_name: {"layout": options.layout, "color": options.color}},
        "provenance": {"builder": "images", "options": asdict(options), "files": files},
    }
    dataset = Dataset({options.input_name: samples}, document)
    return apply_split(dataset, split) if split else dataset


def _check_options(options: ImageOptions) -> None:
    channels = 1 if options.color == "gray" else 3
    counts = {len(values) for values in (options.mean, options.scale) if values}
    good = options.layout in ("NCHW", "NHWC") and options.color in COLORS and counts <= {1, channels}
    if not good or min(options.height, options.width) < 1:
        raise InvalidInputError(
            "Size, layout, colour, mean or scale of the pictures is wrong.",
            reason="DATASET_INVALID",
            remedy="Give layout NCHW or NHWC, colour rgb, bgr or gray, and mean and scale with one number per channel.",
        )


def _load_image(path: Path, options: ImageOptions) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise PreconditionError(
            "Reading pictures needs Pillow.", reason="PILLOW_MISSING", remedy="pip install pillow"
        ) from error
    try:
        with Image.open(path) as image:
            if image.size != (options.width, options.height) and not options.resize:
                raise InvalidInputError(
                    f"{path.name} is {image.size[1]}x{image.size[0]} (height x width), not "
                    f"{options.height}x{options.width}.",
                    reason="IMAGE_SIZE",
                    remedy="Prepare the pictures as at run time, or have them stretched by --resize.",
                    metadata={"file": path.name},
                )
            picture = image.convert("L" if options.color == "gray" else "RGB")
            picture = picture.resize((options.width, options.height), Image.Resampling.BILINEAR)
            pixels = np.asarray(picture, dtype=np.float32)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        remedy = "Remove or repair the file."
        raise unreadable(path, error, reason="IMAGE_UNREADABLE", remedy=remedy, kind="a picture") from error
    pixels = pixels.reshape(options.height, options.width, -1)
    pixels = pixels[..., ::-1] if options.color == "bgr" else pixels
    pixels = (pixels - np.asarray(options.mean or (0.0,), np.float32)) * np.asarray(options.scale or (1.0,), np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if options.layout == "NCHW" else pixels)
