"""`boardlift-agent doctor`: what this machine has of what an agent needs, one line each, with the remedy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import grpc
from boardlift.errors import BoardliftError, InvalidInputError
from boardlift.v1 import toolchain_pb2, toolchain_pb2_grpc
from boardlift_servicekit.channels import connect

from boardlift_board_agent.board_tool import BoardTool, passed_variables
from boardlift_board_agent.dial_mode import DIAL, check_mode, dial_address
from boardlift_board_agent.find_sampler import find_sampler
from boardlift_board_agent.health import HealthLimits
from boardlift_board_agent.hold_governor import GovernorKeeper
from boardlift_board_agent.settings import AllSettings
from boardlift_board_agent.watch_board import BoardWatch

_DEVICES = ("dev/bpu", "dev/bpu_core0", "dev/ion")


@dataclass(frozen=True)
class Check:
    """One line of the doctor."""

    name: str
    state: str
    """`ok`, `missing` (the agent works with less) or `fail` (it does not work)."""
    detail: str
    remedy: str = ""


async def examine(settings: AllSettings) -> list[Check]:
    """Looks at everything the agent needs.

    Args:
        settings: as the agent would run with.
    """
    own = settings.own
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tool = BoardTool(
            own.hrt_model_exec,
            own.tool_path,
            find_sampler(own.sampler, own.hrt_model_exec, own.tool_path, own.board_root),
            passed_variables(dict(os.environ)),
        )
        keeper = GovernorKeeper(own.board_root, own.state_dir / "governor.json", own.allow_governor)
        watch = BoardWatch(own.board_root, work, tool, HealthLimits(hot_c=own.hot_c, governor=own.governor))
        await watch.start()
        snapshot = await watch.look()
    checks = [
        _runtime(watch, own.hrt_model_exec, own.tool_path),
        _board(watch),
        *_devices(own.board_root, watch.simulated),
        _sampler(tool),
        _baseline(),
    ]
    checks += [Check(f.code.lower(), "fail" if f.blocking else "missing", f.message, f.remedy) for f in snapshot.facts
               if f.code != "RUNTIME_MISSING"]  # fmt: skip
    checks += _governor(keeper)
    checks.append(_state_folder(own.state_dir))
    checks.append(_mode(settings))
    checks.append(await _orchestrator(settings))
    return checks


def _runtime(watch: BoardWatch, program: str, search_path: str) -> Check:
    if watch.version is None:
        return Check(
            "hrt_model_exec",
            "fail",
            f"{program} does not start" + ("" if "/" in program else f"; looked for in {search_path}"),
            "Install the board's runtime, or set BOARDLIFT_HRT_MODEL_EXEC to its absolute path; a bare name is looked"
            " for in BOARDLIFT_TOOL_PATH only.",
        )
    kind = "SIMULATED" if watch.version.simulated else "real"
    return Check("hrt_model_exec", "ok", f"{kind}, version {watch.version.dnn or 'not printed'}")


def _board(watch: BoardWatch) -> Check:
    facts = watch.facts
    if facts.model is None:
        return Check(
            "board", "missing", f"not an RDK board; absent: {', '.join(facts.absent)}", "Run this on the board."
        )
    more = f"; absent: {', '.join(facts.absent)}" if facts.absent else ""
    return Check("board", "ok", f"{facts.model}, SoC {facts.soc or '?'}, OS {facts.os_version or '?'}{more}")


def _devices(root: Path, simulated: bool) -> list[Check]:
    if simulated:
        return []
    checks = []
    for name in _DEVICES:
        path = root / name
        if not path.exists():
            checks.append(Check(f"/{name}", "missing", "absent", "Load the board's kernel modules."))
        elif not os.access(path, os.R_OK | os.W_OK):
            checks.append(
                Check(f"/{name}", "fail", "not readable and writable", "Add the agent's user to the device's group.")
            )
        else:
            checks.append(Check(f"/{name}", "ok", "open"))
    return checks


def _sampler(tool: BoardTool) -> Check:
    if not tool.sampler:
        return Check(
            "sampler",
            "missing",
            "no per-frame timer: no percentiles",
            "Install hbm_runtime or hobot_dnn (board image).",
        )
    found = shutil.which(tool.sampler[0], path=tool.search_path)
    return Check(
        "sampler", "ok" if found else "fail", " ".join(tool.sampler), "" if found else "Correct BOARDLIFT_SAMPLER."
    )


def _baseline() -> Check:
    if importlib.util.find_spec("onnxruntime") is None:
        return Check(
            "cpu baseline", "missing", "onnxruntime is not installed", "Install boardlift-board-agent[baseline]."
        )
    return Check("cpu baseline", "ok", "onnxruntime is there")


def _governor(keeper: GovernorKeeper) -> list[Check]:
    if not keeper.permitted:
        return []
    try:
        keeper.check("performance")
    except BoardliftError as error:
        return [Check("governor", "fail", error.message, error.remedy)]
    return [Check("governor", "ok", "runs may set it; it is put back")]


def _state_folder(folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check("state folder", "ok", f"{folder} is writable")
    except OSError as error:
        return Check("state folder", "fail", f"{folder}: {error.strerror}", "Correct BOARDLIFT_STATE_DIR.")


def _mode(settings: AllSettings) -> Check:
    own = settings.own
    try:
        check_mode(settings)
        if own.mode == DIAL:
            port = settings.server.listen.rpartition(":")[2]
            address = dial_address(settings, int(port) if port.isdigit() else 0)
            return Check("mode", "ok", f"dial: the orchestrator calls {address}")
    except InvalidInputError as error:
        return Check("mode", "fail", error.message, error.remedy)
    if own.nats:
        return Check("mode", "ok", f"pull: takes work from {', '.join(own.nats)}")
    return Check("mode", "missing", "pull, but no NATS is set: takes no work", "Set BOARDLIFT_NATS.")


async def _orchestrator(settings: AllSettings) -> Check:
    address = settings.own.orchestrator
    if not address:
        return Check(
            "orchestrator", "missing", "none set: serves gRPC, registers nowhere", "Set BOARDLIFT_ORCHESTRATOR."
        )
    try:
        channel = connect(address, settings.channel)
    except InvalidInputError as error:
        return Check("orchestrator", "fail", error.message, error.remedy)
    try:
        stub = toolchain_pb2_grpc.ServerServiceStub(channel)
        info = await stub.GetServerInfo(toolchain_pb2.GetServerInfoRequest(), timeout=5)
        return Check("orchestrator", "ok", f"{address} answers, version {info.version}")
    except grpc.aio.AioRpcError as error:
        return Check(
            "orchestrator", "fail", f"{address}: {error.code().name}", "Start it, or correct BOARDLIFT_ORCHESTRATOR."
        )
    finally:
        await channel.close()
