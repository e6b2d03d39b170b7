"""Render the report as one self-contained HTML page: inline style, inline SVG, nothing from outside. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from boardlift_orchestrator.report.plots import Bar, draw_bars, draw_line, draw_timeline

_TEMPLATES: Final = Path(__file__).parent / "templates"
_ERRORS: Final = ("cosine", "max_abs", "mean_abs", "l1", "l2", "chebyshev", "sqnr_db")


def render_html(report: dict[str, Any]) -> str:
    """Return the page for a report as built by `build_report`; every text in it is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = show_number
    environment.filters["size"] = show_size
    template = environment.get_template("report.html.j2")
    return template.render(report=report, plots=_plots(report), error_names=_ERRORS, pick=_pick, worst=_worst_nodes)


def show_number(value: Any) -> str:
    """Return a number for reading: six significant digits, thousands apart for whole ones."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ")
    return f"{value:.6g}"


def show_size(value: int) -> str:
    """Return a number of bytes for reading."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value} B"


def _pick(figures: Sequence[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((figure for figure in figures if figure["name"] == name), None)


def _worst_nodes(nodes: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    known = [node for node in nodes if node["cosine"] is not None]
    return sorted(known, key=lambda node: float(node["cosine"]))[:count]


def _plots(report: dict[str, Any]) -> dict[str, Any]:
    return {
        "latency": Markup(draw_bars("Estimated latency per variant", _latency_bars(report))),  # noqa: S704
        "error": Markup(draw_bars("Largest error per variant and output", _error_bars(report), logarithmic=True)),  # noqa: S704
        "timeline": Markup(draw_timeline("Stages over time", _spans(report))),  # noqa: S704
        "nodes": {variant["name"]: Markup(_node_line(variant)) for variant in report["variants"]},  # noqa: S704
    }


def _latency_bars(report: dict[str, Any]) -> list[Bar]:
    bars = []
    for variant in report["variants"]:
        figure = _pick(variant["figures"], "estimated_latency_us")
        if figure is not None:
            bars.append(Bar(variant["name"], figure["value"], f"{show_number(figure['value'])} us", figure["kind"]))
        board = _pick(variant["figures"], "p50_ms")
        if board is not None:
            text = f"{show_number(board['value'])} ms"
            bars.append(Bar(f"{variant['name']}, board p50", board["value"] * 1000, text, board["kind"]))
    return bars


def _error_bars(report: dict[str, Any]) -> list[Bar]:
    bars = []
    for variant in report["variants"]:
        for output in (variant["simulate"] or {}).get("outputs", []):
            figure = _pick(output["figures"], "max_abs")
            if figure is not None and isinstance(figure["value"], int | float):
                label = f"{variant['name']}, {output['output']}"
                bars.append(Bar(label, float(figure["value"]), show_number(figure["value"]), figure["kind"]))
    return bars


def _node_line(variant: dict[str, Any]) -> str:
    nodes = (variant["compile"] or {}).get("nodes", [])
    values = [(node["node"], float(node["cosine"])) for node in nodes if node["cosine"] is not None]
    return draw_line("The tool's cosine per node", values, "simulated")


def _spans(report: dict[str, Any]) -> list[tuple[str, float, float, str]]:
    spans = []
    for stage in report["stages"]:
        state = "failed" if stage["state"] == "failed" else "cached" if stage["cached"] else "done"
        label = f"{stage['stage']} {stage['variant']}".strip()
        spans.append((label, stage["start_s"], stage["end_s"], state))
    return spans
