"""What users of the SDK see: frozen dataclasses, no protobuf.

States and outcomes are plain lower-case words ("running", "pass"); times are aware UTC datetimes.
"""

from boardlift.models.board import Board, ServerInfo, StoreInfo, Tool
from boardlift.models.figure import Artifact, Failure, Figure, Finding, to_plain
from boardlift.models.job import ENDED, JobEvent, JobInfo, LogLine, Progress, Stage
from boardlift.models.plan import JobPlan, StagePlan
from boardlift.models.variant import InputFormat, Variant
from boardlift.models.verdict import Gate, GateResult, VariantVerdict, Verdict

__all__ = [
    "ENDED",
    "Artifact",
    "Board",
    "Failure",
    "Figure",
    "Finding",
    "Gate",
    "GateResult",
    "InputFormat",
    "JobEvent",
    "JobInfo",
    "JobPlan",
    "LogLine",
    "Progress",
    "ServerInfo",
    "Stage",
    "StagePlan",
    "StoreInfo",
    "Tool",
    "Variant",
    "VariantVerdict",
    "Verdict",
    "to_plain",
]
