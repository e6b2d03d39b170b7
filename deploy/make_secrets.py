#!/usr/bin/env python3
"""Make the secrets of a boardlift server: lab CA, certificates, tokens, NATS identities. Nothing of it is committed.

    deploy/make_secrets.py init --name lab-server.example --name 192.0.2.7    first of all; again: makes what is missing
    deploy/make_secrets.py board NAME [--target rdk-x5]                       what one board needs, in boards/NAME
    deploy/make_secrets.py user NAME [--scopes read,write]                    what one person needs, in users/NAME
    deploy/make_secrets.py revoke NAME                                        a board or user is let in no more
    deploy/make_secrets.py renew --name ...                                   new certificates by the same CA

Needs Python 3.8 or newer and openssl 3.0 or newer. The folder (`--dir`, deploy/secrets) is readable by its owner only;
files below it may be read by the containers they are mounted into. `offline/` holds what signs: keep a copy elsewhere,
and nothing that runs needs it.
"""

from __future__ import annotations

import argparse
import hashlib
import ipaddress
import json
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from nats_identities import (
    KeyPair,
    account_jwt,
    board_permissions,
    operator_jwt,
    user_credentials,
    write_server_config,
)

SERVERS = ("nats", "orchestrator", "transform", "compiler")
STAGES = ("transform", "compiler")
NAME = re.compile(r"[a-z0-9-]{1,40}")
SCOPES = {"read", "write", "admin"}
SIMULATED = "sim-1"


class Secrets:
    """One folder of secrets."""

    def __init__(self, folder: Path, names: list[str], days: int) -> None:
        """Use `folder`; certificates hold for `names` beside the containers' own and last `days`."""
        self.folder = folder
        self.names = names
        self.days = days
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        (folder / "offline").mkdir(exist_ok=True, mode=0o700)
        (folder / ".gitignore").write_text("*\n")

    def init(self, renew: bool = False) -> None:
        """Make whatever a server needs and lacks."""
        self._authority()
        for server in SERVERS:
            names = [server, f"{server}s", *(f"{server}-{n}" for n in (1, 2, 3)), "localhost", "127.0.0.1", "::1"]
            self._certificate(server, [*names, *self.names], "serverAuth,clientAuth", renew)
        for name in ("operator", "account", "system"):
            self._key("operator" if name == "operator" else "account", name)
        self._write_nats()
        self._credentials(self.folder / "orchestrator", "orchestrator", [">"], [">"])
        for server in ("orchestrator", *STAGES):
            self._token(self.folder / server, server, "write")
        self.board(SIMULATED, "rdk-x5")
        for board in sorted((self.folder / "boards").glob("*/token")):
            self._dial(board.parent.name, renew)
        self.user("admin", "admin")
        self._write_tokens()

    def board(self, name: str, target: str) -> Path:
        """Make what a board's agent needs; returns the folder to carry to the board."""
        folder = self.folder / "boards" / name
        publish, subscribe = board_permissions(name, target)
        self._credentials(folder, name, publish, subscribe)
        self._token(folder, name, "board")
        self._dial(name)
        self._share_ca(folder)
        self._write_tokens()
        return folder

    def user(self, name: str, scopes: str) -> Path:
        """Make what a person needs; returns the folder to hand over."""
        folder = self.folder / "users" / name
        self._token(folder, name, scopes)
        self._share_ca(folder)
        self._write_tokens()
        return folder

    def revoke(self, name: str) -> None:
        """Forget a board's or user's token, and shut a board's NATS identity out.

        Raises:
            SystemExit: Nobody has that name.
        """
        state = self._state()
        if name not in state["principals"]:
            raise SystemExit(f"there is no board or user {name}")
        user = state["principals"][name].get("nats")
        del state["principals"][name]
        if user:
            state["revoked"][user] = int(time.time())
        self._save(state)
        (self.folder / "orchestrator/dial" / name).unlink(missing_ok=True)
        for kind in ("boards", "users"):
            for path in (self.folder / kind / name).glob("*"):
                path.unlink()
        self._write_tokens()
        self._write_nats()

    def _authority(self) -> None:
        key, cert = self.folder / "offline/ca.key", self.folder / "ca.crt"
        if not key.exists():
            _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", str(key))
            key.chmod(0o600)
            subject = ["-subj", "/CN=boardlift lab CA", "-days", "3650"]
            use = ["-addext", "basicConstraints=critical,CA:TRUE,pathlen:0", "-addext", "keyUsage=critical,keyCertSign"]
            _openssl("req", "-x509", "-new", "-key", str(key), "-out", str(cert), *subject, *use)
            cert.chmod(0o444)

    def _dial(self, board: str, renew: bool = False) -> None:
        """What a board that is dialled needs: a certificate for `<id>.board`, and a token by which it knows who calls.

        Neither is of use elsewhere: the token is this board's alone, and no server has such a name.
        """
        folder, path = self.folder / "boards" / board, self.folder / "orchestrator/dial" / board
        self._certificate(f"boards/{board}", [f"{board}.board"], "serverAuth", renew)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, secrets.token_urlsafe(32) + "\n")
        digest = hashlib.sha256(path.read_text().strip().encode()).hexdigest()
        _replace(folder / "tokens", f"orchestrator {digest} write\n")

    def _certificate(self, where: str, names: list[str], purpose: str, renew: bool) -> None:
        folder = self.folder / where
        folder.mkdir(parents=True, exist_ok=True)
        key, cert = folder / "tls.key", folder / "tls.crt"
        if cert.exists() and not renew:
            return
        alternatives = ",".join(_alternative(name) for name in names)
        use = f"subjectAltName={alternatives}\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage={purpose}\n"
        (folder / "use.cnf").write_text(use)
        _replace(key, "")
        _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", str(key))
        _openssl("req", "-new", "-key", str(key), "-subj", f"/CN={folder.name}", "-out", str(folder / "request"))
        signer = ["-CA", str(self.folder / "ca.crt"), "-CAkey", str(self.folder / "offline/ca.key")]
        serial = ["-set_serial", str(secrets.randbits(120)), "-days", str(self.days)]
        wanted = ["-in", str(folder / "request"), "-extfile", str(folder / "use.cnf"), "-out", str(cert)]
        cert.unlink(missing_ok=True)
        _openssl("x509", "-req", *signer, *serial, *wanted)
        for path in (key, cert):
            path.chmod(0o444)
        for name in ("use.cnf", "request"):
            (folder / name).unlink()

    def _credentials(self, folder: Path, name: str, publish: list[str], subscribe: list[str]) -> None:
        path = folder / "nats.creds"
        if path.exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        user = KeyPair.make("user")
        _replace(path, user_credentials(self._key("account", "account"), user, name, publish, subscribe))
        state = self._state()
        state["principals"].setdefault(name, {})["nats"] = user.public
        self._save(state)

    def _token(self, folder: Path, name: str, scopes: str) -> None:
        path = folder / "token"
        if path.exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        token = secrets.token_urlsafe(32)
        _replace(path, token + "\n")
        state = self._state()
        entry = state["principals"].setdefault(name, {})
        entry.update(sha256=hashlib.sha256(token.encode()).hexdigest(), scopes=scopes, kind=folder.parent.name)
        self._save(state)

    def _write_tokens(self) -> None:
        """Boards may talk to the orchestrator only; users and the orchestrator to everybody."""
        people = {n: p for n, p in self._state()["principals"].items() if "sha256" in p}
        lines = {n: f"{n} {p['sha256']} {p['scopes']}\n" for n, p in people.items()}
        for server in ("orchestrator", *STAGES):
            allowed = [n for n, p in people.items() if server == "orchestrator" or p["kind"] == "users"]
            allowed += ["orchestrator"] if server in STAGES and "orchestrator" in lines else []
            (self.folder / server).mkdir(exist_ok=True)
            _rewrite(self.folder / server / "tokens", "".join(lines[n] for n in sorted(set(allowed))))

    def _write_nats(self) -> None:
        operator, account, system = (self._key("", name) for name in ("operator", "account", "system"))
        accounts = {
            account.public: account_jwt(operator, account, "lab", streams=True, revoked=self._state()["revoked"]),
            system.public: account_jwt(operator, system, "system", streams=False),
        }
        path = self.folder / "nats/identities.conf"
        path.unlink(missing_ok=True)
        write_server_config(path, operator_jwt(operator, system.public), accounts, system.public)
        path.chmod(0o444)

    def _key(self, kind: str, name: str) -> KeyPair:
        path = self.folder / "offline" / f"{name}.seed"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(KeyPair.make(kind).seed_text + "\n")
        return KeyPair.read(path.read_text())

    def _share_ca(self, folder: Path) -> None:
        _replace(folder / "ca.crt", (self.folder / "ca.crt").read_text())

    def _state(self) -> dict[str, dict[str, Any]]:
        path = self.folder / "offline/principals.json"
        return json.loads(path.read_text()) if path.exists() else {"principals": {}, "revoked": {}}

    def _save(self, state: dict[str, dict[str, Any]]) -> None:
        path = self.folder / "offline/principals.json"
        path.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n")
        path.chmod(0o600)


