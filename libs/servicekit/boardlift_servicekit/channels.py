"""Channels to other servers: keepalive, TLS, token, from one set of settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from boardlift.errors import InvalidInputError

from boardlift_servicekit.loopback import is_loopback
from boardlift_servicekit.watched_file import WatchedFile

OPTIONS = [
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.enable_retries", 0),
]
_OWN_CONNECTION = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # longest attempt, in spite of its name
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


@dataclass(frozen=True)
class ChannelSettings:
    """How this process reaches other servers."""

    token_file: Path | None = None
    """File with the bearer token to send, read again when it changes; none sends no token."""
    tls_ca: Path | None = None
    """CA certificate in PEM; set means TLS."""
    tls_client_cert: Path | None = None
    """Own certificate in PEM, for servers that ask for one."""
    tls_client_key: Path | None = None
    """Key of the own certificate in PEM."""
    insecure: bool = False
    """Send tokens beyond this machine without TLS, for a network that is closed by other means. The same variable as
    the server's: who says that the network is closed says it for both."""


def connect(address: str, settings: ChannelSettings | None = None, *, server_name: str = "") -> Any:
    """Open a `grpc.aio` channel; it connects when first used.

    Args:
        address: `host:port`, or a target as gRPC spells it.
        settings: Token and TLS.
        server_name: For a server that chose its address itself: with TLS its certificate must hold for this name
            instead of the address, and the channel shares no connection and no waiting time with any other.

    Raises:
        InvalidInputError: PLAINTEXT_TOKEN: the token would leave this machine unencrypted.
        OSError: The token or a certificate can't be read.
    """
    use = settings or ChannelSettings()
    if use.token_file is not None and use.tls_ca is None and not (use.insecure or is_loopback(address)):
        raise InvalidInputError(
            f"Refusing to send the token to {address} without TLS.",
            reason="PLAINTEXT_TOKEN",
            remedy="Set BOARDLIFT_TLS_CA, unset BOARDLIFT_TOKEN_FILE, or set BOARDLIFT_INSECURE=1 on a closed network.",
            metadata={"address": address},
        )
    interceptors = _token_interceptors(use.token_file)
    options = [*OPTIONS, *_OWN_CONNECTION, ("grpc.ssl_target_name_override", server_name)] if server_name else OPTIONS
    if use.tls_ca is None:
        return grpc.aio.insecure_channel(address, options=options, interceptors=interceptors)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=use.tls_ca.read_bytes(),
        private_key=use.tls_client_key.read_bytes() if use.tls_client_key else None,
        certificate_chain=use.tls_client_cert.read_bytes() if use.tls_client_cert else None,
    )
    return grpc.aio.secure_channel(address, credentials, options=options, interceptors=interceptors)


def _token_interceptors(token_file: Path | None) -> list[Any]:
    if token_file is None:
        return []
    token = WatchedFile(token_file, lambda path: path.read_text().strip())
    return [_UnaryUnary(token), _UnaryStream(token), _StreamUnary(token), _StreamStream(token)]


class _Token:
    def __init__(self, token: WatchedFile[str]) -> None:
        self._token = token

    def _with_token(self, details: Any) -> Any:
        own = ("authorization", f"Bearer {self._token.value}")
        metadata = grpc.aio.Metadata(*(tuple(pair) for pair in details.metadata or ()), own)
        return details._replace(metadata=metadata)


class _UnaryUnary(_Token, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return await continuation(self._with_token(details), request)


class _UnaryStream(_Token, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return await continuation(self._with_token(details), request)


class _StreamUnary(_Token, grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return await continuation(self._with_token(details), requests)


class _StreamStream(_Token, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return await continuation(self._with_token(details), requests)
