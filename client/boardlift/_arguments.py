"""Small checks and conversions that both clients share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boardlift.errors import InvalidInputError, PreconditionError
from boardlift.v1 import job_pb2

DIAGNOSIS_TIMEOUT_S = 2000.0
JOB_PAGE = 200
PLAN_S = 300.0
"""Deadline of a plan: it checks and splits the dataset."""


def check_state(state: str) -> Any:
    """Return the number of a state's word; empty means all.

    Raises:
        InvalidInputError: There is no such state (`STATE_UNKNOWN`).
    """
    try:
        number = job_pb2.Job.State.Value(f"STATE_{(state or 'unspecified').upper()}")
    except ValueError as error:
        words = ", ".join(name.removeprefix("STATE_").lower() for name in job_pb2.Job.State.keys()[1:])
        raise InvalidInputError(
            f"There is no job state {state!r}.", reason="STATE_UNKNOWN", remedy=f"Use one of {words}."
        ) from error
    return number


def _check_file(path: Path) -> None:
    """Refuse by its name what a server would refuse by its digest; without numpy the server is left to say it."""
    try:
        from boardlift.datasets import check_dataset_file
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        return
    check_dataset_file(path)


def dataset_file(data: Any, folder: Path) -> Path:
    """Return a file with the samples: the given one, or one written into `folder`.

    Raises:
        InvalidInputError: They are not usable as samples.
        PreconditionError: numpy is not installed.
    """
    if isinstance(data, (str, Path)):
        _check_file(Path(data))
        return Path(data)
    try:
        from boardlift.datasets import Dataset, write_dataset
    except ModuleNotFoundError as error:
        raise PreconditionError(
            "Samples in memory need numpy.", reason="NUMPY_MISSING", remedy="pip install numpy"
        ) from error

    dataset = Dataset(dict(data)) if isinstance(data, Mapping) else data
    if not isinstance(dataset, Dataset):
        raise InvalidInputError(
            f"{type(data).__name__} can't be used as samples.",
            reason="DATASET_INVALID",
            remedy="Give the path of an .npz, a Dataset, or a mapping of input name to array [N, ...].",
        )
    write_dataset(dataset, folder / "data.npz")
    return folder / "data.npz"
