"""NATS identities without NATS' tools: key pairs as nkeys, and the signed documents (JWTs) of operator mode.

Standard library and the `openssl` command (3.0 or newer) only, so that it runs on a bare server.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
"""First byte of a public key of each kind: it makes the text start with O, A or U."""
_SEED = 18 << 3
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}


@dataclass(frozen=True)
class KeyPair:
    """An Ed25519 key pair in NATS' spelling."""

    kind: str
    """operator, account or user."""
    seed: bytes
    """The 32 secret bytes."""

    @classmethod
    def make(cls, kind: str) -> KeyPair:
        """Draw a new one."""
        return cls(kind, os.urandom(32))

    @classmethod
    def read(cls, text: str) -> KeyPair:
        """Read what `seed_text` wrote.

        Raises:
            ValueError: It is not a seed, or it was altered.
        """
        raw = base64.b32decode(text.strip() + "=" * (-len(text.strip()) % 8))
        body, check = raw[:-2], raw[-2:]
        kind = next((k for k, byte in KINDS.items() if (raw[0] & 7) << 5 | raw[1] >> 3 == byte), "")
        if len(raw) != 36 or raw[0] & 0xF8 != _SEED or not kind or _crc(body) != check:
            raise ValueError("not an nkey seed")
        return cls(kind, body[2:])

    @property
    def seed_text(self) -> str:
        """The secret half, `S...`."""
        kind = KINDS[self.kind]
        return _encode(bytes([_SEED | kind >> 5, (kind & 31) << 3]) + self.seed)

    @property
    def public(self) -> str:
        """The public half, `O...`, `A...` or `U...`."""
        with _key_file(self.seed) as key:
            der = _openssl("pkey", "-inform", "DER", "-in", key, "-pubout", "-outform", "DER")
        return _encode(bytes([KINDS[self.kind]]) + der[-32:])

    def sign(self, data: bytes) -> bytes:
        """Sign bytes."""
        with _key_file(self.seed) as key, tempfile.NamedTemporaryFile() as text:
            text.write(data)
            text.flush()
            return _openssl("pkeyutl", "-sign", "-keyform", "DER", "-inkey", key, "-rawin", "-in", text.name)


def operator_jwt(operator: KeyPair, system_account: str) -> str:
    """Document of the operator, which signs accounts."""
    return _document(operator, operator.public, "boardlift", {"type": "operator", "system_account": system_account})


def account_jwt(
    operator: KeyPair, account: KeyPair, name: str, *, streams: bool, revoked: Mapping[str, int] | None = None
) -> str:
    """Document of an account.

    Args:
        operator: Signs it.
        account: The account.
        name: Its name.
        streams: Whether it may keep streams.
        revoked: Public keys of users that are no longer let in -> time in seconds.
    """
    limits = {**_UNLIMITED, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    if streams:
        limits |= {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    claims: dict[str, Any] = {"type": "account", "limits": limits, "default_permissions": {"pub": {}, "sub": {}}}
    if revoked:
        claims["revocations"] = dict(revoked)
    return _document(operator, account.public, name, claims)


def user_credentials(
    account: KeyPair, user: KeyPair, name: str, publish: Sequence[str], subscribe: Sequence[str]
) -> str:
    """Credentials file of a user: its document and its seed. The document names all it may do."""
    claims = {"type": "user", "pub": {"allow": list(publish)}, "sub": {"allow": list(subscribe)}, **_UNLIMITED}
    return (
        f"-----BEGIN NATS USER JWT-----\n{_document(account, user.public, name, claims)}\n"
        f"------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{user.seed_text}\n"
        "------END USER NKEY SEED------\n"
    )


def board_permissions(board: str, target: str) -> tuple[list[str], list[str]]:
    """What a board's agent may publish and subscribe: its own queue, outcomes, presence; nothing of other boards."""
    consumers = (f"board-{board}", f"pool-{target}")
    publish = [f"$JS.API.CONSUMER.MSG.NEXT.TASK.{name}" for name in consumers]
    publish += [f"$JS.ACK.TASK.{name}.>" for name in consumers]
    # No `evt.job.*.job`: only the orchestrator says how a job stands.
    publish += [f"res.{board}.>", "evt.job.*.progress", "evt.job.*.log", f"$KV.PRESENCE.{board}"]
    return publish, [f"_INBOX_{board}.>", f"ctl.board.{board}", "ctl.job.*"]


def _document(signer: KeyPair, subject: str, name: str, claims: Mapping[str, Any]) -> str:
    body = {
        "jti": base64.b32encode(hashlib.sha256(os.urandom(32)).digest()).decode().rstrip("="),
        "iat": int(time.time()),
        "iss": signer.public,
        "name": name,
        "sub": subject,
        "nats": {**claims, "version": 2},
    }
    head = _base64(b'{"typ":"JWT","alg":"ed25519-nkey"}') + b"." + _base64(json.dumps(body).encode())
    return (head + b"." + _base64(signer.sign(head))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _encode(body: bytes) -> str:
    return base64.b32encode(body + _crc(body)).decode().rstrip("=")


def _crc(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0).to_bytes(2, "little")


@contextlib.contextmanager
def _key_file(seed: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile() as file:  # made with mode 0600
        file.write(_PKCS8 + seed)
        file.flush()
        yield file.name


def _openssl(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout


def write_server_config(path: Path, operator: str, accounts: Mapping[str, str], system: str) -> None:
    """Write what nats-server must know of the identities; it holds public documents only.

    Args:
        path: File to write.
        operator: The operator's document.
        accounts: Documents of the accounts by public key.
        system: Public key of the system account.
    """
    preload = "\n".join(f"  {public}: {document}" for public, document in accounts.items())
    path.write_text(
        f"operator: {operator}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n{preload}\n}}\n"
    )
