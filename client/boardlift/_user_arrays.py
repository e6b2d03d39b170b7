"""What a user's own code fed or got, by the names of the user's model -> by those of the compiled model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from boardlift._local_files import unreadable
from boardlift.v1 import transform_pb2

if TYPE_CHECKING:
    import numpy as np


def fit_user_arrays(
    path: Path, entries: Iterable[transform_pb2.IoMapping], folder: Path
) -> tuple[Path, dict[str, str]]:
    """Rename the arrays of a file where the transform has renamed the tensors; elements keep their order and form.

    Args:
        path: `.npz` of arrays `[N, ...]`.
        entries: Tensors of one side, before and after the transform.
        folder: Receives the file with the new names.

    Returns:
        The file to send, the given one where no name changes, and old name -> new name.

    Raises:
        InvalidInputError: The file can't be read (`ARRAYS_UNREADABLE`).
    """
    from boardlift.npz import NpzError, read_npz

    try:
        arrays: dict[str, np.ndarray] = read_npz(path)
    except NpzError as error:
        remedy = "Save plain arrays [N, ...], one per tensor, with numpy.savez."
        raise unreadable(path, error, reason="ARRAYS_UNREADABLE", remedy=remedy) from error
    new_names = {e.before.name: e.after.name for e in entries if e.after.name and e.after.name != e.before.name}
    renamed = {old: new for old, new in new_names.items() if old in arrays and new not in arrays}
    if not renamed:
        return path, {}
    save_arrays(folder / path.name, {renamed.get(name, name): array for name, array in arrays.items()})
    return folder / path.name, renamed


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as `numpy.savez` does, and nothing beside them."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)  # type: ignore[arg-type]  # typed as if a name could only be allow_pickle
