"""Settings and connection that the sync and the async client share; each makes its own kind of channel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from boardlift._retry import Retry
from boardlift.connection import Connection
from boardlift.v1 import artifact_pb2_grpc


class Connected:
    """A connection to a server."""

    _library: Any
    """`grpc` or `grpc.aio`: what opens the channel."""

    def __init__(
        self,
        server: str | Connection | None = None,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        cert: Path | str | None = None,
        key: Path | str | None = None,
        timeout_s: float = 20.0,
        patience_s: float = 20.0,
    ) -> None:
        """Connect lazily.

        Args:
            server: `host:port`, `https://host:port`, or a `Connection`; default BOARDLIFT_SERVER, else 127.0.0.1:7400.
            token: Bearer token; default BOARDLIFT_TOKEN.
            ca: CA certificate in PEM; default BOARDLIFT_CA, else the system's.
            cert: Own certificate in PEM; default BOARDLIFT_CERT.
            key: Key of the own certificate in PEM; default BOARDLIFT_KEY.
            timeout_s: Deadline of one short call.
            patience_s: How long calls are repeated while the server is away.

        Raises:
            InvalidInputError: A certificate can't be read, or a token would travel unencrypted.
        """
        if not isinstance(server, Connection):
            server = Connection.from_environment(server, token=token, ca=ca, cert=cert, key=key)
        self.connection = server
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self.on_wait: Callable[[], None] | None = None
        """Told once per call that the server is away and the call is being repeated."""
        self._metadata = server.metadata()
        self._channel = server.open(self._library)
        self._make_stubs(self._channel)

    def _make_stubs(self, channel: Any) -> None:
        """Make the stubs of the services that are called; clients of more services add theirs."""
        self._artifacts = artifact_pb2_grpc.ArtifactServiceStub(channel)

    def _retry(self) -> Retry:
        return Retry(self._patience_s, on_wait=self.on_wait)
