"""Check a dataset against its model, and split it into what calibrates and what judges."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from boardlift.datasets.archive import Dataset

from boardlift_transform.check_result import Finding
from boardlift_transform.inspect import ModelSummary, summarise
from boardlift_transform.lint_dataset import check_dataset, sample_keys
from boardlift_transform.load_model import LoadedModel
from boardlift_transform.split_dataset import split_samples


@dataclass(frozen=True)
class PreparedDataset:
    """Both sides of a dataset; inputs that are frozen have no samples."""

    calibration: Dataset
    """What the vendor's calibrator gets."""
    heldout: Dataset
    """What every proof and gate gets; no sample of it is in the other."""
    findings: tuple[Finding, ...]
    """Things worth knowing of the data."""
    model: ModelSummary
    """The model it was checked against."""


def prepare_dataset(
    loaded: LoadedModel,
    dataset: Dataset,
    frozen: Collection[str] = (),
    *,
    calibration: int = 0,
    heldout: int = 0,
    seed: int = 0,
) -> PreparedDataset:
    """Check and split.

    Args:
        loaded: The model.
        dataset: Samples `[N, ...]` per input.
        frozen: Inputs that will be constants: they need no samples.
        calibration: Wanted calibration samples; 0 takes the default of `split_samples`.
        heldout: Wanted held-out samples; likewise.
        seed: Of the draw.

    Raises:
        Refusal: One of `check_dataset` or `split_samples`.
    """
    found = summarise(loaded.to_ir(), loaded.sha256)
    inputs = [item for item in found.inputs if item.name not in frozen]
    fed = {name: array for name, array in dataset.arrays.items() if name not in frozen}
    lint = check_dataset(fed, inputs)
    split = split_samples(sample_keys(fed, inputs, dataset.samples), calibration, heldout, seed, dataset.split)
    document = {key: value for key, value in dataset.document.items() if key != "split"}
    sides = [
        Dataset({item.name: dataset.arrays[item.name][list(chosen)] for item in inputs}, document)
        for chosen in (split.calibration, split.heldout)
    ]
    return PreparedDataset(sides[0], sides[1], (*lint, *split.findings), found)
