"""Real compiled models for the tests, made once per version of the builder with the real toolchain."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUILDER = ROOT / "simulator" / "testdata" / "compile_models.py"


@pytest.fixture(scope="session")
def toolchain() -> Path:
    where = Path(os.environ.get("BOARDLIFT_TOOLCHAIN", ROOT / ".boardlift" / "toolchain"))
    if not (where / "bin" / "hb_mapper").exists():
        message = f"the vendor toolchain is not at {where}; run `make toolchain`"
        if os.environ.get("BOARDLIFT_WITHOUT_TOOLCHAIN") == "1":
            pytest.skip(message)
        pytest.fail(message)
    return where


class CompiledModels:
    """`models / "policy8"` is the folder of a compiled model, made when it is first asked for.

    All of them at once take longer than one test may on a busy machine.
    """

    def __init__(self, toolchain: Path) -> None:
        version = hashlib.sha256(BUILDER.read_bytes()).hexdigest()[:12]
        self._folder = ROOT / ".boardlift" / "test-models" / version
        self._folder.mkdir(parents=True, exist_ok=True)
        self._environment = {**os.environ, "BOARDLIFT_TOOLCHAIN": str(toolchain)}

    def __truediv__(self, name: str) -> Path:
        where = self._folder / name
        if not where.is_dir():
            command = [sys.executable, str(BUILDER), str(self._folder), name]
            subprocess.run(command, env=self._environment, check=True)
        return where


@pytest.fixture(scope="session")
def compiled_models(toolchain: Path) -> CompiledModels:
    """Compiled models by name."""
    return CompiledModels(toolchain)
