"""Write samples in the form that a model of the vendor's takes: float, calibrated or quantised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from boardlift_compiler.convert_images import to_quantized_input
from boardlift_compiler.explain_failure import make_failure
from boardlift_compiler.prepare_calibration import RefusedError
from boardlift_compiler.read_model import ModelSummary, TensorInfo
from boardlift_compiler.spec import CompileSpec

Array = npt.NDArray[np.generic]


def write_inputs(model: ModelSummary, samples: Mapping[str, Array], spec: CompileSpec, path: Path) -> None:
    """Write an ``.npz`` with one array ``[N, ...]`` per input of the model.

    Args:
        model: The vendor's model; types and layouts of its inputs decide.
        samples: Per input ``[N, ...]`` in training form.
        spec: Names the inputs' types.
        path: File to write.

    Raises:
        RefusedError: CALIBRATION_MISSING when an input has no samples or another number of them,
            CALIBRATION_SAMPLE_SIZE when they have another shape; dimensions of 1 may differ.
        OSError: The file cannot be written.
    """
    arrays: dict[str, Array] = {}
    for tensor in model.inputs:
        given = samples.get(tensor.name)
        if given is None or not given.ndim:
            text = f"There are no samples for input {tensor.name}."
            raise RefusedError(make_failure("CALIBRATION_MISSING", tensor.name, message=text))
        if not spec.input_named(tensor.name).is_image:
            _check_shape(given, tensor)
        arrays[tensor.name] = to_quantized_input(given, spec.input_named(tensor.name), tensor)
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name}: {count}" for name, count in counts.items())
        text = f"Inputs have different numbers of samples: {told}."
        raise RefusedError(make_failure("CALIBRATION_MISSING", told, message=text))
    np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's stub types savez's flags only


def _check_shape(given: Array, tensor: TensorInfo) -> None:
    """Refuse samples whose elements would only fit in another order: a reshape would take them without a word."""
    if any(not isinstance(d, int) for d in tensor.shape):
        return
    if [d for d in given.shape[1:] if d != 1] != [d for d in tensor.shape if d != 1]:
        text = f"Samples of {tensor.name} have shape {list(given.shape[1:])}, the model takes {list(tensor.shape)}."
        raise RefusedError(make_failure("CALIBRATION_SAMPLE_SIZE", tensor.name, message=text))
