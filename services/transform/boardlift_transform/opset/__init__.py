"""Bring models to an older opset of ai.onnx: one adapter per operator and step, checked, or refused with reasons."""

from boardlift_transform.opset.errors import InvalidModel, Offence, UnsupportedDowngrade
from boardlift_transform.opset.lower_model import downgrade

__all__ = ["InvalidModel", "Offence", "UnsupportedDowngrade", "downgrade"]
