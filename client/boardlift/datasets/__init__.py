"""Datasets: samples of a model's real inputs, with their split and where they come from, in one file.

`build_from_steps` makes one from robot logs, `build_from_arrays` from `.npy`, `.npz` or raw binary files,
`build_from_images` from a folder of pictures; `write_dataset` and `read_dataset` know the file (see `archive`).
Needs numpy (`pip install boardlift[data]`).
"""

from boardlift.datasets.archive import Dataset, check_dataset_file, read_dataset, write_dataset
from boardlift.datasets.arrays import ArraySource, build_from_arrays
from boardlift.datasets.draw import SplitRequest
from boardlift.datasets.images import ImageOptions, build_from_images
from boardlift.datasets.steps import StepsOptions, build_from_steps

__all__ = [
    "ArraySource",
    "Dataset",
    "ImageOptions",
    "SplitRequest",
    "StepsOptions",
    "build_from_arrays",
    "build_from_images",
    "build_from_steps",
    "check_dataset_file",
    "read_dataset",
    "write_dataset",
]
