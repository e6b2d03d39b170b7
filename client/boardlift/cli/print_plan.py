"""Print what a job would do: per stage where its result comes from and how long it took before, and who waits."""

from __future__ import annotations

from boardlift.cli.output import Output, seconds_text
from boardlift.models import Failure, JobPlan, StagePlan

_WORDS = {
    "cached": "from the cache",
    "runs": "runs",
    "always_runs": "always runs",
    "after_run": "by the stage before it",
    "unknown": "the service can't be asked",
    "skipped": "does not run",
}


def print_plan(output: Output, plan: JobPlan, *, with_board: bool) -> None:
    """Print a plan for people."""
    rows = [
        (stage.stage, stage.variant, _WORDS.get(stage.answer, stage.answer), *_time(stage)) for stage in plan.stages
    ]
    output.table(("stage", "variant", "result", "takes about", "kind", "from"), rows)
    seconds, unknown = longest_way(plan)
    if seconds or not unknown:
        rest = f"; no past run of {', '.join(unknown)}" if unknown else ""
        word = "At least" if unknown else "About"
        output.line(f"{word} {seconds_text(seconds)} when nobody waits (estimated from past runs){rest}.")
    waits = f", {plan.own_waiting_jobs} of them yours, before this one" if plan.own_waiting_jobs else ""
    output.line(f"Queue: {plan.active_jobs} jobs in work, {plan.waiting_jobs} waiting for their turn{waits}.")
    if with_board:
        queued = f", {plan.board_stages_queued} board stages queued"
        online = f"{plan.boards_free} of {plan.boards_online} online free now"
        output.line(
            f"Boards: {online if plan.boards_online else 'none that fits is online; the job would wait'}{queued}."
        )


def refused(plan: JobPlan) -> list[Failure]:
    """Return why shared stages say no: the job would end there."""
    return [stage.failure for stage in plan.stages if stage.failure and stage.stage in ("ingest", "transform", "check")]


def longest_way(plan: JobPlan) -> tuple[float, list[str]]:
    """Return the seconds of the longest chain of stages, and the stages whose time is not known.

    Variants run side by side; the stages of one variant, and the shared ones, run one after the other.
    """
    chains: dict[str, float] = {}
    unknown: list[str] = []
    for stage in plan.stages:
        if stage.answer in ("cached", "skipped"):
            continue
        if stage.duration is None:
            unknown.append(f"{stage.stage} {stage.variant}".strip())
            continue
        own = stage.variant if stage.stage in ("compile", "simulate", "board") else f" {stage.stage}"
        shared = own.startswith(" ")
        chains[own] = (
            max(chains.get(own, 0.0), stage.duration.value) if shared else chains.get(own, 0.0) + (stage.duration.value)
        )
    variants = max((seconds for name, seconds in chains.items() if not name.startswith(" ")), default=0.0)
    return variants + sum(seconds for name, seconds in chains.items() if name.startswith(" ")), unknown


def _time(stage: StagePlan) -> tuple[str, str, str]:
    if stage.failure:
        return ("", "", f"{stage.failure.code}: {stage.failure.message}")
    if stage.duration is None:
        return ("", "", "" if stage.answer in ("cached", "skipped") else "no past run")
    runs = "1 past run" if stage.past_runs == 1 else f"{stage.past_runs} past runs"
    return (seconds_text(stage.duration.value), stage.duration.kind, f"{runs}, {stage.basis}")
