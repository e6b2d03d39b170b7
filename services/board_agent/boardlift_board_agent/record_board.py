"""The board before, during and after a measurement, and what of it spoils the result."""

from __future__ import annotations

from boardlift.v1 import board_agent_pb2, toolchain_pb2

from boardlift_board_agent.bench import Desk
from boardlift_board_agent.convert import fact_to_finding, finding, state_message
from boardlift_board_agent.hold_governor import HeldGovernor
from boardlift_board_agent.watch_board import Snapshot

Result = board_agent_pb2.RunResult | board_agent_pb2.CompareResult


async def record_board(desk: Desk, result: Result, job: str, held: HeldGovernor | None, during: list[Snapshot]) -> None:
    """Adds three states (before, the hottest moment, after) and every fact once; what blocks a board is an error.

    Args:
        desk: the work; its `before` is the first state.
        result: gets `states` and `findings`.
        job: shown as the board's user.
        held: the governor that was set for the measurement; None when none was asked for.
        during: the board while it was measured.
    """
    after = await desk.watch.look(running=True)
    hottest = sorted(during, key=lambda s: s.reading.bpu_c or 0.0)[-1:]
    result.states.extend(state_message(s, job, desk.simulated) for s in (desk.before, *hottest, after))
    facts = {fact.code: fact for snapshot in (after, *reversed(during)) for fact in snapshot.facts}
    if held is not None:
        if all(fact.code != "GOVERNOR_OTHER" for snapshot in during for fact in snapshot.facts):
            facts.pop("GOVERNOR_OTHER", None)  # the one that was put back
        result.findings.append(_held(held))
        others = {s.reading.governor or "unknown" for s in during} - {held.wanted}
        if others:
            text = f"The governor was {', '.join(sorted(others))} during the measurement, not {held.wanted} as asked."
            step = "Find what else sets the governor on this board; measure again."
            result.findings.append(finding("GOVERNOR_NOT_AS_ASKED", "error", text, "board", step))
    result.findings.extend(fact_to_finding(fact) for fact in facts.values())


def _held(held: HeldGovernor) -> toolchain_pb2.Finding:
    changed = ", ".join(f"/{name} from {value}" for name, value in held.before.items()) or "nothing had to be changed"
    kept = f"; {', '.join(f'/{name}' for name in held.left)} has no such governor" if held.left else ""
    text = f"Measured under the governor {held.wanted}, put back afterwards: {changed}{kept}."
    return finding("GOVERNOR_HELD", "note", text, "board")
