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


@pytest.fixture(scope="session")
def compiled_models(toolchain: Path) -> Path:
    """Folder with one sub-folder per compiled model."""
    version = hashlib.sha256(BUILDER.read_bytes()).hexdigest()[:12]
    folder = ROOT / ".boardlift" / "test-models" / version
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "BOARDLIFT_TOOLCHAIN": str(toolchain)}
    subprocess.run([sys.executable, str(BUILDER), str(folder)], env=environment, check=True)
    return folder