def _replace(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o444)


def _rewrite(path: Path, text: str) -> None:
    """Write into the same file: a container that has it mounted sees the new text, and the server reads it again."""
    if not path.exists():
        _replace(path, text)
        return
    path.chmod(0o644)
    with path.open("r+") as file:
        file.write(text)
        file.truncate()
    path.chmod(0o444)


def _alternative(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", name):
            raise SystemExit(f"{name!r} is neither an address nor a host's name") from None
        return f"DNS:{name}"


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


def main() -> int:
    """Do one of the five things."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["init", "board", "user", "revoke", "renew"])
    parser.add_argument("who", nargs="?", default="", help="name of the board or user")
    parser.add_argument("--dir", type=Path, default=Path(__file__).resolve().parent / "secrets")
    parser.add_argument("--name", action="append", default=[], help="host name or address that others reach us by")
    parser.add_argument("--target", default="rdk-x5")
    parser.add_argument("--scopes", default="read,write")
    parser.add_argument("--days", type=int, default=365, help="how long certificates last")
    options = parser.parse_args()
    store = Secrets(options.dir, options.name, options.days)
    if options.what in ("init", "renew"):
        store.init(renew=options.what == "renew")
        print(f"secrets are in {options.dir}; copy {options.dir / 'offline'} to a safe place")
        return 0
    if not NAME.fullmatch(options.who) or not set(options.scopes.split(",")) <= SCOPES:
        print("a name is [a-z0-9-]{1,40}; scopes are read, write, admin", file=sys.stderr)
        return 2
    if options.what == "revoke":
        store.revoke(options.who)
        print(f"{options.who} is let in no more once nats and the orchestrator have been restarted")
        return 0
    if options.what == "board":
        made = store.board(options.who, options.target)
    else:
        made = store.user(options.who, options.scopes)
    print(f"{made}; takes effect once the orchestrator has been restarted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
