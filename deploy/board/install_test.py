"""The wheelhouse installs without a network, twice, and its agent starts; damage and odd arguments are refused."""

import grp
import importlib.util
import os
import platform
import shlex
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
            wheelhouse, "--prefix", str(tmp_path), "--board-id", "x5-1", "--orchestrator", "lab:7400", "--label", "a=b",
            "--allow-governor", "1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    settings = (tmp_path / "etc/boardlift/agent.env").read_text()
    assert "BOARDLIFT_BOARD_ID=x5-1\n" in settings
    assert settings.count("BOARDLIFT_LABELS=a=b") == 1
    assert (tmp_path / "etc/systemd/system/boardlift-agent.service.d/governor.conf").is_file()
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
        ("--board-id", "x5", "--allow-governor", "yes"),
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


def test_the_drop_in_gives_the_agents_group_the_governors_and_nothing_else(tmp_path: Path) -> None:
    line = next(x for x in (HERE / "governor.conf").read_text().splitlines() if x.startswith("ExecStartPre="))
    program, flag, script = shlex.split(line.removeprefix("ExecStartPre=+"))
    group = grp.getgrgid(os.getgid()).gr_name
    script = script.replace("$$", "$").replace("/sys/", f"{tmp_path}/sys/").replace("chgrp boardlift", f"chgrp {group}")
    cpu = tmp_path / "sys/devices/system/cpu/cpufreq"
    files = [cpu / "policy0/scaling_governor", cpu / "policy4/scaling_governor", cpu / "policy0/scaling_max_freq"]
    files.append(tmp_path / "sys/class/devfreq/3a000000.bpu/governor")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o644)
    subprocess.run([program, flag, script], check=True)
    assert [f"{file.stat().st_mode & 0o777:o}" for file in files] == ["664", "664", "644", "664"]


def test_the_drop_in_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        return  # what it does is tested above
    unit = tmp_path / "boardlift-agent.service"
    text = (
        (HERE / "boardlift-agent.service").read_text().replace("/opt/boardlift/venv/bin/boardlift-agent", "/bin/true")
    )
    unit.write_text(text + (HERE / "governor.conf").read_text())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert "governor" not in done.stderr and "ReadWritePaths" not in done.stderr and "ExecStartPre" not in done.stderr
    assert done.returncode == 0, done.stderr
