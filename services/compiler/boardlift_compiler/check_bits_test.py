"""The bit check without the vendor's simulator: what is compared, what can't be, and how many run at once."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from boardlift_compiler import check_bits as module
from boardlift_compiler.check_bits import BitCheck, check_bits, find_fragile
from boardlift_compiler.read_bin import BinNode, BinTensor, CompiledModel
from boardlift_compiler.read_model import ModelSummary, Node
from boardlift_compiler.simulate_code import SimulatorError
from boardlift_compiler.simulate_outcome import SimulateOutcome
from boardlift_compiler.spec import CompileSpec

NODE = BinNode("sub0", "BPU", ("x",), ("y",))


class Simulator:
    """Doubles its input and knows how many runs went at the same time."""

    def __init__(self, pause_s: float = 0.0, fails_at: int = -1, aborted: bool = False) -> None:
        self.pause_s, self.fails_at, self.aborted = pause_s, fails_at, aborted
        self.running = self.most = self.ended = self.started = 0

    async def __call__(self, toolchain: Any, folder: Any, code: Any, node: str, inputs: Any, outputs: Any) -> list[Any]:
        self.started += 1
        number = self.started
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            # Later samples end first: the order of the answers must not depend on it.
            await asyncio.sleep(self.pause_s / number)
            if number == self.fails_at:
                raise SimulatorError("hbdk-sim ended with 2", aborted=self.aborted)
        finally:
            self.running -= 1
        self.ended += 1
        return [inputs[0][0].astype(np.int64).ravel() * 2]


@pytest.fixture
def check(folder, monkeypatch):
    """Check made-up tensors by a made-up simulator."""

    async def run(
        simulator: Simulator, tensors: dict[str, Any], count: int, lanes: int = 1, batch: int = 1, fragile: str = ""
    ) -> Any:
        monkeypatch.setattr(module, "simulate_node", simulator)
        shape = (batch, 1, 2, 2)
        compiled = CompiledModel(
            "m", (NODE,), {"x": BinTensor("int8", shape), "y": BinTensor("int8", shape)}, b"code", {}
        )
        borders = {"x": ("x", "int8"), "y": ("y", "int8")}
        np.savez(folder.path / "tensors.npz", **{f"t{list(borders).index(k)}": v for k, v in tensors.items()})
        outcome = SimulateOutcome()
        steps: list[tuple[int, int]] = []
        room = asyncio.Semaphore(lanes)
        bits = BitCheck(None, compiled, {}, CompileSpec(), folder, borders, count, room, fragile)  # type: ignore[arg-type]
        await check_bits(bits, outcome, lambda step, fraction, done, total: steps.append((done, total)))
        return outcome, steps

    return run


def samples(count: int) -> np.ndarray:
    return np.arange(count * 4, dtype=np.int8).reshape(count, 1, 2, 2)


async def test_samples_run_side_by_side_up_to_the_lanes_and_keep_their_order(check):
    x = samples(8)
    simulator = Simulator(0.02)
    outcome, steps = await check(simulator, {"x": x, "y": x * 2}, 8, lanes=3)
    assert simulator.most == 3
    assert outcome.bit_exact and outcome.bits[0].samples == 8 and not outcome.findings
    assert steps[-1] == (8, 8) and [done for done, _ in steps] == sorted(done for done, _ in steps)


async def test_a_difference_is_an_error_at_its_sample(check):
    x, y = samples(4), samples(4) * 2
    y[2, 0, 1, 1] += 3
    outcome, _ = await check(Simulator(0.01), {"x": x, "y": y}, 4, lanes=4)
    (bit,) = outcome.bits
    assert (bit.different, bit.max_difference, bit.not_compared) == (1, 3, "")
    assert bit.first.startswith("sample 2")
    assert [(f.code, f.severity) for f in outcome.findings] == [("COMPILED_CODE_DIFFERS", "error")]
    assert "balance-padding" not in outcome.findings[0].remedy and "one build" in outcome.findings[0].remedy


async def test_a_tensor_that_the_quantised_model_lacks_is_not_compared_and_says_why(check):
    outcome, _ = await check(Simulator(), {"x": samples(2)}, 2)
    (bit,) = outcome.bits
    assert not outcome.bit_exact and not bit.equal
    assert (bit.samples, bit.different) == (0, 0)
    assert bit.not_compared == "the quantised model has no tensor y"
    assert [(f.code, f.severity) for f in outcome.findings] == [("COMPILED_CODE_NOT_COMPARED", "warning")]


async def test_fewer_samples_than_the_code_takes_at_once_are_not_compared(check):
    simulator = Simulator()
    outcome, _ = await check(simulator, {"x": samples(3), "y": samples(3)}, 3, batch=4)
    assert simulator.started == 0
    assert outcome.bits[0].not_compared == "the code takes 4 samples at once and there are 3"


async def test_a_simulator_that_fails_stops_the_others_and_is_the_failure(check):
    simulator = Simulator(0.05, fails_at=2)
    outcome, _ = await check(simulator, {"x": samples(6), "y": samples(6) * 2}, 6, lanes=2)
    assert outcome.failure is not None and outcome.failure.code == "SIMULATION_FAILED"
    assert simulator.running == 0 and simulator.started < 6


@pytest.mark.parametrize(
    ("fragile", "aborted", "code", "subject"),
    [
        ("top", True, "COMPILED_CODE_ABORTS", "top"),
        ("top", False, "SIMULATION_FAILED", "sub0"),
        ("", True, "SIMULATION_FAILED", "sub0"),
    ],
)
async def test_code_that_is_known_to_die_is_named(check, fragile, aborted, code, subject):
    simulator = Simulator(fails_at=1, aborted=aborted)
    outcome, _ = await check(simulator, {"x": samples(2), "y": samples(2) * 2}, 2, fragile=fragile)
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.subject) == (code, subject)


def test_only_nodes_on_the_bpu_are_fragile():
    nodes = [
        Node(n, t, "", (), ())
        for n, t in (
            ("a", "Gather"),
            ("b", "HzQuantizedTopK"),
            ("c", "Gather"),
            ("d", "Add"),
            ("e", "GatherElements"),
        )
    ]
    compiled = CompiledModel("m", (NODE, BinNode("c", "Gather", (), ())), {}, b"", {})
    assert find_fragile(compiled, ModelSummary(8, {}, "g", (), (), tuple(nodes), {})) == "a, b, e"
