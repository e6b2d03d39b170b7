"""`boardlift-agent compare`: two compiled models in turns (ABAB...) on this board, without any server."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from boardlift.errors import InvalidInputError
from boardlift.v1 import board_agent_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.compare_models import compare_models
from boardlift_board_agent.server import make_agent
from boardlift_board_agent.settings import Settings

_WORDS = {
    board_agent_pb2.CompareResult.VERDICT_FIRST_FASTER: "first is faster",
    board_agent_pb2.CompareResult.VERDICT_SECOND_FASTER: "second is faster",
    board_agent_pb2.CompareResult.VERDICT_UNDECIDED: "undecided",
}


def read_words(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words after `compare`."""
    parser = argparse.ArgumentParser(prog="boardlift-agent compare", description=__doc__)
    add = parser.add_argument
    add("first", type=Path, help="compiled model (.bin)")
    add("second", type=Path, help="the other one")
    add("--rounds", type=int, default=10, help="rounds per model, 2 to 100")
    add("--frames", type=int, default=200, help="frames per round")
    add("--threads", type=int, default=1, help="1 to 8")
    add("--json", action="store_true")
    return parser.parse_args(list(words))


async def run_comparison(own: Settings, options: argparse.Namespace) -> int:
    """Measure and print.

    Args:
        own: the agent's settings; they say which board and which tool.
        options: from `read_words`.

    Returns:
        0 when one is faster, 2 when a model is refused, 5 when the interval holds 0 or the board spoilt the figures.

    Raises:
        BoardliftError: the board or a file does not allow it.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "artifacts")
        agent = await make_agent(Settings(**{**vars(own), "state_dir": Path(folder) / "state"}), store, "comparison")
        request = board_agent_pb2.CompareModelsRequest(
            run_id="local",
            rounds=options.rounds,
            frames=options.frames,
            threads=options.threads,
        )
        for field in ("first", "second"):
            path = getattr(options, field)
            if not path.is_file():
                raise InvalidInputError(f"There is no file {path}.", reason="FILE_MISSING", remedy="Correct the path.")
            getattr(request, f"{field}_model").CopyFrom(await store.put_file(path, "application/octet-stream"))
        result = await compare_models(request, agent.parts, Emitter(lambda event: None))
    return _show(result, agent.watch.simulated, options.json)


def _show(result: board_agent_pb2.CompareResult, simulated: bool, as_json: bool) -> int:
    if result.HasField("failure"):
        print(f"{result.failure.code}: {result.failure.message}  -> {result.failure.remedy}")
        return 2
    kind = "simulated" if simulated else "measured"
    value = {figure.name: figure.value for figure in result.figures}
    spoilt = [f for f in result.findings if f.severity == f.SEVERITY_ERROR]
    if as_json:
        findings = [{"code": f.code, "message": f.message} for f in result.findings]
        print(json.dumps({"verdict": _WORDS[result.verdict], "kind": kind, **value, "findings": findings}, indent=2))
    else:
        low, high = (f"{value[f'difference_{end}']:+.2%}" for end in ("low", "high"))
        print(f"{_WORDS[result.verdict]}: second against first {value['difference']:+.2%} ({low} to {high}), {kind}")
        print(f"median of the rounds: {value['first_ms']:.4g} ms, {value['second_ms']:.4g} ms, {kind}")
        for item in spoilt:
            print(f"{item.code}: {item.message}  -> {item.remedy}")
    return 5 if spoilt or result.verdict == result.VERDICT_UNDECIDED else 0
