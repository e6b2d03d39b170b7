"""What the compose files and Dockerfiles promise, checked without an engine."""

import dataclasses
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import compose
import pytest
from boardlift_orchestrator.retention import RetentionSettings
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE = Path(compose.__path__[0]) / "docker-compose"
OVERLAYS = {
    "alone": [],
    "vendor": ["vendor"],
    "board": ["board"],
    "dial": ["dial"],
    "cluster": ["cluster"],
    "all": ["vendor", "board", "dial", "cluster"],
}
DOCKERFILES = sorted([*ROOT.glob("services/*/Dockerfile"), *ROOT.glob("deploy/images/*/Dockerfile")])
PACKAGES = {
    "orchestrator": "boardlift_orchestrator",
    "transform": "boardlift_transform",
    "compiler": "boardlift_compiler",
    "board-sim": "boardlift_board_agent",
}


def config(overlays, **environment):
    files = [DEPLOY / "compose.yaml", *(DEPLOY / f"compose.{name}.yaml" for name in overlays)]
    command = [str(COMPOSE), *(part for path in files for part in ("-f", str(path))), "--profile", "simulated"]
    known = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "BOARDLIFT_BIND": "192.0.2.7", **environment}
    done = subprocess.run(
        [*command, "config", "--format", "json"], env=known, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=OVERLAYS.values(), ids=OVERLAYS)
def services(request):
    return config(request.param)["services"]


def test_every_container_is_bounded_and_without_rights(services):
    for name, service in services.items():
        assert service["user"] == "10001:10001", name
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"] and "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not service.get("privileged") and not service.get("network_mode") and not service.get("devices"), name
        assert int(service["mem_limit"]) >= 1 << 28 and float(service["cpus"]) > 0 and service["pids_limit"] > 0, name
        assert all(":size=" in entry or "size=" in entry for entry in service["tmpfs"]), name


def test_every_container_restarts_stops_gently_and_rotates_its_log(services):
    for name, service in services.items():
        assert service["restart"] == "unless-stopped" and service["init"] is True, name
        assert re.fullmatch(r"(\d+m)?\d+s|\d+m0s", service["stop_grace_period"]), name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name


def test_nothing_starts_before_what_it_needs_is_healthy(services):
    for name, service in services.items():
        if name.startswith("nats"):
            continue
        waits = service["depends_on"]
        assert waits and all(wait["condition"] == "service_healthy" for wait in waits.values()), name


def test_only_named_volumes_hold_state(services):
    mine = {name: [volume["source"] for volume in service["volumes"]] for name, service in services.items()}
    assert all(volume["type"] == "volume" for service in services.values() for volume in service["volumes"])
    shared = [name for name, volumes in mine.items() if volumes == ["orchestrator"]]
    assert shared in (["orchestrator"], ["orchestrator", "orchestrator-2"])
    rest = [volumes[0] for name, volumes in mine.items() if name not in shared]
    assert len(rest) == len(set(rest)), "two containers write to one volume"


def test_secrets_come_as_files_only(services):
    for name, service in services.items():
        for variable, value in (service.get("environment") or {}).items():
            if re.search("TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS", variable):
                assert str(value).startswith("/run/secrets/"), f"{name} {variable}"


def test_variables_are_settings_of_the_program(services):
    for name, service in services.items():
        if name.startswith("nats"):
            continue
        package = next(package for prefix, package in PACKAGES.items() if name.startswith(prefix))
        own = importlib.import_module(f"{package}.settings").Settings
        keep = RetentionSettings if package == "boardlift_orchestrator" else KeepSettings
        known = {f.name for cls in (own, ServerSettings, ChannelSettings, keep) for f in dataclasses.fields(cls)}
        used = {
            key.removeprefix("BOARDLIFT_").lower() for key in service["environment"] if key.startswith("BOARDLIFT_")
        }
        assert used <= known, f"{name}: {used - known}"


def test_alone_it_is_reached_from_this_machine_only():
    published = {
        (name, port["host_ip"])
        for name, service in config([], BOARDLIFT_BIND="")["services"].items()
        for port in service.get("ports", [])
    }
    assert published == {(name, "127.0.0.1") for name in ("orchestrator", "transform", "compiler")}
    whole = config([])
    assert whole["networks"]["inside"]["internal"] is True
    assert set(whole["services"]["nats"]["networks"]) == {"inside"}


def test_boards_need_an_address_to_come_to():
    command = [
        str(COMPOSE),
        "-f",
        str(DEPLOY / "compose.yaml"),
        "-f",
        str(DEPLOY / "compose.board.yaml"),
        "config",
        "-q",
    ]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "address that the boards reach" in done.stderr


def test_a_cluster_keeps_three_copies():
    services = config(["cluster"])["services"]
    orchestrators = [s["environment"] for n, s in services.items() if n.startswith("orchestrator")]
    assert [e["BOARDLIFT_NATS_REPLICAS"] for e in orchestrators] == ["3", "3"]
    for name, service in services.items():
        if not name.startswith(("nats", "orchestrator")):
            assert service["environment"]["BOARDLIFT_ARTIFACTS"] == "orchestrators:7400", name
    joined = [s["networks"]["inside"]["aliases"] for n, s in services.items() if n.startswith("orchestrator")]
    assert joined == [["orchestrators"]] * 2 and "edge" in services["orchestrator-2"]["networks"]
    assert len({s["environment"]["BOARDLIFT_NATS_NAME"] for n, s in services.items() if n.startswith("nats")}) == 3


def test_every_setting_is_explained():
    used = {name for path in DEPLOY.glob("compose*.yaml") for name in re.findall(r"\$\{(\w+)", path.read_text())}
    told = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.M))
    assert {name for name in used if not name.endswith("_2")} == told


def test_the_backup_holds_every_volume_but_the_boards_cache():
    kept = re.search(r'^volumes="(.*)"$', (DEPLOY / "backup.sh").read_text(), re.M).group(1).split()
    assert set(kept) == set(config([])["volumes"]) - {"board-sim-1"}


def test_dockerfiles_are_clean():
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(hadolint), *map(str, DOCKERFILES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda p: p.parent.name)
def test_dockerfiles_keep_the_rules(path):
    text = path.read_text()
    bases = re.findall(r"^ARG \w+_IMAGE=(\S+)$", text, re.M)
    assert bases and all(re.search(r":v?\d+\.\d+\.\d+", base) for base in bases), "a base is not pinned exactly"
    stages = set(re.findall(r" AS (\S+)$", text, re.M))
    assert all(b in stages or b.startswith("${") for b in re.findall(r"^FROM (\S+)", text, re.M))
    assert re.findall(r"^USER (\S+)$", text, re.M)[-1] == "10001:10001"
    assert "HEALTHCHECK" in text and "org.opencontainers.image.licenses" in text and "# syntax" not in text
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        missing = [source for source in line.split() if not source.startswith("--") and not (ROOT / source).exists()]
        assert not missing, f"COPY of what is not there: {missing}"


def test_the_stand_ins_carry_the_names_of_the_bases():
    engine = (Path(__file__).parent / "engine.sh").read_text()
    for path in DOCKERFILES:
        for name, base in re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", path.read_text(), re.M):
            assert name == "VENDOR_IMAGE" or f"={base}\n" in engine, f"{path}: {base}"
