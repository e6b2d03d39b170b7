"""The wheelhouse installs without a network, twice, and its agent starts; damage and odd arguments are refused."""

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("build_wheelhouse", HERE / "build_wheelhouse.py")
assert _spec is not None and _spec.loader is not None
build_wheelhouse = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_wheelhouse)

REQUIREMENTS = """# comment
numpy==2.2.6 ; python_full_version < '3.11' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via us
numpy==2.4.6 ; python_full_version == '3.11.*' \\
    --hash=sha256:cc
grpcio==1.85.3 \\
    --hash=sha256:dd
"""


def test_markers_are_those_of_the_board_not_of_this_machine() -> None:
    chosen = build_wheelhouse.select(REQUIREMENTS, "3.10", "aarch64")
    assert chosen == ["numpy==2.2.6 --hash=sha256:aa --hash=sha256:bb", "grpcio==1.85.3 --hash=sha256:dd"]


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheelhouse") / "w"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = [
        sys.executable,
        str(HERE / "build_wheelhouse.py"),
        str(folder),
        "--machine",
        platform.machine(),
        "--python",
        version,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def install(wheelhouse: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": "/nonexistent"}
    return subprocess.run([str(wheelhouse / "install.sh"), *words], env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_installs_upgrades_and_starts(wheelhouse: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = install(
            wheelhouse, "--prefix", str(tmp_path), "--board-id", "x5-1", "--orchestrator", "lab:7400", "--label", "a=b"
        )
        assert done.returncode == 0, done.stderr
    settings = (tmp_path / "etc/boardlift/agent.env").read_text()
    assert "BOARDLIFT_BOARD_ID=x5-1\n" in settings
    assert settings.count("BOARDLIFT_LABELS=a=b") == 1
    agent = tmp_path / "opt/boardlift/venv/bin/boardlift-agent"
    assert not (tmp_path / "opt/boardlift/venv.old").exists()
    shown = subprocess.run([str(agent), "--version"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    environment = {
        "PATH": "/usr/bin:/bin",
        "BOARDLIFT_STATE_DIR": str(tmp_path / "state"),
        "BOARDLIFT_HRT_MODEL_EXEC": "no_tool",
    }
    doctor = subprocess.run([str(agent), "doctor"], env=environment, capture_output=True, text=True)
    assert doctor.returncode == 3
    assert "hrt_model_exec" in doctor.stdout


@pytest.mark.slow
def test_a_damaged_wheelhouse_is_refused(wheelhouse: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(wheelhouse, damaged)
    with (damaged / "agent.env").open("a") as file:
        file.write("x")
    done = install(damaged, "--prefix", str(tmp_path / "p"), "--board-id", "x5-1")
    assert done.returncode == 2
    assert "damaged" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--board-id", "X5"),
        ("--board-id", "a;b"),
        ("--board-id", "x5", "--nats", "$(id)"),
        ("--what", "x"),
        ("--board-id",),
    ],
)
def test_odd_arguments_are_refused_before_anything_is_done(words: tuple[str, ...], tmp_path: Path) -> None:
    done = install(HERE, *words, *(("--prefix", str(tmp_path / "p")) if len(words) != 1 else ()))
    assert done.returncode == 2
    assert not (tmp_path / "p").exists()


HARDENING = (
    "User=boardlift",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "DevicePolicy=closed",
    "SystemCallFilter=@system-service",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
)


def test_the_unit_is_hardened() -> None:
    unit = HERE / "boardlift-agent.service"
    lines = unit.read_text().splitlines()
    assert [line for line in HARDENING if line not in lines] == []
    if shutil.which("systemd-analyze") is None:
        return  # the directives above are all that can be looked at here
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr
