"""What a target's toolchain takes: plain data, measured with the real tools."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift_transform.refusal import Refusal


@dataclass(frozen=True)
class TargetProfile:
    """Limits of one target's toolchain."""

    name: str
    """Target name as callers write it."""
    opset: int
    """Highest operator set that the tool takes."""
    ir_version: int
    """IR version to write."""
    wrap_io: bool
    """True when inputs and outputs should be 4-D."""
    wide_head_channels: int
    """Input channels above which an int16 head falls back to int8; 0 when it never does."""
    cpu_operators: frozenset[str]
    """Operators that run on the CPU."""
    refused_operators: frozenset[str]
    """Operators that make the tool fail."""


RDK_X5 = TargetProfile(
    name="rdk-x5",
    opset=11,
    ir_version=7,
    wrap_io=True,
    wide_head_channels=256,
    cpu_operators=frozenset(
        [
            "Neg",
            "Min",
            "Greater",
            "Less",
            "Equal",
            "Not",
            "And",
            "Or",
            "Xor",
            "Softmax",
            "LogSoftmax",
            "ReduceMin",
            "ReduceProd",
            "ReduceSumSquare",
            "ReduceLogSumExp",
            "LRN",
            "LpNormalization",
            "LpPool",
            "ThresholdedRelu",
            "Mod",
            "GatherND",
            "ScatterND",
            "ScatterElements",
            "OneHot",
            "RoiAlign",
            "MaxRoiPool",
            "CumSum",
            "Cast",
            "ReverseSequence",
        ]
    ),
    refused_operators=frozenset(
        [
            "If",
            "Loop",
            "Scan",
            "QuantizeLinear",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "QLinearConv",
            "QLinearMatMul",
            "ConvInteger",
            "MatMulInteger",
            "GridSample",
            "Einsum",
            "Hardmax",
            "Shrink",
            "MeanVarianceNormalization",
            "IsNaN",
            "IsInf",
            "NonZero",
            "Det",
            "Mean",
            "SequenceConstruct",
            "SequenceAt",
            "SequenceInsert",
            "SequenceErase",
            "SequenceEmpty",
            "SplitToSequence",
            "ConcatFromSequence",
            "StringNormalizer",
            "TfIdfVectorizer",
            "NonMaxSuppression",
            "Unique",
            "Compress",
            "Xor",
        ]
    ),
)

TARGETS = {profile.name: profile for profile in (RDK_X5,)}


def find_target(name: str) -> TargetProfile:
    """The profile called `name`.

    Raises:
        Refusal: TARGET_UNKNOWN.
    """
    profile = TARGETS.get(name)
    if profile is None:
        raise Refusal(
            "TARGET_UNKNOWN",
            f"no target named {name!r}",
            remedy=f"targets: {', '.join(TARGETS)}",
            metadata={"target": name},
        )
    return profile
