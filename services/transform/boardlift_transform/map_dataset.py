"""Datasets in the transformed model's input form, and reference outputs in its output form."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from boardlift_transform.edit_graph import Array
from boardlift_transform.io_map import INPUT, OUTPUT, IoEntry, fits
from boardlift_transform.refusal import Refusal

_EPOCH = (1980, 1, 1, 0, 0, 0)


def map_inputs(entries: Sequence[IoEntry], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Samples `[N, ...]` of the user's inputs as samples of the new inputs.

    A new input `[1, C, H, W]` gives `[N, C, H, W]`; other leading sizes keep the whole shape behind N.

    Raises:
        Refusal: DATASET_INPUT_MISSING or DATASET_SHAPE.
    """
    out = {}
    for entry in entries:
        if entry.direction != INPUT or entry.after is None:
            continue
        name = entry.before.name
        if name not in arrays:
            raise Refusal("DATASET_INPUT_MISSING", f"the dataset has no array for {name}", metadata={"input": name})
        array = np.asarray(arrays[name])
        if not fits(array.shape[1:], entry.before.shape):
            shape = list(array.shape[1:])
            raise Refusal(
                "DATASET_SHAPE",
                f"samples of {name} have shape {shape}, the model takes {list(entry.before.shape)}",
                metadata={"input": name, "shape": shape},
            )
        out[entry.after.name] = _per_sample(array.astype(entry.after.dtype), entry.after.shape)
    return out


def map_references(entries: Sequence[IoEntry], reference: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Outputs of the original model, one dict per sample, as `[N, ...]` in the new output form."""
    out = {}
    for entry in entries:
        if entry.direction == OUTPUT and entry.after is not None:
            stacked = np.stack([np.asarray(r[entry.before.name]).astype(entry.after.dtype) for r in reference])
            out[entry.after.name] = _per_sample(stacked, entry.after.shape)
    return out


def _per_sample(array: Array, shape: Sequence[int]) -> Array:
    item = tuple(shape[1:]) if tuple(shape[:1]) == (1,) else tuple(shape)
    return np.ascontiguousarray(array.reshape(len(array), *item))


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """An `.npz` without pickles whose bytes depend on the arrays only (fixed dates, sorted names, stored)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            member.create_system = 3
            member.external_attr = 0o644 << 16
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(
                    stream, np.ascontiguousarray(arrays[name]), version=(1, 0), allow_pickle=False
                )
    return buffer.getvalue()
