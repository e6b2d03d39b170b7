"""Everything a job found out about each variant, in one place. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from boardlift.v1 import compiler_pb2, job_pb2, toolchain_pb2

from boardlift_orchestrator.record import Failure, JobRecord, Stage, StageState


@dataclass(frozen=True)
class VariantFacts:
    """One variant: its stages and their results; a result is None when its stage gave none."""

    spec: compiler_pb2.VariantSpec
    """How it is compiled."""
    stages: Mapping[str, Stage]
    """Its stages by name, those it shares with others included."""
    ingest: Any = None
    """PrepareDatasetResponse."""
    transform: Any = None
    """TransformResult."""
    check: Any = None
    """CheckResult."""
    compiled: Any = None
    """CompileResult."""
    simulated: Any = None
    """SimulateResult."""
    board: Any = None
    """RunResult."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.spec.name)

    @property
    def failed(self) -> tuple[Stage, Failure] | None:
        """The first stage that said no, with why."""
        for stage in self.stages.values():
            if stage.state is StageState.FAILED and stage.failure is not None:
                return stage, stage.failure
        return None

    @property
    def built(self) -> bool:
        """True when there is a compiled model."""
        return self.compiled is not None and not self.compiled.HasField("failure")

    @property
    def board_skipped(self) -> bool:
        """True when the job was told to leave the board out."""
        return self.failed is None and self.stages["board"].state is StageState.SKIPPED

    def findings(self) -> Iterator[tuple[str, toolchain_pb2.Finding]]:
        """Yield (stage, finding) over all results."""
        parts = (
            ("ingest", self.ingest),
            ("transform", self.transform),
            ("check", self.check),
            ("compile", self.compiled),
            ("simulate", self.simulated),
            ("board", self.board),
        )
        for stage, result in parts:
            for finding in result.findings if result is not None else ():
                yield stage, finding

    def errors(self) -> list[tuple[str, toolchain_pb2.Finding]]:
        """Return the findings that fail a variant by default."""
        return [item for item in self.findings() if item[1].severity == toolchain_pb2.Finding.SEVERITY_ERROR]


def gather_facts(job: JobRecord, spec: job_pb2.JobSpec, results: Mapping[str, Any]) -> list[VariantFacts]:
    """Return the facts of each variant in the job's order.

    Args:
        job: The job's record.
        spec: What it was to do.
        results: Whole results by stage key.
    """
    found = []
    for variant in spec.variants:
        label = job.classes.get(variant.name, "")
        names = {
            "ingest": "ingest/",
            "transform": f"transform/{label}",
            "check": f"check/{label}",
            "compile": f"compile/{variant.name}",
            "simulate": f"simulate/{variant.name}",
            "board": f"board/{variant.name}",
        }
        stages = {stage.key: stage for stage in job.stages}
        found.append(
            VariantFacts(
                spec=variant,
                stages={name: stages[key] for name, key in names.items()},
                ingest=results.get(names["ingest"]),
                transform=results.get(names["transform"]),
                check=results.get(names["check"]),
                compiled=results.get(names["compile"]),
                simulated=results.get(names["simulate"]),
                board=results.get(names["board"]),
            )
        )
    return found


def find_figure(figures: Any, name: str) -> toolchain_pb2.Figure | None:
    """Return a figure by name."""
    return next((figure for figure in figures if figure.name == name), None)


def make_figure(name: str, value: float, unit: str, kind: int, source: str) -> toolchain_pb2.Figure:
    """Return a figure of ours."""
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source=source)  # type: ignore[arg-type]


def worst_figure(comparisons: Any, name: str, lowest: bool) -> toolchain_pb2.Figure | None:
    """Return the lowest or highest figure of that name over all outputs; None unless every output has one.

    One that is no number is worse than any number.
    """
    found = [find_figure(item.figures, name) for item in comparisons]
    known = [figure for figure in found if figure is not None]
    if not known or len(known) < len(found):
        return None
    return max(known, key=lambda figure: (math.isnan(figure.value), -figure.value if lowest else figure.value))


def single_thread_latency(board: Any) -> Any:
    """Return the latency result with the fewest threads; None when there is none."""
    return min(board.latency, key=lambda item: item.threads, default=None) if board is not None else None
