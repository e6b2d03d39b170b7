"""Generate the SYNTHETIC robot logs of this example: no robot was involved, the numbers come from formulas and a seed.

A log is a `steps.jsonl`: one control step of 20 ms per line, with the fields

    t           seconds since the start of the log
    state       what was in charge: "STAND", "RL" or "DAMP"
    obs_single  45 numbers, one observation frame of the policy:
                angular velocity * 0.25 (3), projected gravity (3), command * (2, 2, 0.25) (3),
                joint position - default (12), joint velocity * 0.05 (12), last action (12)

Each log trots by a command schedule, falls back to STAND and DAMP between runs, loses some steps (a stalled logger),
and the last one ends in half a line (a logger that was switched off): what a dataset builder meets in the field.

    python make_log.py --out logs
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PERIOD_S = 0.02
JOINTS = 12
# Trot: front right moves with rear left, front left with rear right.
LEG_PHASE = (0.0, math.pi, math.pi, 0.0)
# Share of the stride amplitude per joint of a leg: hip, thigh, calf.
JOINT_SWING = (0.06, 0.32, 0.45)


@dataclass(frozen=True)
class Segment:
    """One stretch of a log under one state."""

    state: str
    """What is in charge."""
    steps: int
    """Length in control steps."""
    command: tuple[float, float, float]
    """Forward, sideways (m/s) and yaw (rad/s) command."""


@dataclass(frozen=True)
class LogPlan:
    """What one log contains."""

    name: str
    """File stem."""
    seed: int
    """Seed of the noise."""
    roughness: float
    """Size of the disturbances; 1 is flat ground."""
    segments: tuple[Segment, ...]
    """Stretches in order."""
    lost_steps: tuple[tuple[int, int], ...]
    """(first, count) of steps the logger lost."""
    cut_off: bool = False
    """End in half a line."""


REST = (0.0, 0.0, 0.0)
PLANS = (
    LogPlan(
        "synthetic_walk",
        11,
        1.0,
        (
            Segment("STAND", 60, REST),
            Segment("RL", 420, (0.6, 0.0, 0.0)),
            Segment("STAND", 40, REST),
            Segment("RL", 380, (1.0, 0.0, 0.1)),
            Segment("DAMP", 30, REST),
        ),
        ((310, 7),),
    ),
    LogPlan(
        "synthetic_turn",
        12,
        1.2,
        (
            Segment("STAND", 50, REST),
            Segment("RL", 300, (0.3, 0.0, 0.8)),
            Segment("RL", 300, (0.3, 0.2, -0.8)),
            Segment("STAND", 30, REST),
            Segment("RL", 200, (0.0, -0.3, 0.5)),
        ),
        ((200, 3), (700, 12)),
    ),
    LogPlan(
        "synthetic_rough",
        13,
        2.0,
        (
            Segment("STAND", 40, REST),
            Segment("RL", 500, (0.5, 0.0, 0.0)),
            Segment("DAMP", 50, REST),
            Segment("STAND", 40, REST),
            Segment("RL", 250, (0.8, 0.1, -0.2)),
        ),
        ((333, 5),),
        cut_off=True,
    ),
)


class Robot:
    """A trotting quadruped made of sines and first-order noise; never more than a stand-in for a log."""

    def __init__(self, rng: np.random.Generator, roughness: float) -> None:
        """Start standing still."""
        self._rng = rng
        self._roughness = roughness
        self._phase = 0.0
        self._effort = 0.0
        self._command = np.zeros(3)
        self._noise = np.zeros(6)
        self._joint_noise = np.zeros(JOINTS)
        self._position = np.zeros(JOINTS)
        self._action = np.zeros(JOINTS)

    def step(self, segment: Segment) -> np.ndarray:
        """Advance one control step and return the observation frame, float64 [45]."""
        walking = segment.state == "RL"
        self._command += 0.1 * (np.array(segment.command) - self._command)
        self._effort += 0.08 * (float(walking) - self._effort)
        speed = float(np.abs(self._command[:2]).sum()) + 0.3 * abs(float(self._command[2]))
        self._phase += 2 * math.pi * (1.6 + 0.7 * speed) * PERIOD_S
        self._noise = 0.9 * self._noise + 0.05 * self._roughness * self._rng.standard_normal(6)
        self._joint_noise = 0.8 * self._joint_noise + 0.02 * self._roughness * self._rng.standard_normal(JOINTS)
        target = self._effort * (self._swing(speed) + self._joint_noise)
        position = self._position + 0.45 * (target - self._position)
        velocity = (position - self._position) / PERIOD_S
        frame = np.concatenate(
            [self._body(), self._command * (2.0, 2.0, 0.25), position, velocity * 0.05, self._action]
        )
        self._position, self._action = position, np.clip(4.0 * target, -4.0, 4.0) * float(walking)
        return frame

    def _swing(self, speed: float) -> np.ndarray:
        legs = []
        for leg, offset in enumerate(LEG_PHASE):
            angle = self._phase + offset
            side = 1.0 if leg % 2 else -1.0
            hip = JOINT_SWING[0] * math.sin(angle) + 0.1 * side * float(self._command[1])
            thigh = JOINT_SWING[1] * (0.5 + speed) * math.sin(angle + 0.4) + 0.05 * side * float(self._command[2])
            calf = JOINT_SWING[2] * (0.5 + speed) * max(0.0, math.sin(angle + 1.2)) - 0.1
            legs += [hip, thigh, calf]
        return np.array(legs)

    def _body(self) -> np.ndarray:
        rate = self._effort * np.array([0.35, 0.25, 0.1]) * np.sin([self._phase, 2 * self._phase, self._phase + 1.0])
        rate += self._noise[:3]
        rate[2] += 0.25 * float(self._command[2])
        roll = 0.04 * math.sin(self._phase) * self._effort + 0.3 * float(self._noise[3])
        pitch = 0.03 * math.sin(2 * self._phase) * self._effort + 0.3 * float(self._noise[4])
        gravity = [math.sin(pitch), -math.sin(roll) * math.cos(pitch), -math.cos(roll) * math.cos(pitch)]
        return np.concatenate([rate, gravity])


def log_lines(plan: LogPlan) -> Iterator[str]:
    """Yield the lines of one log, without line ends."""
    robot = Robot(np.random.default_rng(plan.seed), plan.roughness)
    lost = {first + i for first, count in plan.lost_steps for i in range(count)}
    index = 0
    for segment in plan.segments:
        for _ in range(segment.steps):
            frame = robot.step(segment)
            if index not in lost:
                values = [round(float(value), 3) + 0.0 for value in frame]
                record = {"t": round(index * PERIOD_S, 3), "state": segment.state, "obs_single": values}
                yield json.dumps(record, separators=(",", ":"))
            index += 1


def write_logs(folder: Path) -> list[Path]:
    """Write all logs into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for plan in PLANS:
        text = "\n".join(log_lines(plan)) + "\n"
        if plan.cut_off:
            text = text[:-120]
        path = folder / f"{plan.name}.steps.jsonl"
        path.write_text(text, encoding="ascii")
        paths.append(path)
    return paths


def main() -> None:
    """Write the logs and say what they hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "logs", help="folder to write to")
    for path in write_logs(parser.parse_args().out):
        print(f"{path}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
