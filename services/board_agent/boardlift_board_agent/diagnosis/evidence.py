"""What a diagnosis has to go on, and what it says. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from boardlift_board_agent.tensor_spec import TensorSpec

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class NodeFact:
    """A node of the compiled model as the compiler reported it."""

    name: str
    on_cpu: bool
    precision: str
    """`int8`, `int16` or `float`."""
    cosine: float
    """The vendor's cosine of its output; 0 when unknown."""


@dataclass(frozen=True)
class Evidence:
    """Everything known about one model on one set of samples. Arrays are `[n, ...]` over the same samples."""

    specs: tuple[TensorSpec, ...]
    """Tensors of the compiled model."""
    samples: Arrays
    """Inputs as they should be."""
    board: Arrays
    """The board's dequantised outputs on them."""
    reference: Arrays
    """Outputs of the user's float model; may be empty."""
    board_raw: Arrays = field(default_factory=dict)
    """The board's outputs before dequantisation."""
    memory: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    """Dumped memory per output and sample."""
    repeated: Arrays = field(default_factory=dict)
    """The board's outputs on the same samples a second time; empty when not run."""
    quantized: Arrays = field(default_factory=dict)
    """Outputs of the quantised model; empty when not run."""
    user_outputs: Arrays = field(default_factory=dict)
    """What the user's code got."""
    user_inputs: Arrays = field(default_factory=dict)
    """What the user's code fed."""
    mistaken: Mapping[str, Arrays] = field(default_factory=dict)
    """Mistake id -> the board's outputs when that mistake is made with the inputs."""
    others: Mapping[str, Arrays] = field(default_factory=dict)
    """Outputs of other versions or variants, by their name."""
    calibration: Arrays = field(default_factory=dict)
    """Calibration samples."""
    nodes: tuple[NodeFact, ...] = ()
    """Nodes of the compiled model in order."""
    plain_copies: tuple[str, ...] = ()
    """Outputs whose memory shows the plain-copy trace."""
    skew: tuple[str, str] | None = None
    """(runtime, built for) when they differ."""
    bit_equal_code: bool | None = None
    """Compiled code equals the quantised model in the vendor's simulator."""
    compiled_code_ran: bool = True
    """`board` holds answers of the compiled code; False when a stand-in ran the quantised model in its place."""


@dataclass(frozen=True)
class Diagnosis:
    """One cause that explains what was seen."""

    cause: str
    """Stable id, kebab-case."""
    stage: str
    """user-code, calibration, quantiser, compiler, runtime, board, versions or none."""
    confidence: float
    """0 to 1."""
    message: str
    next_step: str
    subject: str = ""
    evidence: tuple[str, ...] = ()
