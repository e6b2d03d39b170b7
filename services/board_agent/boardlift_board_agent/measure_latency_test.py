"""Rounds until the median is known, time limits kept, broken sampler output refused."""

import numpy as np
import pytest
from boardlift.errors import InternalError

from boardlift_board_agent.failures import ToolRun
from boardlift_board_agent.hrt_model_exec import PerfOptions
from boardlift_board_agent.measure_latency import LatencyPlan, fitting_frames, measure_latency, parse_samples
from boardlift_board_agent.parse_report import parse_header


def run_of(text: str) -> ToolRun:
    return ToolRun("perf", 0, 0, False, text, parse_header(text))


class Tools:
    """Prints what the tools print, for a given spread."""

    def __init__(self, sigma: float, mean_ms: float = 2.0) -> None:
        self.sigma, self.mean_ms, self.asked = sigma, mean_ms, []

    async def perf(self, options: PerfOptions) -> ToolRun:
        self.asked.append(options.frames)
        total = self.mean_ms * options.frames
        return run_of(
            f"Running condition:\n  Thread number is: {options.threads}\n  Frame count   is: {options.frames}\n"
            f"  Program run time: {total} ms\nPerf result:\n  Frame totally latency is: {total} ms\n"
            f"  Average    latency    is: {self.mean_ms} ms\n  Frame      rate       is: 500.0 FPS\n"
        )

    async def sample(self, options: PerfOptions) -> ToolRun:
        noise = np.random.default_rng(len(self.asked)).standard_normal(options.frames) * self.sigma
        lines = [f'{{"ms": {v:.6f}}}' for v in self.mean_ms * np.exp(noise)]
        return run_of("\n".join([f'{{"frames": {options.frames}}}', *lines, '{"run_ms": 1}']))


async def test_one_round_is_enough_when_the_board_is_quiet() -> None:
    tools = Tools(0.01)
    got = await measure_latency(LatencyPlan(frames=500), 1, tools.perf, tools.sample)
    assert (got.rounds, tools.asked) == (1, [50, 500])
    assert got.statistics is not None and got.statistics.stable


async def test_more_rounds_when_it_is_not_and_then_says_unstable() -> None:
    tools = Tools(0.8)
    got = await measure_latency(LatencyPlan(frames=100), 1, tools.perf, tools.sample)
    assert got.rounds == 8
    assert got.statistics is not None and not got.statistics.stable


async def test_slow_models_run_fewer_frames_to_keep_the_limit() -> None:
    tools = Tools(0.01, mean_ms=100.0)
    got = await measure_latency(LatencyPlan(frames=10_000, limit_s=10.0), 2, tools.perf, None)
    assert tools.asked == [50, 80]
    assert got.statistics is None
    assert fitting_frames(LatencyPlan(frames=10), 1, 1e6) == 1


@pytest.mark.parametrize(
    "text", ["", '{"frames": 2}\n{"ms": 1}\n{"run_ms": 1}', '{"frames": 1}\n{"ms": 1}', '{"frames']
)
def test_incomplete_sampler_output_is_an_error(text: str) -> None:
    with pytest.raises(InternalError) as caught:
        parse_samples(text)
    assert caught.value.reason == "SAMPLER_UNREADABLE"
