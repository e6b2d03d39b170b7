"""Build the policy of this example in code: the size and form of a real one, seeded weights, the same bytes everywhere.

The graph is what a PyTorch export of a legged-gym actor-critic looks like: opset 17, dynamic batch `obs [N, 225]`
(5 frames of 45), normalisation by Sub and Div, an Elu actor 225-512-512-512-12, a critic beside it, and the last
hidden tensor as a debugging output. The head has 512 inputs, more than the 256 the vendor's int16 path takes.

The weights are NOT trained. They are random orthogonal matrices with gains that keep every layer's activations near
unit size on the synthetic logs, so that quantisation meets the ranges a trained policy has. Only exactly rounded IEEE
operations make them (no BLAS, no sin): every machine writes the same file.

    python build_policy.py --out policy.onnx
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAMES = 5
FRAME_SIZE = 45
OBS_SIZE = FRAMES * FRAME_SIZE
ACTOR_WIDTHS = (512, 512, 512)
CRITIC_WIDTHS = (256, 128)
ACTIONS = 12
SEED = 2024
# Makes up for what Elu takes from a unit normal.
HIDDEN_GAIN = 1.25
ACTION_GAIN = 0.8

# Mean and spread of each term of one observation frame over the RL steps of the logs (see make_log.py).
_TERMS = (
    ((0.01, -0.01, 0.03), (0.29, 0.25, 0.21)),
    ((0.0, 0.0, -0.995), (0.05, 0.06, 0.05)),
    ((1.06, 0.02, 0.01), (0.57, 0.22, 0.11)),
    ((0.0, 0.0, 0.07) * 4, (0.06, 0.25, 0.19) * 4),
    ((0.0, 0.0, 0.0) * 4, (0.05, 0.16, 0.14) * 4),
    ((0.0, 0.0, 0.26) * 4, (0.25, 1.07, 0.84) * 4),
)
FRAME_MEAN = tuple(value for mean, _ in _TERMS for value in mean)
FRAME_STD = tuple(value for _, std in _TERMS for value in std)


def orthogonal(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return a random matrix [rows, columns] with orthonormal rows or columns, float64.

    Three rounds of a butterfly of plane rotations between random permutations, applied to the identity. A rotation is
    (1 - t^2, 2t) / (1 + t^2), which needs no sine.
    """
    size = 1 << (max(rows, columns) - 1).bit_length()
    matrix = np.eye(size)
    for _ in range(3):
        for stage in range(size.bit_length() - 1):
            pairs = matrix.reshape(size >> (stage + 1), 2, 1 << stage, size)
            t = rng.uniform(-1.0, 1.0, (pairs.shape[0], pairs.shape[2], 1))
            cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
            upper, lower = pairs[:, 0], pairs[:, 1]
            matrix = np.stack([cosine * upper - sine * lower, sine * upper + cosine * lower], 1).reshape(size, size)
        matrix = matrix[rng.permutation(size)]
    return matrix[:rows, :columns]


class _Graph:
    """Collects nodes and weights under the names a PyTorch export gives them."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(seed)

    def constant(self, name: str, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def op(self, kind: str, inputs: list[str], output: str, name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def linear(self, source: str, layer: tuple[str, int], sizes: tuple[int, int], gain: float, output: str = "") -> str:
        """Add a Gemm with weight [out, in] whose outputs have `gain` times the unit spread of the inputs."""
        module, index = layer
        inputs, outputs = sizes
        # Rows of an orthonormal set keep the energy of a wide input only in part; the factor restores unit spread.
        scale = gain * (max(inputs, outputs) / inputs) ** 0.5
        weight = self.constant(f"{module}.{index}.weight", scale * orthogonal(self._rng, outputs, inputs))
        bias = self.constant(f"{module}.{index}.bias", self._rng.uniform(-0.1, 0.1, outputs))
        name = f"/{module}/{module}.{index}/Gemm"
        return self.op(
            "Gemm", [source, weight, bias], output or f"{name}_output_0", name, alpha=1.0, beta=1.0, transB=1
        )

    def mlp(self, source: str, module: str, widths: tuple[int, ...], output: str = "") -> str:
        """Add Gemm + Elu per width; `output` names the last tensor."""
        size = OBS_SIZE
        for position, width in enumerate(widths):
            source = self.linear(source, (module, 2 * position), (size, width), HIDDEN_GAIN)
            name = f"/{module}/{module}.{2 * position + 1}/Elu"
            last = output if output and position == len(widths) - 1 else f"{name}_output_0"
            source, size = self.op("Elu", [source], last, name, alpha=1.0), width
        return source


def build_model() -> onnx.ModelProto:
    """Return the policy, `obs` float32 [N, 225] -> `actions` [N, 12], `value` [N, 1], `latent` [N, 512]."""
    graph = _Graph(SEED)
    mean = graph.constant("normalizer._mean", np.tile(FRAME_MEAN, FRAMES)[None])
    std = graph.constant("normalizer._std", np.tile(FRAME_STD, FRAMES)[None] + 0.01)
    centred = graph.op("Sub", ["obs", mean], "/normalizer/Sub_output_0", "/normalizer/Sub")
    normal = graph.op("Div", [centred, std], "/normalizer/Div_output_0", "/normalizer/Div")
    latent = graph.mlp(normal, "actor", ACTOR_WIDTHS, "latent")
    graph.linear(latent, ("actor", 2 * len(ACTOR_WIDTHS)), (ACTOR_WIDTHS[-1], ACTIONS), ACTION_GAIN, "actions")
    critic = graph.mlp(normal, "critic", CRITIC_WIDTHS)
    graph.linear(critic, ("critic", 2 * len(CRITIC_WIDTHS)), (CRITIC_WIDTHS[-1], 1), 1.0, "value")
    outputs = {"actions": ACTIONS, "value": 1, "latent": ACTOR_WIDTHS[-1]}
    body = helper.make_graph(
        graph.nodes,
        "main_graph",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, ["N", OBS_SIZE])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name, size in outputs.items()],
        graph.weights,
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], producer_name="boardlift-example")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def write_model(path: Path) -> str:
    """Write the policy to `path` and return the file's SHA-256."""
    data = build_model().SerializeToString(deterministic=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def main() -> None:
    """Write the model and print its digest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"), help="file to write")
    path = parser.parse_args().out
    digest = write_model(path)
    print(f"{path}  {path.stat().st_size} bytes  sha256 {digest}")


if __name__ == "__main__":
    main()
