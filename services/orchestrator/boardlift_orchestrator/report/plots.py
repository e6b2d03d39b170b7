"""Draw the report's plots as SVG text, without scripts, fonts or anything else from outside. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 760
_LABEL = 190
_ROW = 26
_COLORS = {
    "measured": "#1b7f4b",
    "estimated": "#8a6d1a",
    "simulated": "#3367a8",
    "unspecified": "#777",
    "cached": "#9db7d6",
    "failed": "#b3362b",
}


@dataclass(frozen=True)
class Bar:
    """One bar."""

    label: str
    """What it is."""
    value: float
    """How long it is."""
    text: str
    """What is written at its end."""
    kind: str = "measured"
    """Kind of the number; chooses the colour."""


def draw_bars(title: str, bars: Sequence[Bar], logarithmic: bool = False) -> str:
    """Return horizontal bars; "" when there is nothing to draw.

    Args:
        title: For screen readers.
        bars: The bars; values must be finite and not negative.
        logarithmic: Draw by the logarithm, zero as an empty bar.
    """
    shown = [bar for bar in bars if math.isfinite(bar.value) and bar.value >= 0]
    if not shown:
        return ""
    positive = [bar.value for bar in shown if bar.value > 0]
    low, high = (min(positive), max(positive)) if positive else (1.0, 1.0)
    low = min(low, high / 100)  # at least two decades, or a small difference looks large
    room = _WIDTH - _LABEL - 170
    rows = []
    for index, bar in enumerate(shown):
        if logarithmic and bar.value > 0:
            share = 0.05 + 0.95 * math.log10(bar.value / low) / math.log10(high / low)
        else:
            share = bar.value / high if bar.value else 0.0
        y = index * _ROW + 4
        rows.append(_text(_LABEL - 8, y + 13, bar.label, anchor="end"))
        rows.append(_rect(_LABEL, y, max(1.0, share * room), 18, bar.kind, f"{bar.label}: {bar.text}"))
        rows.append(_text(_LABEL + share * room + 8, y + 13, f"{bar.text} ({bar.kind})"))
    return _svg(title, len(shown) * _ROW + 8, rows)


def draw_line(title: str, values: Sequence[tuple[str, float]], kind: str) -> str:
    """Return a line over nodes in order, for example each node's cosine; "" below two points."""
    points = [(name, value) for name, value in values if math.isfinite(value)]
    if len(points) < 2:
        return ""
    low, high = min(v for _, v in points), max(v for _, v in points)
    low, high = (low, high) if high > low else (low - 0.5e-3, high + 0.5e-3)
    height, left, right = 150, 70, 20
    step = (_WIDTH - left - right) / (len(points) - 1)

    def spot(index: int, value: float) -> tuple[float, float]:
        return left + index * step, 10 + (height - 30) * (high - value) / (high - low)

    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (spot(i, v) for i, (_, v) in enumerate(points)))
    parts = [
        f'<polyline points="{path}" fill="none" stroke="{_COLORS[kind]}" stroke-width="1.5"/>',
        _text(left - 6, 14, f"{high:.5f}", anchor="end"),
        _text(left - 6, height - 18, f"{low:.5f}", anchor="end"),
    ]
    for index, (name, value) in enumerate(points):
        x, y = spot(index, value)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_COLORS[kind]}">'
            f"<title>{escape(name)}: {value:.6f}</title></circle>"
        )
    return _svg(title, height, parts)


def draw_timeline(title: str, spans: Sequence[tuple[str, float, float, str]]) -> str:
    """Return stages over time.

    Args:
        title: For screen readers.
        spans: (label, start in seconds, end in seconds, "done", "cached" or "failed").
    """
    shown = [span for span in spans if span[2] >= span[1] > 0]
    if not shown:
        return ""
    begin, end = min(span[1] for span in shown), max(span[2] for span in shown)
    scale = (_WIDTH - _LABEL - 90) / max(end - begin, 1e-3)
    rows = []
    for index, (label, start, stop, state) in enumerate(shown):
        y = index * _ROW + 4
        x, width = _LABEL + (start - begin) * scale, max(1.5, (stop - start) * scale)
        kind = {"cached": "cached", "failed": "failed"}.get(state, "measured")
        text = f"{stop - start:.1f} s{' (stored result)' if state == 'cached' else ''}"
        rows.append(_text(_LABEL - 8, y + 13, label, anchor="end"))
        rows.append(_rect(x, y, width, 18, kind, f"{label}: {text}"))
        inside = x + width > _WIDTH - 90
        rows.append(_text(x - 4 if inside else x + width + 4, y + 13, text, anchor="end" if inside else "start"))
    return _svg(title, len(shown) * _ROW + 8, rows)


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    head = f'<svg role="img" viewBox="0 0 {_WIDTH} {height:.0f}" width="100%"><title>{escape(title)}</title>'
    return head + "".join(parts) + "</svg>"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    color = _COLORS.get(kind, _COLORS["unspecified"])
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="2" fill="{color}">'
    return f"{box}<title>{escape(title)}</title></rect>"
