"""Read the element type of calibration samples from a makertbin YAML, as the vendor's tool does; pure.

Measured on the tool: ``cal_data_type`` wins; without it samples are float32 where the folder's name ends with ``_f32``
and uint8 everywhere else, ``_float32`` and ``_int8`` included; a featuremap input then refuses them.
"""

from __future__ import annotations

import re

from boardlift_compiler.load_config import ConvertedConfig, add_error, add_warning
from boardlift_compiler.spec import CALIBRATION_TYPES

SUFFIX = re.compile(r"_(f32|float32|uint8|int8|int16|int32)$")
"""What people mean by the end of a folder's name."""
SUFFIX_TYPES = {"f32": "float32"}


def read_calibration_dtype(result: ConvertedConfig, asked: str, folder: str, type_rt: str) -> str:
    """Return the element type of one input's samples.

    Args:
        result: Receives findings: CALIBRATION_TYPE (error), CALIBRATION_TYPE_DEFAULT and CALIBRATION_SUFFIX_CONTRADICTS
            (warnings).
        asked: ``cal_data_type`` of the input; empty when absent.
        folder: Name of its folder; empty when it needs none.
        type_rt: ``input_type_rt`` of the input.
    """
    if asked and asked not in CALIBRATION_TYPES:
        add_error(result, "CALIBRATION_TYPE", f"cal_data_type {asked} does not exist.", "cal_data_type")
        return ""
    match = SUFFIX.search(folder)
    by_suffix = SUFFIX_TYPES.get(match[1], match[1]) if match else ""
    if asked and by_suffix and asked != by_suffix:
        text = f"Folder {folder} says {by_suffix}, cal_data_type says {asked}; the latter wins."
        add_warning(result, "CALIBRATION_SUFFIX_CONTRADICTS", text, "cal_data_type", "Make both agree.")
    if asked or not folder:
        return asked
    if folder.endswith("_f32"):
        return "float32"
    text = f"cal_data_type is missing and folder {folder} does not end with _f32: the tool takes uint8"
    if type_rt == "featuremap":
        text += ", which a featuremap input refuses."
        add_error(result, "CALIBRATION_TYPE", text, "cal_data_type", "Set cal_data_type: float32.")
    else:
        advice = "Set cal_data_type: uint8, or float32 where the samples are."
        add_warning(result, "CALIBRATION_TYPE_DEFAULT", f"{text}.", "cal_data_type", advice)
    return "uint8"
