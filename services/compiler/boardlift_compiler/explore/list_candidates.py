"""List the candidates of a search: forms of the model times precision plans times calibration methods; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from boardlift_compiler.apply_preset import INT16, SOFTMAX_ON_BPU
from boardlift_compiler.read_model import ModelSummary
from boardlift_compiler.spec import CompileSpec, NodeOverride

PLANS = ("int8", "softmax-int8", "softmax-int16", "mixed", "suggested", "int16")
METHODS = ("max", "max-percentile", "kl", "mix", "default")
DEFAULT_PLANS, DEFAULT_METHODS = ("int8", "mixed", "int16"), ("max", "default")
PERCENTILE = 0.99995
"""What the tool's own search tries."""
MAX_CANDIDATES = 200
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
PRECISION_WORD = re.compile(r"set_\w+_int(?:8|16)")


class CandidateError(ValueError):
    """A plan, method or name is unknown; the message says which."""


@dataclass(frozen=True)
class Candidate:
    """One way to build one form of the model."""

    name: str
    """form/plan/method."""
    form: str
    """Form of the model."""
    plan: str
    """Precision plan, or the name of a variant that takes part as it is."""
    spec: CompileSpec
    """How to compile it."""
    nodes: tuple[str, ...] = field(default=())
    """Nodes that the plan puts into int16 by name."""


def without_precision(spec: CompileSpec) -> CompileSpec:
    """Return the spec without what decides precision, so that plans can be compared."""
    words = tuple(w for w in spec.calibration.optimization if not PRECISION_WORD.fullmatch(w))
    nodes = tuple(n for n in spec.nodes if not (n.input_type or n.output_type or n.input_types))
    return replace(spec, preset="", nodes=nodes).with_calibration(optimization=words)


def apply_plan(spec: CompileSpec, plan: str, model: ModelSummary, suggested: Sequence[str] = ()) -> CompileSpec:
    """Return the spec under a precision plan.

    Args:
        spec: Without precision words.
        plan: One of PLANS.
        model: Its model.
        suggested: Nodes for the plan "suggested".

    Raises:
        CandidateError: when the plan is unknown.
    """
    softmax = [n.name for n in model.nodes if n.op_type == "Softmax" and n.name]
    words = spec.calibration.optimization
    if plan == "int8":
        return spec
    if plan == "int16":
        return spec.with_calibration(optimization=(*words, INT16))
    if plan == "mixed":
        return replace(spec, preset="mixed")
    if plan == "softmax-int8":
        return spec.with_calibration(optimization=(*words, *SOFTMAX_ON_BPU))
    if plan == "softmax-int16":
        return replace(spec, nodes=spec.nodes + _in_int16(softmax, spec))
    if plan == "suggested":
        return replace(spec, nodes=spec.nodes + _in_int16(list(dict.fromkeys([*suggested, *softmax])), spec))
    raise CandidateError(f"plan {plan[:40]!r} is not one of {', '.join(PLANS)}")


def _in_int16(names: Sequence[str], spec: CompileSpec) -> tuple[NodeOverride, ...]:
    taken = {n.node for n in spec.nodes}
    return tuple(NodeOverride(name, input_type="int16") for name in names if name not in taken)


def apply_method(spec: CompileSpec, method: str) -> CompileSpec:
    """Return the spec with a calibration method.

    Raises:
        CandidateError: when the method is unknown.
    """
    if method not in METHODS:
        raise CandidateError(f"method {method[:40]!r} is not one of {', '.join(METHODS)}")
    if method == "max-percentile":
        return spec.with_calibration(method="max", max_percentile=PERCENTILE)
    return spec.with_calibration(method=method, max_percentile=0.0)


def list_candidates(
    form: str,
    model: ModelSummary,
    base: CompileSpec,
    plans: Sequence[str],
    methods: Sequence[str],
    variants: Sequence[CompileSpec],
    suggested: Sequence[str] = (),
) -> list[Candidate]:
    """Return the candidates of one form; plans that come to the same spec appear once.

    Args:
        form: Name of the form.
        model: Its model.
        base: What all share.
        plans: Precision plans; empty takes the usual ones.
        methods: Calibration methods; empty takes the usual ones.
        variants: Variants that take part as they are.
        suggested: Nodes for the plan "suggested"; the plan is left out when there are none.

    Raises:
        CandidateError: when something is unknown.
    """
    plain = without_precision(base)
    found: dict[str, Candidate] = {}
    for plan in plans or DEFAULT_PLANS:
        if plan == "suggested" and not suggested:
            continue
        for method in methods or DEFAULT_METHODS:
            spec = replace(apply_method(apply_plan(plain, plan, model, suggested), method), name="")
            nodes = tuple(n.node for n in spec.nodes if n.input_type == "int16")
            found.setdefault(repr(spec), Candidate(f"{form}/{plan}/{method}", form, plan, spec, nodes))
    for variant in variants:
        if not NAME.fullmatch(variant.name):
            raise CandidateError(f"variant name {variant.name[:40]!r} is not usable")
        name = f"{form}/{variant.name}/{variant.calibration.method or 'default'}"
        nodes = tuple(n.node for n in variant.nodes if n.input_type == "int16")
        found.setdefault(repr(replace(variant, name="")), Candidate(name, form, variant.name, variant, nodes))
    return list(found.values())
