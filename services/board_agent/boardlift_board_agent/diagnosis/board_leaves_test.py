"""Leaves that lie in the board, the runtime, the compiled code or the versions: sick simulated boards, real models."""

import copy
import subprocess
from pathlib import Path

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2

from boardlift_board_agent.diagnosis.tree_test import UserCode, ask, right_inputs

pytestmark = pytest.mark.toolchain
Request = board_agent_pb2.DiagnoseModelRequest

_CPU_NODES = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from boardlift_simulator.read_model import read_model
print(*(n.name for n in read_model(Path(sys.argv[2])).nodes if n.op_type not in ("BPU", "Quantize", "Dequantize")))
"""


def causes(result) -> list[str]:
    return [d.cause for d in result.diagnoses]


@pytest.fixture(scope="module")
def agent(toolchain, tmp_path_factory):
    from services.board_agent.conftest import AgentProcess  # the conftest of this service

    process = AgentProcess(toolchain, tmp_path_factory.mktemp("agent")).start()
    yield process
    process.stop()


@pytest.mark.parametrize(("sick", "confidence"), [("skew", 0.6), ("skew,wrong", 0.9)])
async def test_an_older_runtime_is_named_and_blamed_when_the_answers_differ(
    start_agent, call, materials, sick, confidence
) -> None:
    result = await ask(call(start_agent(simulator_sick=sick)), materials["policy8"])
    first = result.diagnoses[0]
    assert (first.cause, first.confidence) == ("version-skew", confidence)
    assert "3.15.47.0" in first.message and "3.15.55.0" in first.message
    assert len(result.diagnoses) == (1 if sick == "skew" else 2)


async def test_memory_written_without_its_stride(start_agent, call, materials) -> None:
    result = await ask(call(start_agent(simulator_sick="misread")), materials["padded"])
    assert set(causes(result)) == {"runtime-stride-ignored"}
    assert result.diagnoses[0].confidence > 0.9


async def test_a_board_that_answers_differently_the_second_time(start_agent, call, materials, tmp_path) -> None:
    agent = start_agent(simulator_sick="restless", simulator_state=str(tmp_path / "seen"))
    assert causes(await ask(call(agent), materials["policy8"])) == ["board-not-repeatable"]


async def test_a_board_that_always_answers_wrong(start_agent, call, materials) -> None:
    agent = start_agent(simulator_sick="wrong")
    result = await ask(call(agent), materials["policy8"], bit_check=Request.BIT_CHECK_OUTCOME_EQUAL)
    assert causes(result) == ["board-differs"]


async def test_compiled_code_that_is_not_the_quantised_model(agent, call, materials, toolchain, tmp_path) -> None:
    item = materials["pool16"]
    simulated = UserCode(toolchain, tmp_path, item.model).run(right_inputs(item))["y"]
    off = np.abs(simulated[0] - item.quantized_outputs["y"][0]).reshape(8, 4, 4).max(axis=0)
    assert off[:3, :3].max() < 1e-5 < off[3].max()  # only the padded edge is wrong
    result = await ask(call(agent), item, bit_check=Request.BIT_CHECK_OUTCOME_DIFFERENT)
    assert causes(result) == ["compiled-code-differs"]


@pytest.mark.parametrize(
    ("bits", "cause", "confidence"), [("EQUAL", "consistent", 0.5), ("DIFFERENT", "compiled-code-differs", 0.8)]
)
async def test_a_stand_in_that_does_not_run_the_code_says_nothing_about_it(
    agent, call, materials, bits, cause, confidence
) -> None:
    caller, item = call(agent), materials["threshold"]
    check = Request.BitCheckOutcome.Value(f"BIT_CHECK_OUTCOME_{bits}")
    result = await ask(caller, item, bit_check=check, quantized_model=item.quantized)
    assert result.engine == "runtime"
    assert [(d.cause, d.confidence) for d in result.diagnoses] == [(cause, confidence)]
    assert "compiled code" in result.diagnoses[0].message
    assert not any("board against quantised" in fact for fact in result.diagnoses[0].evidence)


async def test_cpu_kernels_that_round_differently(agent, call, materials, toolchain) -> None:
    item = materials["softend"]
    simulator = Path(__file__).resolve().parents[4] / "simulator"
    command = [f"{toolchain}/bin/python", "-c", _CPU_NODES, str(simulator), str(item.model)]
    on_cpu = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    nodes = [board_agent_pb2.DiagnosedNode(name=name, on_cpu=True, precision="float") for name in on_cpu]
    result = await ask(call(agent), item, nodes=nodes, sample_limit=4)
    assert causes(result) == ["cpu-fallback-numerics"]
    assert "softmax" in result.diagnoses[0].subject.lower()
    assert 0 < max(f.value for c in result.board_vs_quantized for f in c.figures if f.name == "max_abs") < 1e-5


async def test_the_board_runs_another_rounds_model(agent, call, materials) -> None:
    item, older = copy.copy(materials["policy8"]), materials["older"]
    item.model = older.model
    result = await ask(call(agent), item, others={"round-15k": same_samples(older, item)})
    assert causes(result) == ["wrong-model-version"]
    assert result.diagnoses[0].subject == "round-15k"


def same_samples(other, item) -> dict[str, np.ndarray]:
    assert all(np.array_equal(other.samples[n], a) for n, a in item.samples.items())
    return other.quantized_outputs
