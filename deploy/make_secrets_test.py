import asyncio
import json
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import nats
import nats.errors
import nkeys
import pytest
from boardlift_servicekit.access import TokenTable
from boardlift_servicekit.streams import QueueLimits, ensure_board_consumers, ensure_streams

DEPLOY = Path(__file__).resolve().parent
sys.path.insert(0, str(DEPLOY))

from nats_identities import KeyPair, board_permissions  # noqa: E402


def make(folder, *words):
    command = [sys.executable, str(DEPLOY / "make_secrets.py"), *words, "--dir", str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab") / "secrets"
    assert make(folder, "init", "--name", "lab.example", "--name", "192.0.2.7").returncode == 0
    assert make(folder, "board", "x5-1").returncode == 0
    assert make(folder, "board", "x5-2").returncode == 0
    assert make(folder, "user", "alice", "--scopes", "read").returncode == 0
    return folder


def tree(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_second_run_changes_nothing_but_the_list_of_identities(lab):
    before = tree(lab)
    assert make(lab, "init").returncode == 0
    after = tree(lab)
    assert {p for p in before if before[p] != after.get(p)} <= {lab / "nats/identities.conf"}
    assert set(before) == set(after)


def test_only_the_owner_gets_at_anything(lab):
    assert stat.S_IMODE(lab.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (lab / "offline").iterdir()} == {0o600}
    assert (lab / ".gitignore").read_text() == "*\n"


def test_certificates_hold_for_the_given_names_and_no_other(lab):
    for server in ("orchestrator", "nats"):
        command = ["openssl", "verify", "-CAfile", str(lab / "ca.crt"), "-verify_hostname"]
        for name, good in ((server, 0), (f"{server}-2", 0), ("lab.example", 0), ("localhost", 0), ("evil.example", 2)):
            done = subprocess.run([*command, name, str(lab / server / "tls.crt")], capture_output=True, check=False)
            assert done.returncode == good, name
    renewed = [lab / "compiler/tls.crt", lab / "boards/x5-1/tls.crt"]
    before = [path.read_bytes() for path in renewed]
    assert make(lab, "renew", "--name", "lab.example").returncode == 0
    assert all(path.read_bytes() != old for path, old in zip(renewed, before, strict=True))


def test_a_dialled_board_is_known_by_its_certificate_and_knows_its_caller(lab):
    command = ["openssl", "verify", "-CAfile", str(lab / "ca.crt"), "-verify_hostname"]
    named, caller = ("x5-1.board",), ("x5-1.board", "-purpose", "sslclient")
    for words, good in ((named, 0), (("x5-2.board",), 2), (("x5-1",), 2), (("localhost",), 2), (caller, 2)):
        done = subprocess.run([*command, *words, str(lab / "boards/x5-1/tls.crt")], capture_output=True, check=False)
        assert done.returncode == good, words
    calls = [(lab / "orchestrator/dial" / board).read_text().strip() for board in ("x5-1", "x5-2")]
    table = TokenTable.load(lab / "boards/x5-1/tokens")
    assert table.authenticate(f"Bearer {calls[0]}").scopes == {"write"}
    for other in (calls[1], (lab / "orchestrator/token").read_text().strip()):
        with pytest.raises(Exception, match="no known token"):
            table.authenticate(f"Bearer {other}")
    for server in ("orchestrator", "compiler"):
        with pytest.raises(Exception, match="no known token"):
            TokenTable.load(lab / server / "tokens").authenticate(f"Bearer {calls[0]}")


def test_a_tokens_file_stays_the_same_file_so_that_whoever_has_it_mounted_sees_the_change(lab):
    tokens = lab / "compiler/tokens"
    before, inode = tokens.read_text(), tokens.stat().st_ino
    assert make(lab, "user", "carol").returncode == 0
    assert "carol " in tokens.read_text() and tokens.stat().st_ino == inode
    assert make(lab, "revoke", "carol").returncode == 0
    assert tokens.read_text() == before and tokens.stat().st_ino == inode and tokens.stat().st_mode & 0o777 == 0o444


def test_boards_tokens_open_the_orchestrator_only(lab):
    board = (lab / "boards/x5-1/token").read_text().strip()
    alice = (lab / "users/alice/token").read_text().strip()
    found = TokenTable.load(lab / "orchestrator/tokens").authenticate(f"Bearer {board}")
    assert (found.name, found.scopes) == ("x5-1", {"board"})
    assert TokenTable.load(lab / "compiler/tokens").authenticate(f"Bearer {alice}").scopes == {"read"}
    with pytest.raises(Exception, match="no known token"):
        TokenTable.load(lab / "compiler/tokens").authenticate(f"Bearer {board}")


@pytest.mark.parametrize("words", [("board", "Not A Name"), ("user", "../x"), ("user", "a", "--scopes", "root")])
def test_bad_names_and_scopes_are_refused(lab, words):
    assert make(lab, *words).returncode == 2


@pytest.mark.parametrize("kind", ["operator", "account", "user"])
def test_keys_are_nkeys(kind):
    pair = KeyPair.make(kind)
    theirs = nkeys.from_seed(pair.seed_text.encode())
    assert theirs.public_key.decode() == pair.public and pair.public[0] == kind[0].upper()
    assert theirs.verify(b"text", pair.sign(b"text"))
    assert KeyPair.read(pair.seed_text) == pair
    with pytest.raises(ValueError, match="nkey"):
        KeyPair.read(pair.seed_text[:-2] + "AA")


class Server:
    """A real nats-server with the lab's certificates and identities."""

    def __init__(self, lab, store):
        self.lab, self.store = lab, store
        self.ports = store / "ports"
        self.ports.mkdir()
        (store / "server.conf").write_text(
            f'port: -1\nhost: 127.0.0.1\nports_file_dir: "{self.ports}"\njetstream {{ store_dir: "{store}/js" }}\n'
            f"include {os.path.relpath(lab / 'nats/identities.conf', store)}\n"
            f'tls {{ cert_file: "{lab}/nats/tls.crt"\n key_file: "{lab}/nats/tls.key" }}\n'
        )
        binary = Path(sys.executable).parent / "nats-server"
        self.log = (store / "log").open("wb")
        self.child = subprocess.Popen([str(binary), "-c", str(store / "server.conf")], stderr=self.log)

    async def connect(self, credentials, prefix="_INBOX", wait=3.0):
        while not (found := list(self.ports.glob("*.ports"))):
            assert self.child.poll() is None, (self.store / "log").read_text()
            await asyncio.sleep(0.05)
        address = json.loads(found[0].read_text())["nats"][0].removeprefix("nats://").removeprefix("tls://")
        tls = ssl.create_default_context(cafile=str(self.lab / "ca.crt"))
        options = {"tls": tls, "user_credentials": str(credentials), "inbox_prefix": prefix, "allow_reconnect": False}
        self.errors = []

        async def note(error):
            self.errors.append(error)

        return await asyncio.wait_for(nats.connect(f"tls://{address}", error_cb=note, **options), wait)

    def stop(self):
        self.child.kill()
        self.child.wait()
        self.log.close()


@pytest.fixture
def server(lab, tmp_path):
    running = Server(lab, tmp_path)
    yield running
    running.stop()


async def test_a_board_reaches_its_own_queue_and_nothing_else(lab, server):
    master = await server.connect(lab / "orchestrator/nats.creds")
    js = master.jetstream()
    await ensure_streams(js, QueueLimits())
    for board in ("x5-1", "x5-2"):
        await ensure_board_consumers(js, board, "rdk-x5", QueueLimits())
        await js.publish(f"task.board.id.{board}.j-1", board.encode())
    board = await server.connect(lab / "boards/x5-1/nats.creds", "_INBOX_x5-1")
    inbox = board.new_inbox()
    mine = await board.subscribe(inbox)
    await board.publish("$JS.API.CONSUMER.MSG.NEXT.TASK.board-x5-1", b"1", reply=inbox)
    task = await mine.next_msg(timeout=2)
    assert task.data == b"x5-1"
    await task.ack_sync(timeout=2)
    await board.jetstream().publish("res.x5-1.j-1", b"done", timeout=2)
    await board.jetstream().publish("$KV.PRESENCE.x5-1", b"here", timeout=2)
    refused = (
        "$JS.API.CONSUMER.MSG.NEXT.TASK.board-x5-2",
        "$JS.API.STREAM.DELETE.TASK",
        "$JS.API.DIRECT.GET.KV_JOB",
        "res.x5-2.j-1",
        "$KV.PRESENCE.x5-2",
        "$KV.JOB.j-1",
        "task.compile.j-1",
        "evt.job.j-1.job",
    )
    for subject in refused:
        await board.publish(subject, b"x", reply=inbox)
    for subject in (">", "task.>", "_INBOX_x5-2.>", "ctl.board.x5-2"):
        await board.subscribe(subject)
    await board.flush()
    await asyncio.sleep(0.3)
    denied = " ".join(str(error) for error in server.errors).lower()
    for subject in (*refused, "_inbox_x5-2.>", "ctl.board.x5-2"):
        assert subject.lower() in denied, subject
    await board.close()
    await master.close()


async def test_strangers_and_revoked_boards_stay_out(lab, server, tmp_path):
    (tmp_path / "other").mkdir()
    assert make(tmp_path / "other/lab", "init").returncode == 0
    with pytest.raises((nats.errors.Error, OSError, asyncio.TimeoutError)):
        await server.connect(tmp_path / "other/lab/boards/sim-1/nats.creds")
    assert make(lab, "board", "x5-9").returncode == 0
    kept = tmp_path / "kept.creds"
    kept.write_bytes((lab / "boards/x5-9/nats.creds").read_bytes())
    assert (await server.connect(kept)).is_connected
    assert make(lab, "revoke", "x5-9").returncode == 0
    assert not list((lab / "boards/x5-9").iterdir())
    assert not (lab / "orchestrator/dial/x5-9").exists()
    server.stop()
    (tmp_path / "again").mkdir()
    again = Server(lab, tmp_path / "again")
    try:
        with pytest.raises((nats.errors.Error, OSError, asyncio.TimeoutError)):
            await again.connect(kept)
        assert (await again.connect(lab / "boards/x5-1/nats.creds", "_INBOX_x5-1")).is_connected
    finally:
        again.stop()


def test_names_of_boards_are_single_tokens_in_their_permissions():
    publish, subscribe = board_permissions("x5-1", "rdk-x5")
    assert ">" not in publish and ">" not in subscribe
    assert all("*" not in subject for subject in publish if not subject.startswith("evt.job.*."))
