"""Make a SYNTHETIC dataset for the Go1 joystick policy: seeded numbers, no robot and no simulator behind them.

The model carries the mean and the spread of each of its 48 observations, as training saw them (first Sub and Mul).
Samples are drawn from a smooth first-order process with exactly these statistics, so calibration meets the ranges of
training and neighbouring steps look alike, as in a log. For an accuracy claim about the robot use logs of the robot.

    python make_dataset.py --out go1.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from boardlift.datasets import Dataset, write_dataset
from onnx import numpy_helper

MODEL = Path(__file__).parent / "go1_policy.onnx"
CALIBRATION = 64
HELDOUT = 256
SEED = 5
# Share of a step that is kept in the next one: at 50 Hz a memory of about a fifth of a second.
MEMORY = 0.9
# Steps between two samples; calibration and held-out samples come from two separate stretches.
STRIDE = 5


def read_statistics(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and spread, float64 [48] each, from the model's normalisation."""
    graph = onnx.load(path).graph
    weights = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    mean, factor = (weights[graph.node[index].input[1]] for index in (0, 1))
    return mean.reshape(-1).astype(np.float64), 1.0 / factor.reshape(-1).astype(np.float64)


def draw_stretch(rng: np.random.Generator, samples: int, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return samples, float32 [samples, 48], of one stretch of the process."""
    value = rng.standard_normal(mean.size)
    rows = []
    for step in range(samples * STRIDE):
        if step % STRIDE == 0:
            rows.append(mean + spread * value)
        value = MEMORY * value + (1 - MEMORY**2) ** 0.5 * rng.standard_normal(mean.size)
    return np.array(rows, dtype=np.float32)


def build_dataset() -> Dataset:
    """Return the dataset, `obs` float32 [320, 48]."""
    mean, spread = read_statistics(MODEL)
    rng = np.random.default_rng(SEED)
    stretches = [draw_stretch(rng, count, mean, spread) for count in (CALIBRATION, HELDOUT)]
    document = {
        "synthetic": True,
        "split": {"calibration": CALIBRATION, "heldout": HELDOUT},
        "provenance": {"builder": "go1_joystick/make_dataset.py", "seed": SEED, "memory": MEMORY, "stride": STRIDE},
    }
    return Dataset({"obs": np.concatenate(stretches)}, document)


def main() -> None:
    """Write the dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("go1.npz"), help="file to write")
    path = parser.parse_args().out
    write_dataset(build_dataset(), path)
    print(f"{path}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
