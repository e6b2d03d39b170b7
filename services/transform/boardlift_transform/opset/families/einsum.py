"""Einsum: pairwise MatMul between Transposes; Mul where nothing is summed; diagonals by selection.

Before -> after: Einsum("bid,bjd->bij") -> MatMul(x, Transpose(y)). Axes of one role are merged by Reshape only where a
role has more than one axis.

Exactness: the same sums, in MatMul's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from boardlift_transform.opset.errors import NoForm
from boardlift_transform.opset.registry import adapter
from boardlift_transform.opset.step import INTS, Step


@dataclass(frozen=True)
class Term:
    """A value and the label of each of its axes."""

    name: str
    labels: tuple[str, ...]


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Labels of every term and of the result; axes under an ellipsis are called 0, 1, ... counted from the right.

    Args:
        equation: With or without an arrow.
        ranks: Rank of each term.

    Returns:
        Labels of the terms, labels of the result.

    Raises:
        NoForm: The equation doesn't fit the ranks.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms, widest = [], 0
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise NoForm(f"has {len(parts)} terms for {len(ranks)} inputs", "repair the equation")
    for part, rank in zip(parts, ranks, strict=True):
        spare = rank - len(part.replace("...", ""))
        if spare < 0 or ("..." not in part and spare):
            raise NoForm(f"term {part!r} doesn't fit rank {rank}", "repair the equation")
        widest = max(widest, spare)
        terms.append(unfold(part, spare))
    if not arrow:
        counts: dict[str, int] = {}
        for letter in left.replace("...", "").replace(",", ""):
            counts[letter] = counts.get(letter, 0) + 1
        right = ("..." if "..." in left else "") + "".join(sorted(c for c, k in counts.items() if k == 1))
    return terms, unfold(right, widest)


def unfold(part: str, spare: int) -> tuple[str, ...]:
    """Letters of a term with the ellipsis written out."""
    head, dots, tail = part.partition("...")
    middle = [str(i) for i in range(spare - 1, -1, -1)] if dots else []
    return (*head, *middle, *tail)


@adapter("Einsum", 12)
def einsum(step: Step) -> None:
    """Fold the terms from the left, summing each axis as soon as nobody needs it."""
    names = [*step.node.input]
    terms, out = parse(step.attr("equation"), [step.rank(n) for n in names])
    left = [diagonal(step, Term(n, labels)) for n, labels in zip(names, terms, strict=True)]
    value = left[0]
    for i in range(1, len(left) + 1):
        later = {label for t in left[i + 1 :] for label in t.labels} | set(out)
        if i == len(left):
            value = summed(step, value, set(out))
        else:
            first = summed(step, value, later | set(left[i].labels))
            second = summed(step, left[i], later | set(value.labels))
            value = joined(step, first, second, later)
    if set(value.labels) != set(out) or len(out) != len(value.labels):
        raise NoForm("has a result axis that no term has, or twice the same", "repair the equation")
    order = [value.labels.index(label) for label in out]
    if order == sorted(order):
        step.op("Identity", [value.name], step.y())
    else:
        step.op("Transpose", [value.name], step.y(), perm=order)


def diagonal(step: Step, term: Term) -> Term:
    """A label twice in one term: keep where both axes agree."""
    name, labels = term.name, list(term.labels)
    for label in dict.fromkeys(term.labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            size = step.static_shape_from(name, 0)[i]
            dims = [1] * len(labels)
            dims[i] = dims[j] = size
            mask = step.constant(np.eye(size, dtype=bool).reshape(dims))
            name = step.reduce("ReduceSum", step.op("Where", [mask, name, step.like(0, name)]), [j], keepdims=0)
            del labels[j]
    return Term(name, tuple(labels))


def summed(step: Step, term: Term, wanted: set[str]) -> Term:
    """Sum over the axes that nobody wants any more."""
    axes = [i for i, label in enumerate(term.labels) if label not in wanted]
    if not axes:
        return term
    return Term(step.reduce("ReduceSum", term.name, axes, keepdims=0), tuple(k for k in term.labels if k in wanted))


def joined(step: Step, a: Term, b: Term, later: set[str]) -> Term:
    """Product of two terms, summed over the labels that both have and nobody needs later."""
    both = [k for k in a.labels if k in b.labels]
    batch, inner = [k for k in both if k in later], [k for k in both if k not in later]
    rows, columns = [k for k in a.labels if k not in both], [k for k in b.labels if k not in both]
    if not inner:
        order = [*batch, *rows, *columns]
        sides = [spread(step, t, order) for t in (a, b)]
        return Term(step.op("Mul", sides), tuple(order))
    sizes = (
        {k: step.dim(t.name, i) for t in (b, a) for i, k in enumerate(t.labels)} if ragged(rows, inner, columns) else {}
    )
    left = grouped(step, a, batch, rows, inner, sizes)
    right = grouped(step, b, batch, inner, columns, sizes)
    made = product(step, left, right)
    order = [*batch, *rows, *columns]
    if ragged(rows, columns):
        made = to_sizes(step, made, [sizes[k] for k in order])
    return Term(made, tuple(order))


def product(step: Step, left: str, right: str) -> str:
    """MatMul, with small integers in a type that it takes."""
    elem = step.need_elem(left)
    if elem in INTS and elem not in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64):
        wide = [step.cast(v, TensorProto.INT32) for v in (left, right)]
        return step.cast(step.op("MatMul", wide), elem)
    return step.op("MatMul", [left, right])


def spread(step: Step, term: Term, order: list[str]) -> str:
    """Axes in the given order, size 1 where the term lacks one."""
    present = [k for k in order if k in term.labels]
    name = permuted(step, term, present)
    missing = [i for i, k in enumerate(order) if k not in term.labels]
    return step.unsqueeze(name, missing) if missing else name


def permuted(step: Step, term: Term, order: Sequence[str]) -> str:
    """Axes in the given order."""
    perm = [term.labels.index(k) for k in order]
    return term.name if perm == sorted(perm) else step.op("Transpose", [term.name], perm=perm)


def ragged(*roles: list[str]) -> bool:
    """Whether a role has none or several axes, so that merging is needed."""
    return any(len(role) != 1 for role in roles)


def grouped(
    step: Step, term: Term, batch: list[str], first: list[str], second: list[str], sizes: dict[str, str]
) -> str:
    """[batch..., first, second], the axes of a role merged into one."""
    name = permuted(step, term, [*batch, *first, *second])
    if not ragged(first, second):
        return name
    merged = [times(step, [sizes[k] for k in role]) for role in (first, second)]
    return to_sizes(step, name, [*(step.constant([0], np.int64) for _ in batch), *merged])


def times(step: Step, sizes: list[str]) -> str:
    """Product of sizes, a constant where all are."""
    known = [step.const(s) for s in sizes]
    if all(k is not None for k in known):
        return step.constant([int(np.prod([int(k[0]) for k in known if k is not None], dtype=np.int64))], np.int64)
    total = sizes[0]
    for size in sizes[1:]:
        total = step.op("Mul", [total, size])
    return total


def to_sizes(step: Step, name: str, sizes: list[str]) -> str:
    """Reshape to sizes given as int64 [1] values."""
    known = [step.const(s) for s in sizes]
    if all(k is not None for k in known):
        return step.reshape(name, [int(k[0]) for k in known if k is not None])
    return step.op("Reshape", [name, step.op("Concat", sizes, axis=0)], at=step.target)
