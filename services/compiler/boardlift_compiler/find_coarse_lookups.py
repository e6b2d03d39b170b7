"""Find Sin and Cos whose input range is too wide for their table on the BPU; pure.

The tool computes them as tables over the calibrated range. Its own cosine is taken before the table and shows nothing
(0.99998 where the integer model was at 0.86). Measured, one Sin of evenly drawn angles against float, simulated: int8
cosine 0.998 up to 25, 0.994 up to 50, 0.973 up to 100; int16 0.99999 up to 100, 0.863 up to 400.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_reports import NodeQuantization
from boardlift_compiler.parse_tables import NodeRow

PERIODIC = ("Sin", "Cos")
WIDEST = {"int8": 25.0, "int16": 100.0}
"""Largest angle in radians that still has a useful table."""


def find_coarse_lookups(rows: Sequence[NodeRow], quantization: Mapping[str, NodeQuantization]) -> list[Finding]:
    """Return an error per Sin or Cos on the BPU whose threshold lies beyond what its table resolves.

    Args:
        rows: Node table of the build.
        quantization: Thresholds per node, by full name.
    """
    on_bpu = {row.node: row.dtype for row in rows if row.device == "BPU"}
    found = []
    for name, node in quantization.items():
        dtype = on_bpu.get("..." + name[-47:] if len(name) > 50 else name, "")
        angles = [abs(v) for v in node.thresholds[0]] if node.thresholds else []
        limit = WIDEST.get(dtype)
        if node.type in PERIODIC and limit is not None and angles and max(angles) > limit:
            found.append(
                Finding(
                    "LOOKUP_TOO_COARSE",
                    "error",
                    f"{name}: angles reach {max(angles):.0f} rad; its table on the BPU resolves {limit:g} in {dtype}.",
                    name,
                    "Put it and the product in front of it on the CPU (run_on_cpu), or feed sine and cosine as inputs.",
                )
            )
    return found
