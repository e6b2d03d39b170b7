"""`boardlift-agent diagnose`: a diagnosis of the user's own files on this board, without any server."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, board_agent_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Emitter

from boardlift_board_agent.diagnose_model import diagnose_model
from boardlift_board_agent.server import make_agent
from boardlift_board_agent.settings import Settings

_FILES = {
    "model": "compiled_model",
    "samples": "samples",
    "reference": "reference_outputs",
    "quantized": "quantized_outputs",
    "quantized_model": "quantized_model",
    "user_outputs": "user_outputs",
    "user_inputs": "user_inputs",
    "calibration": "calibration",
}


def read_words(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words after `diagnose`."""
    parser = argparse.ArgumentParser(prog="boardlift-agent diagnose", description=__doc__)
    add = parser.add_argument
    add("--model", type=Path, required=True, help="compiled model (.bin)")
    add("--samples", type=Path, required=True, help="right inputs, .npz, one array [N, ...] per input")
    add("--reference", type=Path, help="outputs of the float ONNX on them, .npz by output name")
    add("--quantized", type=Path, help="outputs of the quantised ONNX on them, .npz")
    add("--quantized-model", type=Path, help="quantised ONNX, for a simulated board")
    add("--user-outputs", type=Path, help="what your code got, .npz by output name")
    add("--user-inputs", type=Path, help="what your code fed, .npz by input name")
    add("--calibration", type=Path, help="calibration samples, .npz by input name")
    add("--other", action="append", default=[], metavar="NAME=FILE", help="outputs of another version or variant, .npz")
    add("--samples-limit", type=int, default=4, help="samples to look at")
    add("--json", action="store_true")
    return parser.parse_args(list(words))


async def run_diagnosis(own: Settings, options: argparse.Namespace) -> int:
    """Diagnose and print.

    Args:
        own: the agent's settings; they say which board and which tool.
        options: from `read_words`.

    Returns:
        0 when everything agrees, 1 when a cause was found.

    Raises:
        BoardliftError: the board or a file does not allow it.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "artifacts")
        settings = Settings(**{**vars(own), "state_dir": Path(folder) / "state"})
        agent = await make_agent(settings, store, "diagnosis")
        request = await _request(store, options)
        result = await diagnose_model(request, agent.parts, Emitter(lambda event: None))
    if options.json:
        print(json.dumps([_plain(item) for item in result.diagnoses], indent=2))
    else:
        _print(result)
    return 0 if [d.cause for d in result.diagnoses] == ["consistent"] else 1


async def _request(store: LocalStore, options: argparse.Namespace) -> board_agent_pb2.DiagnoseModelRequest:
    request = board_agent_pb2.DiagnoseModelRequest(run_id="local", sample_limit=options.samples_limit)
    for option, field in _FILES.items():
        path = getattr(options, option)
        if path is not None:
            getattr(request, field).CopyFrom(await _put(store, path))
    for pair in options.other:
        name, separator, path = pair.partition("=")
        if not separator:
            raise InvalidInputError(
                f"--other takes NAME=FILE, not {pair!r}.",
                reason="OPTION_INVALID",
                remedy="Write `--other name=file.npz`.",
            )
        request.other_outputs.add(name=name, artifact=await _put(store, Path(path)))
    return request


async def _put(store: LocalStore, path: Path) -> artifact_pb2.ArtifactRef:
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}.", reason="FILE_MISSING", remedy="Correct the path.")
    return await store.put_file(path, "application/octet-stream")


def _plain(item: board_agent_pb2.Diagnosis) -> dict[str, object]:
    return {
        "cause": item.cause,
        "stage": item.stage,
        "confidence": round(item.confidence, 3),
        "message": item.message,
        "subject": item.subject,
        "evidence": list(item.evidence),
        "next_step": item.next_step,
    }


def _print(result: board_agent_pb2.DiagnoseResult) -> None:
    if result.HasField("failure"):
        print(f"{result.failure.code}: {result.failure.message}  -> {result.failure.remedy}")
        return
    for item in result.diagnoses:
        print(f"{item.cause}  ({item.stage}, confidence {item.confidence:.2f})  {item.subject}")
        print(f"    {item.message}")
        for fact in item.evidence:
            print(f"    - {fact}")
        print(f"    -> {item.next_step}")
