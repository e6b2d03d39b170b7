"""What a run measures, on simulated boards: percentiles, stability, turns, long runs, and who else was there."""

import asyncio

import numpy as np
import pytest
from boardlift.v1 import board_agent_pb2, toolchain_pb2

from boardlift_board_agent.server_test import _sensors, codes

pytestmark = pytest.mark.toolchain
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED


async def test_somebody_who_comes_to_the_bpu_meanwhile_spoils_the_result(start_agent, call, materials) -> None:
    agent = start_agent(simulator_realtime="1")
    caller = call(agent)
    request = await caller.request(materials["policy8"], perf=board_agent_pb2.PerfSpec(frames=4000, threads=[1]))
    request.ClearField("heldout")
    running = asyncio.create_task(caller.run(request))
    await asyncio.sleep(2)
    _sensors(agent, "shared")
    result = (await running)[-1].result
    found = {f.code: f for f in result.findings}
    assert (
        found["BPU_SHARED"].severity == toolchain_pb2.Finding.SEVERITY_ERROR and "4711" in found["BPU_SHARED"].message
    )
    described = await caller.stub.DescribeBoard(board_agent_pb2.DescribeBoardRequest())
    assert not described.state.in_rotation


async def test_the_cpu_baseline_has_the_statistics_and_the_samples_of_a_board(
    start_agent, call, materials, figure_values
) -> None:
    caller = call(start_agent())
    item = materials["policy8"]
    perf = board_agent_pb2.PerfSpec(frames=120, threads=[1])
    result = await caller.result(
        await caller.request(item, float_model=await caller.upload(item.float_model), perf=perf)
    )
    baseline, board = figure_values(result.cpu_baseline), figure_values(result.latency[0])
    assert set(board) - {"tool_mean_ms"} == set(baseline)
    assert baseline["min_ms"] <= baseline["p50_ms"] <= baseline["p999_ms"] <= baseline["max_ms"]
    assert result.cpu_baseline.frames == 120
    with np.load(await caller.store.fetch(result.cpu_baseline.raw_samples)) as raw:
        assert np.median(raw["latency_ms"]) == pytest.approx(baseline["p50_ms"])
        assert baseline["fps"] == pytest.approx(1000 / raw["latency_ms"].mean())


async def test_unstable_latency_is_said(start_agent, call, materials) -> None:
    caller = call(start_agent(simulator_sick="unstable=0.9"))
    request = await caller.request(materials["policy16"], perf=board_agent_pb2.PerfSpec(frames=40, threads=[1]))
    result = await caller.result(request)
    assert "LATENCY_UNSTABLE" in codes(result)
    assert not result.latency[0].stable


async def test_a_slow_board_is_slower_than_estimated(start_agent, call, materials) -> None:
    caller = call(start_agent(simulator_sick="slow=3"))
    request = await caller.request(materials["policy16"], estimated_latency_us=90.0)
    result = await caller.result(request)
    assert "Simulated: " in next(f.message for f in result.findings if f.code == "SLOWER_THAN_ESTIMATED")


async def test_throttling_inside_a_run_is_unstable(start_agent, call, materials) -> None:
    caller = call(start_agent(simulator_sick="throttled=2"))
    result = await caller.result(await caller.request(materials["policy16"]))
    finding = next(f for f in result.findings if f.code == "LATENCY_UNSTABLE")
    assert "slower" in finding.message


async def test_without_a_sampler_there_are_no_percentiles(start_agent, call, materials, figure_values) -> None:
    caller = call(start_agent(sampler="none"))
    result = await caller.result(await caller.request(materials["policy16"]))
    assert "PERCENTILES_ABSENT" in codes(result)
    assert set(figure_values(result.latency[0])) == {"fps", "mean_ms", "min_ms", "max_ms"}
    assert not result.latency[0].stable


async def test_percentiles_of_injected_jitter_come_back_within_two_percent(
    start_agent, call, materials, figure_values
) -> None:
    caller = call(start_agent(simulator_jitter="0.1", simulator_seed="7"))
    perf = board_agent_pb2.PerfSpec(frames=20000, threads=[1])
    request = await caller.request(materials["policy16"], perf=perf)
    for field in ("heldout", "reference_outputs", "quantized_outputs"):
        request.ClearField(field)
    values = figure_values((await caller.result(request)).latency[0])
    spread = {"p90_ms": 1.281552, "p99_ms": 2.326348, "p999_ms": 3.090232}
    errors = {name: values[name] / (values["p50_ms"] * np.exp(z * 0.1)) - 1 for name, z in spread.items()}
    print({name: f"{error:+.2%}" for name, error in errors.items()})
    assert max(abs(error) for error in errors.values()) < 0.02


async def test_interleaved_comparison_finds_the_faster_model(start_agent, call, materials, figure_values) -> None:
    caller = call(start_agent())
    slow, fast = materials["policy16"], materials["policy8"]
    request = board_agent_pb2.CompareModelsRequest(
        run_id="ab", first_model=await caller.upload(slow.model), second_model=await caller.upload(fast.model), rounds=3
    )
    result = [r async for r in caller.stub.CompareModels(request, timeout=120)][-1].result
    assert result.verdict == board_agent_pb2.CompareResult.VERDICT_SECOND_FASTER
    values = figure_values(result)
    assert values["difference_low"] <= values["difference"] <= values["difference_high"] < 0
    assert len(result.first_rounds_ms) == len(result.second_rounds_ms) == 3
    assert {f.kind for f in result.figures} == {SIMULATED}


async def test_a_long_run_records_heat_and_clocks_over_time(start_agent, call, materials, figure_values) -> None:
    agent = start_agent()
    caller = call(agent)
    perf = board_agent_pb2.PerfSpec(frames=200, threads=[1])
    perf.sustained_duration.FromSeconds(4)
    request = await caller.request(materials["policy16"], perf=perf)
    request.ClearField("heldout")
    running = asyncio.create_task(caller.result(request))
    await asyncio.sleep(3)
    _sensors(agent, "hot")
    result = await running
    values = figure_values(result.sustained)
    assert result.sustained.rounds >= 2
    assert values["slowdown"] == pytest.approx(1.0, abs=0.03)
    with np.load(await caller.store.fetch(result.sustained.curves)) as curves:
        assert set(curves.files) == {"time_s", "latency_ms", "bpu_c", "cpu_c", "bpu_mhz", "cpu_mhz"}
        assert curves["time_s"][-1] >= 4
    assert "TOO_HOT" in codes(result)
