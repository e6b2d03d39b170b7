"""What users may import is a list; a change of it is a decision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import boardlift

EXPORTS = [
    "Artifact",
    "ArtifactFile",
    "Board",
    "BoardliftError",
    "Client",
    "Connection",
    "Figure",
    "Gate",
    "InputFormat",
    "Job",
    "JobEvent",
    "JobInfo",
    "Model",
    "RunOptions",
    "StageClient",
    "Variant",
    "Verdict",
    "__version__",
]


def test_the_export_list():
    assert sorted(boardlift.__all__) == EXPORTS
    assert all(hasattr(boardlift, name) for name in EXPORTS)
    assert boardlift.aio.Client and boardlift.testing.FakeServer and boardlift.datasets.Dataset
    assert {"Client", "aio"} <= set(dir(boardlift))


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = boardlift.nonsense


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("boardlift.errors", "boardlift.client"),
        ("boardlift.v1.job_pb2", "boardlift.client"),
        ("boardlift.client", "numpy"),
        ("boardlift.client", "click"),
    ],
)
def test_imports_stay_light(module, absent):
    code = f"import sys, {module}; sys.exit({absent!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
