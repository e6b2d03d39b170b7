from __future__ import annotations

import os
import subprocess
import sys

import pytest
from boardlift.errors import InvalidInputError
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings

from boardlift_board_agent.dial_mode import check_mode, dial_address
from boardlift_board_agent.doctor import _mode
from boardlift_board_agent.settings import AllSettings, Settings

SOMEWHERE = "192.0.2.1:7400"


def settings(listen="127.0.0.1:0", **own):
    return AllSettings(Settings(**own), ServerSettings(listen=listen), ChannelSettings())


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (settings(mode="push"), "MODE_INVALID"),
        (settings(mode="dial"), "DIAL_WITHOUT_ORCHESTRATOR"),
        (settings(mode="dial", orchestrator=SOMEWHERE, listen="0.0.0.0:7403"), "DIAL_ADDRESS_MISSING"),
        (settings(mode="dial", orchestrator=SOMEWHERE, listen="[::]:7403"), "DIAL_ADDRESS_MISSING"),
        (settings(mode="dial", orchestrator=SOMEWHERE, listen="unix:/run/agent"), "DIAL_ADDRESS_MISSING"),
        (settings(mode="dial", orchestrator=SOMEWHERE, dial_address="192.0.2.7"), "DIAL_ADDRESS_INVALID"),
        (settings(mode="dial", orchestrator=SOMEWHERE, dial_address="192.0.2.7:0"), "DIAL_ADDRESS_INVALID"),
        (settings(mode="dial", orchestrator=SOMEWHERE, dial_address="http://x5:7403"), "DIAL_ADDRESS_INVALID"),
    ],
)
def test_settings_under_which_nobody_could_call_are_refused(made, reason):
    with pytest.raises(InvalidInputError) as caught:
        check_mode(made)
    assert caught.value.reason == reason
    assert "BOARDLIFT_" in caught.value.remedy or "192.0.2.7:7403" in caught.value.remedy


def test_a_board_that_pulls_needs_none_of_it():
    check_mode(settings(listen="0.0.0.0:7403"))


@pytest.mark.parametrize(
    ("listen", "given", "address"),
    [
        ("127.0.0.1:0", "", "127.0.0.1:5061"),
        ("x5.lab:7403", "", "x5.lab:5061"),
        ("[2001:db8::7]:0", "", "[2001:db8::7]:5061"),
        ("0.0.0.0:7403", "x5.lab:7403", "x5.lab:7403"),
        ("127.0.0.1:0", "[2001:db8::7]:1", "[2001:db8::7]:1"),
    ],
)
def test_where_it_is_dialled(listen, given, address):
    assert dial_address(settings(listen, dial_address=given), 5061) == address


@pytest.mark.parametrize(
    ("made", "state", "words"),
    [
        (settings(), "missing", "no NATS"),
        (settings(nats=("nats://x5:4222",)), "ok", "pull: takes work from nats://x5:4222"),
        (settings("192.0.2.7:7403", mode="dial", orchestrator=SOMEWHERE), "ok", "calls 192.0.2.7:7403"),
        (settings(mode="dial", orchestrator=SOMEWHERE, dial_address="x5.lab:1"), "ok", "calls x5.lab:1"),
        (settings("unix:/x", mode="dial", orchestrator=SOMEWHERE, dial_address="x5.lab:1"), "ok", "calls x5.lab:1"),
        (settings(mode="dial"), "fail", "must register somewhere"),
        (settings("unix:/run/agent", mode="dial", orchestrator=SOMEWHERE), "fail", "unix:/run/agent"),
    ],
)
def test_the_doctor_says_how_work_comes(made, state, words):
    check = _mode(made)
    assert check.state == state and words in check.detail
    assert bool(check.remedy) is (state != "ok")


def test_the_program_says_so_and_ends(tmp_path):
    environment = {"PATH": os.environ["PATH"], "BOARDLIFT_STATE_DIR": str(tmp_path), "BOARDLIFT_MODE": "dial"}
    command = [sys.executable, "-m", "boardlift_board_agent"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "DIAL_WITHOUT_ORCHESTRATOR" in done.stderr.splitlines()[-1]


def test_help_names_the_choice():
    command = [sys.executable, "-m", "boardlift_board_agent", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "BOARDLIFT_MODE" in done.stdout
    assert "BOARDLIFT_DIAL_ADDRESS" in done.stdout
