"""Where the servers are and how to reach them: address, TLS, token; from arguments, else from the environment."""

from __future__ import annotations

import getpass
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc

from boardlift._local_files import unreadable
from boardlift.errors import InvalidInputError

DEFAULT_SERVER = "127.0.0.1:7400"
DEFAULT_AGENT = "127.0.0.1:7403"
_SCHEME = re.compile(r"(unix|unix-abstract|dns|ipv4|ipv6|vsock):")
"""Addresses that gRPC reads in a way of its own."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Retries are ours: only for calls that may be repeated (see _retry).
    ("grpc.enable_retries", 0),
    # Two clients of one process never share a connection, so closing one does not disturb the other.
    ("grpc.use_local_subchannel_pool", 1),
    # A restarted server is found again within a second.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


@dataclass(frozen=True)
class Connection:
    """How to reach one server.

    A bare `host:port` uses TLS unless the host is this machine; `http://` and `https://` say it outright.
    """

    server: str = DEFAULT_SERVER
    """`host:port`, `https://host:port`, `http://host:port` or `unix:path`."""
    token: str = field(default="", repr=False)
    """Bearer token."""
    client_name: str = field(default="", compare=False)
    """Who submits, for servers without tokens: there each name takes turns with the others."""
    ca: Path | None = None
    """CA certificate in PEM; the system's CAs when absent."""
    cert: Path | None = None
    """Own certificate in PEM, for servers that ask for one."""
    key: Path | None = None
    """Key of the own certificate in PEM."""

    @classmethod
    def from_environment(
        cls,
        server: str | None = None,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        cert: Path | str | None = None,
        key: Path | str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Connection:
        """Fill what is not given from BOARDLIFT_SERVER, _TOKEN or _TOKEN_FILE, _CA, _CERT and _KEY."""
        env = os.environ if environ is None else environ

        def path(given: Path | str | None, name: str) -> Path | None:
            text = str(given) if given is not None else env.get(name, "")
            return Path(text) if text else None

        return cls(
            server=server or env.get("BOARDLIFT_SERVER") or DEFAULT_SERVER,
            token=token if token is not None else _read_token(env),
            client_name=env.get("BOARDLIFT_CLIENT_NAME") or _own_name(),
            ca=path(ca, "BOARDLIFT_CA"),
            cert=path(cert, "BOARDLIFT_CERT"),
            key=path(key, "BOARDLIFT_KEY"),
        )

    def to(self, server: str) -> Connection:
        """Return the same way to another server."""
        return replace(self, server=server)

    def beside(self, offset: int) -> str:
        """Return the server `offset` ports after this one on its machine, in the same scheme.

        Local stacks and compose files put the transform service (1) and the compiler service (2) there. Where no port
        is named it counts from the default one.
        """
        scheme, mark, rest = self.server.rpartition("://")
        host, _, port = rest.rstrip("/").rpartition(":")
        if not host or not port.isdecimal():
            host, port = ("127.0.0.1", "") if rest.startswith("unix:") else (rest.rstrip("/"), "")
        first = int(port or DEFAULT_SERVER.rpartition(":")[2])
        return f"{scheme}{mark}{host}:{first + offset}"

    @property
    def address(self) -> str:
        """What gRPC dials."""
        return self.server.removeprefix("https://").removeprefix("http://").rstrip("/")

    @property
    def is_local(self) -> bool:
        """True when the server is on this machine."""
        if self.address.startswith("unix:"):
            return True
        host = self.address.rpartition(":")[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def uses_tls(self) -> bool:
        """True when the connection is encrypted."""
        if self.server.startswith(("http://", "https://")):
            return self.server.startswith("https://")
        return bool(self.ca or self.cert) or not self.is_local

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata of every call.

        Raises:
            InvalidInputError: A token would travel unencrypted (`PLAINTEXT_TOKEN`).
        """
        if not self.token:
            name = "".join(c for c in self.client_name if c.isascii() and c.isprintable()).strip()[:60]
            return (("x-client-name", name),) if name else ()
        if not self.uses_tls and not self.is_local:
            raise InvalidInputError(
                f"Refusing to send the token to {self.address} without TLS.",
                reason="PLAINTEXT_TOKEN",
                remedy="Use https:// (and --ca for a private CA), or unset the token.",
            )
        return (("authorization", f"Bearer {self.token}"),)

    def open(self, factory: Any) -> Any:
        """Open a channel by `grpc` or `grpc.aio`.

        Raises:
            InvalidInputError: The server is no address (`ADDRESS_INVALID`), or a certificate can't be read
                (`CERTIFICATE_UNREADABLE`).
        """
        self._check_address()
        if not self.uses_tls:
            return factory.insecure_channel(self.address, options=OPTIONS)
        pem = [_read_pem(path) if path else None for path in (self.ca, self.key, self.cert)]
        return factory.secure_channel(self.address, grpc.ssl_channel_credentials(*pem), options=OPTIONS)

    def _check_address(self) -> None:
        """Refuse what no name server can make an address of; gRPC would look for it as long as anybody waits."""
        if _SCHEME.match(self.address):
            return
        host, colon, port = self.address.rpartition(":")
        named = host if colon else self.address
        right = not colon or (port.isdecimal() and 0 < int(port) < 65536)
        if not right or not named or any(c.isspace() or c in "/@?#" for c in named):
            raise InvalidInputError(
                f"{self.server!r} is no server's address.",
                reason="ADDRESS_INVALID",
                remedy="Write host:port or https://host:port, ports 1 to 65535.",
                metadata={"server": self.server},
            )


def _own_name() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # an id without a name, as in some containers
        return socket.gethostname()


def _read_token(env: Mapping[str, str]) -> str:
    if env.get("BOARDLIFT_TOKEN"):
        return env["BOARDLIFT_TOKEN"].strip()
    name = env.get("BOARDLIFT_TOKEN_FILE")
    if not name:
        return ""
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        remedy = "Check BOARDLIFT_TOKEN_FILE."
        raise unreadable(Path(name), error, reason="TOKEN_UNREADABLE", remedy=remedy) from error


def _read_pem(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "Check --ca, --cert and --key, or BOARDLIFT_CA, _CERT and _KEY."
        raise unreadable(path, error, reason="CERTIFICATE_UNREADABLE", remedy=remedy) from error
