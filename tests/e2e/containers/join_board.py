"""A board comes from outside the containers, as a real one would: by address, token and identity."""

from __future__ import annotations

import json
import os
import subprocess
import time

from operate import SECRETS, WORK, Broken, cli, compose, expect, run


def check_board_joins() -> None:
    """Let a board's agent come from outside by address, token and identity, and leave again; shut it out."""
    both = ("docker", "compose", "-f", "deploy/compose.yaml", "-f", "deploy/compose.board.yaml")
    run("deploy/make_secrets.py", "board", "x5-test", "--dir", str(SECRETS))
    run(*both, "up", "-d", "--no-build", "--wait", BOARDLIFT_BIND="127.0.0.1")
    compose("restart", "orchestrator")
    mine = SECRETS / "boards/x5-test"
    settings = {
        "BOARD_ID": "x5-test",
        "LISTEN": "127.0.0.1:0",
        "STATE_DIR": f"{WORK}/agent",
        "NATS": f"tls://localhost:{os.environ['BOARDLIFT_NATS_PORT']}",
    }
    settings |= {
        "ORCHESTRATOR": f"localhost:{os.environ['BOARDLIFT_PORT']}",
        "TLS_CA": f"{mine}/ca.crt",
        "TOKEN_FILE": f"{mine}/token",
    }
    settings |= {"NATS_CREDENTIALS": f"{mine}/nats.creds"}
    environment = {f"BOARDLIFT_{key}": value for key, value in settings.items()}
    with (WORK / "agent.log").open("wb") as log:
        agent = subprocess.Popen(
            ["python", "-m", "boardlift_board_agent"],
            env={"PATH": os.environ["PATH"], "SSL_CERT_FILE": f"{mine}/ca.crt", **environment},
            stdout=log,
            stderr=log,
        )
    try:
        wait_board("x5-test", True)
        text = (WORK / "agent.log").read_text()
        end = time.monotonic() + 60
        while '"pulling"' not in text:
            expect(time.monotonic() < end and agent.poll() is None, f"the agent does not pull: {text[-2000:]}")
            time.sleep(0.5)
            text = (WORK / "agent.log").read_text()
    finally:
        agent.terminate()
        agent.wait(30)
    wait_board("x5-test", False)


def wait_board(board: str, present: bool) -> None:
    """Wait until a board is listed as present or as offline."""
    end = time.monotonic() + 90
    while time.monotonic() < end:
        boards = json.loads(cli("boards", "ls", "--json", check=False).stdout or "[]")
        online = any(b["id"] == board and b["online"] for b in boards)
        if online == present:
            return
        time.sleep(1)
    raise Broken(f"{board} is not {'there' if present else 'gone'}: {boards}")
