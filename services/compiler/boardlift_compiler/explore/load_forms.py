"""Load the forms of a model with their samples, and refuse what would make a comparison worthless."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, explore_pb2
from boardlift_servicekit.artifacts import ArtifactStore

from boardlift_compiler.explain_failure import StageFailure, make_failure
from boardlift_compiler.explore.list_candidates import NAME
from boardlift_compiler.explore.sample_sets import count_samples, overlapping
from boardlift_compiler.prepare_calibration import RefusedError, read_samples
from boardlift_compiler.read_model import ModelSummary, ModelUnreadableError, read_model

Array = npt.NDArray[np.generic]
Samples = Mapping[str, Array]


@dataclass(frozen=True)
class Form:
    """One form of the model with everything that is needed to judge it."""

    name: str
    """Its name."""
    model: artifact_pb2.ArtifactRef
    """The model."""
    summary: ModelSummary
    """What it holds."""
    model_bytes: int
    """Size of its file."""
    calibration: Samples
    """Calibration samples."""
    heldout: Samples
    """Held-out samples."""
    reference: Samples
    """Float outputs of the user's model on them; empty when none were given."""
    transform_pass: str = ""
    """Pass that made it."""

    @property
    def counts(self) -> tuple[int, int]:
        """Calibration and held-out samples."""
        return count_samples(self.calibration), count_samples(self.heldout)


class FormRefusedError(Exception):
    """A form cannot be used."""

    def __init__(self, failure: StageFailure) -> None:
        """Carry the failure."""
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class SharedSamples:
    """What forms fall back to."""

    calibration: artifact_pb2.ArtifactRef
    """Calibration samples."""
    heldout: artifact_pb2.ArtifactRef
    """Held-out samples."""
    reference_outputs: artifact_pb2.ArtifactRef
    """Float outputs on them."""


async def load_form(message: explore_pb2.ModelForm, shared: SharedSamples, store: ArtifactStore) -> Form:
    """Load a form.

    Raises:
        FormRefusedError: when the model or its samples cannot be used, or a held-out sample was calibrated on.
        InvalidInputError: NAME_INVALID.
    """
    if not NAME.fullmatch(message.name):
        raise InvalidInputError(
            f"The form name {message.name[:40]!r} is not usable.",
            reason="NAME_INVALID",
            remedy="Use lower-case letters, digits and '-', at most 40.",
            metadata={"field": "forms.name"},
        )
    path = await store.fetch(message.model)
    try:
        summary = await asyncio.to_thread(lambda: read_model(path.read_bytes()))
        calibration = await _load(message.calibration, shared.calibration, store)
        heldout = await _load(message.heldout, shared.heldout, store)
        reference = await _load(message.reference_outputs, shared.reference_outputs, store)
    except ModelUnreadableError as error:
        raise FormRefusedError(make_failure("MODEL_UNREADABLE", message.name, (str(error),))) from error
    except RefusedError as error:
        raise FormRefusedError(error.failure) from error
    form = Form(
        message.name,
        message.model,
        summary,
        path.stat().st_size,
        calibration,
        heldout,
        reference,
        message.transform_pass,
    )
    failure = await asyncio.to_thread(_refusal, form)
    if failure is not None:
        raise FormRefusedError(failure)
    return form


async def _load(own: artifact_pb2.ArtifactRef, shared: artifact_pb2.ArtifactRef, store: ArtifactStore) -> Samples:
    ref = own if own.sha256 else shared
    if not ref.sha256:
        return {}
    path = await store.fetch(ref)
    return await asyncio.to_thread(read_samples, path)


def _refusal(form: Form) -> StageFailure | None:
    names = {t.name for t in form.summary.inputs}
    for samples, what in ((form.calibration, "calibration"), (form.heldout, "held-out")):
        missing = sorted(names - set(samples))
        if missing or not count_samples(samples):
            return make_failure("CALIBRATION_MISSING", ", ".join(missing) or form.name, (f"{what} samples",))
    inputs = {n: form.calibration[n] for n in names}
    common = overlapping(inputs, {n: form.heldout[n] for n in names})
    if common:
        return held_out_failure(common, count_samples(form.heldout))
    if form.reference and count_samples(form.reference) != count_samples(form.heldout):
        text = f"{count_samples(form.reference)} reference outputs for {count_samples(form.heldout)} samples"
        return make_failure("REFERENCE_MISMATCH", text)
    return None


def held_out_failure(numbers: list[int], count: int) -> StageFailure:
    """Return the refusal of held-out samples that were calibrated on."""
    shown = ", ".join(str(n) for n in numbers[:8])
    return StageFailure(
        "HELDOUT_OVERLAPS_CALIBRATION",
        f"{len(numbers)} of {count} held-out samples are calibration samples too.",
        "Split the data so that no sample is in both sets; neighbouring frames of one recording count as the same.",
        "heldout",
        (f"held-out samples {shown}",),
    )
