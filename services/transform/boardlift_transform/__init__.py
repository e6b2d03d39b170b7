"""Any ONNX in, exactly what an embedded toolchain takes out, with a numeric proof.

from boardlift_transform import transform
result = transform("policy.onnx", target="rdk-x5", outputs=["actions"])
result.save("policy_x5.onnx")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardlift_transform.opset import downgrade
    from boardlift_transform.transform_model import TransformResult, transform

from boardlift_transform.refusal import Refusal

__all__ = ["Refusal", "TransformResult", "downgrade", "transform"]


def __getattr__(name: str) -> Any:
    """Load the heavy parts when they are first used."""
    if name == "downgrade":
        from boardlift_transform.opset import downgrade

        return downgrade
    if name in ("transform", "TransformResult"):
        from boardlift_transform import transform_model

        return getattr(transform_model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
