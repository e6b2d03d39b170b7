"""A real agent process on a simulated board, with real compiled models."""

import hashlib
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import numpy as np
import onnxruntime
import pytest
from boardlift.v1 import artifact_pb2, board_agent_pb2, board_agent_pb2_grpc
from boardlift_servicekit.artifacts import LocalStore, RemoteStore

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("simulator_conftest", ROOT / "simulator" / "conftest.py")
assert _spec is not None and _spec.loader is not None
_simulator = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_simulator)
toolchain = _simulator.toolchain
compiled_models = _simulator.compiled_models

_RUN_QUANTIZED = """
import sys, numpy as np
from horizon_tc_ui import HB_ONNXRuntime
session = HB_ONNXRuntime(model_file=sys.argv[1])
data = np.load(sys.argv[2])
count = len(data[data.files[0]])
rows = [session.run_direct(session.output_names, {k: data[k][i] for k in data.files}) for i in range(count)]
np.savez(sys.argv[3], **{n: np.stack([r[j] for r in rows]) for j, n in enumerate(session.output_names)})
"""


def npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


class Materials:
    """One compiled model with samples, float outputs and quantised outputs."""

    def __init__(self, folder: Path, name: str, toolchain: Path, work: Path, samples: int = 4) -> None:
        self.model = folder / name / f"{name}.bin"
        self.calibration = folder / name / "calibration.npz"
        self.quant_info = folder / name / f"{name}_quant_info.json"
        self.quantized = folder / name / f"{name}_quantized_model.onnx"
        self.float_model = folder / name / "model.onnx"
        session = onnxruntime.InferenceSession(str(self.float_model))
        rng = np.random.default_rng(11)
        self.samples = {
            i.name: rng.standard_normal((samples, *i.shape)).astype(np.float32) for i in session.get_inputs()
        }
        names = [o.name for o in session.get_outputs()]
        rows = [session.run(names, {k: v[n] for k, v in self.samples.items()}) for n in range(samples)]
        self.reference = {name: np.stack([row[j] for row in rows]) for j, name in enumerate(names)}
        source, target = work / "in.npz", work / "out.npz"
        np.savez(source, **self.samples)
        environment = {"PATH": f"{toolchain}/bin:/usr/bin:/bin", "HOME": str(work)}
        command = [f"{toolchain}/bin/python", "-c", _RUN_QUANTIZED, str(self.quantized), str(source), str(target)]
        subprocess.run(command, env=environment, cwd=work, check=True, capture_output=True)
        with np.load(target) as data:
            self.quantized_outputs = {key: data[key] for key in data.files}
        if name == "nhwc":  # the compiled model takes channel-last data, its quantised model does not
            self.samples = {k: np.ascontiguousarray(np.moveaxis(v, 2, -1)) for k, v in self.samples.items()}


class Shelf(dict):
    """Materials by model name, made when first asked for."""

    def __init__(self, make) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Materials:
        self[name] = self._make(name)
        return self[name]


@pytest.fixture(scope="session")
def materials(compiled_models: Path, toolchain: Path, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(lambda name: Materials(compiled_models, name, toolchain, tmp_path_factory.mktemp(name)))


class AgentProcess:
    """`boardlift-agent` as a process."""

    def __init__(self, toolchain: Path, folder: Path, **settings: str) -> None:
        self.folder = folder
        bin_dir = Path(sys.executable).parent
        self.port_file = folder / "port"
        self.board_root = folder / "board"
        subprocess.run(
            [str(bin_dir / "boardlift-simulated-board"), str(self.board_root)], check=True, capture_output=True
        )
        values = {
            "board_id": "sim-1",
            "state_dir": str(folder / "state"),
            "board_root": str(self.board_root),
            "hrt_model_exec": "boardlift-hrt-model-exec",
            "tool_path": f"{bin_dir}:/usr/bin:/bin",
            "listen": "127.0.0.1:0",
            "port_file": str(self.port_file),
            "toolchain": str(toolchain),
            "min_free_disk_bytes": "1000000",
            **settings,
        }
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("BOARDLIFT_")}
        self.environment |= {f"BOARDLIFT_{k.upper()}": v for k, v in values.items()}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "AgentProcess":
        self.port_file.unlink(missing_ok=True)
        log = (self.folder / "agent.log").open("ab")
        command = [sys.executable, "-m", "boardlift_board_agent"]
        self.process = subprocess.Popen(command, env=self.environment, stderr=log, cwd=self.folder)
        end = time.monotonic() + 30
        while not self.port_file.is_file():
            assert self.process.poll() is None and time.monotonic() < end, (self.folder / "agent.log").read_text()
            time.sleep(0.05)
        self.address = f"127.0.0.1:{self.port_file.read_text()}"
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(20)


class Caller:
    """A client of one agent."""

    def __init__(self, address: str, folder: Path) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self.store = RemoteStore(self.channel, LocalStore(folder / "client"))
        self.stub = board_agent_pb2_grpc.BoardAgentServiceStub(self.channel)
        self.folder = folder

    async def upload(self, path: Path) -> artifact_pb2.ArtifactRef:
        return await self.store.put_file(path, "application/octet-stream")

    async def request(self, item: Materials, **fields: object) -> board_agent_pb2.RunModelRequest:
        request = board_agent_pb2.RunModelRequest(
            run_id="run",
            job_id="job-1",
            compiled_model=await self.upload(item.model),
            heldout=await self.store.put_bytes(npz(**item.samples), "application/x-npz"),
            reference_outputs=await self.store.put_bytes(npz(**item.reference), "application/x-npz"),
            quantized_outputs=await self.store.put_bytes(npz(**item.quantized_outputs), "application/x-npz"),
            samples=3,
            perf=board_agent_pb2.PerfSpec(frames=500),
        )
        for name, value in fields.items():
            if isinstance(value, (int, float, str)):
                setattr(request, name, value)
            else:
                getattr(request, name).CopyFrom(value)
        return request

    async def run(
        self, request: board_agent_pb2.RunModelRequest, **options: object
    ) -> list[board_agent_pb2.RunModelResponse]:
        return [response async for response in self.stub.RunModel(request, timeout=120, **options)]

    async def result(self, request: board_agent_pb2.RunModelRequest) -> board_agent_pb2.RunResult:
        return (await self.run(request))[-1].result


@pytest.fixture
def start_agent(toolchain: Path, tmp_path: Path):
    started: list[AgentProcess] = []

    def start(**settings: str) -> AgentProcess:
        folder = tmp_path / f"agent{len(started)}"
        folder.mkdir()
        agent = AgentProcess(toolchain, folder, **settings).start()
        started.append(agent)
        return agent

    yield start
    for agent in started:
        if agent.process is not None and agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait()
        shutil.rmtree(agent.folder, ignore_errors=True)


@pytest.fixture
def call(tmp_path: Path):
    callers: list[Caller] = []

    def open_caller(agent: AgentProcess) -> Caller:
        callers.append(Caller(agent.address, tmp_path / hashlib.sha256(agent.address.encode()).hexdigest()[:8]))
        return callers[-1]

    return open_caller


def figures(message: object) -> dict[str, float]:
    return {f.name: f.value for f in message.figures}  # type: ignore[attr-defined]


@pytest.fixture
def figure_values():
    return figures
