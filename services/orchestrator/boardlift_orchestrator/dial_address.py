"""Where a board may be dialled: its own word about its address is not to be trusted.

An address that somebody registers is a way to make the orchestrator call anything it can reach. So a board may be
dialled where its registration came from, and in networks that the operator has named; nowhere else. A host's name is
resolved here, and the resolved address is what is judged and dialled.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
import socket
import urllib.parse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from boardlift.errors import InvalidInputError, UnavailableError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}")
_RESOLVE_S: Final = 3.0
_RESOLVERS: Final = ThreadPoolExecutor(8, "resolve")
"""A name whose DNS is silent holds a thread long after we gave it up: none of those that read and write artifacts."""


@dataclass(frozen=True)
class DialRules:
    """What the operator allows."""

    networks: tuple[Network, ...] = ()
    """Networks in which any board may be dialled."""
    tls: bool = False
    """Calls are encrypted, and the board shows a certificate for its id."""
    plain_anywhere: bool = False
    """Calls without TLS may leave this machine."""


def read_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Parse `192.0.2.0/24` and the like.

    Raises:
        InvalidInputError: SETTING_INVALID.
    """
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise InvalidInputError(
            f"BOARDLIFT_DIAL_NETWORKS must name networks: {error}.",
            reason="SETTING_INVALID",
            remedy="Write networks as 192.0.2.0/24, separated by commas.",
            metadata={"variable": "BOARDLIFT_DIAL_NETWORKS"},
        ) from error


def peer_address(peer: str) -> str:
    """Read a caller's IP address out of what gRPC says (`ipv4:192.0.2.7:5061`, `ipv6:%5B::1%5D:5061`).

    Returns:
        The address; "" for a caller through a socket file.
    """
    kind, _, rest = urllib.parse.unquote(peer).partition(":")
    host = rest.rpartition(":")[0].strip("[]").partition("%")[0]
    return str(_plain(ipaddress.ip_address(host))) if kind in ("ipv4", "ipv6") else ""


def split_address(address: str) -> tuple[str, int]:
    """`host:port` -> both; nothing else passes, no scheme and no path.

    Raises:
        InvalidInputError: DIAL_ADDRESS_INVALID.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        good = _is_ip(host) and "%" not in host
    else:
        good = _HOST.fullmatch(host) is not None
    if not good or not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise InvalidInputError(
            f"{address[:80]!r} is not an address to dial.",
            reason="DIAL_ADDRESS_INVALID",
            remedy="Set the agent's BOARDLIFT_DIAL_ADDRESS to host:port, for example 192.0.2.7:7403.",
            metadata={"address": address[:80]},
        )
    return host, int(port)


async def find_endpoint(address: str, peer: str, rules: DialRules) -> str:
    """Resolve and judge where a board wants to be dialled.

    Args:
        address: `host:port` as the board registered it.
        peer: IP address from which it registered; "" when unknown.
        rules: What the operator allows.

    Returns:
        The target as gRPC spells it, with an IP address.

    Raises:
        InvalidInputError: DIAL_ADDRESS_INVALID.
        UnavailableError: DIAL_ADDRESS_UNKNOWN, DIAL_ADDRESS_REFUSED or DIAL_INSECURE.
    """
    host, port = split_address(address)
    found = await _resolve(host, port)
    allowed = [ip for ip in found if is_allowed(ip, peer, rules)]
    if not allowed:
        raise UnavailableError(
            f"The board wants to be dialled at {address}, but registered from {peer or 'elsewhere'}.",
            reason="DIAL_ADDRESS_REFUSED",
            remedy="Correct the agent's BOARDLIFT_DIAL_ADDRESS, or name its network in the orchestrator's "
            "BOARDLIFT_DIAL_NETWORKS.",
            metadata={"address": address, "peer": peer},
        )
    ip = allowed[0]
    if not (rules.tls or rules.plain_anywhere or ip.is_loopback):
        raise UnavailableError(
            f"Refusing to dial {address} without TLS.",
            reason="DIAL_INSECURE",
            remedy="Set the orchestrator's BOARDLIFT_TLS_CA and give the agent a certificate, or BOARDLIFT_INSECURE=1 "
            "on a closed network.",
            metadata={"address": address},
        )
    return f"ipv4:{ip}:{port}" if ip.version == 4 else f"ipv6:[{ip}]:{port}"


def is_allowed(ip: Address, peer: str, rules: DialRules) -> bool:
    """Tell whether a board that registered from `peer` may be dialled at `ip`."""
    if ip.is_unspecified or ip.is_multicast:
        return False
    if any(ip in network for network in rules.networks):
        return True
    if not peer:
        return False
    own = ipaddress.ip_address(peer)
    return ip == own or (ip.is_loopback and own.is_loopback)


async def _resolve(host: str, port: int) -> list[Address]:
    if _is_ip(host):
        return [_plain(ipaddress.ip_address(host))]
    ask = functools.partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        answers = await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_RESOLVERS, ask), _RESOLVE_S)
    except (OSError, UnicodeError, asyncio.TimeoutError) as error:
        raise UnavailableError(
            f"The name {host} of the board's address can't be resolved here.",
            reason="DIAL_ADDRESS_UNKNOWN",
            remedy="Set the agent's BOARDLIFT_DIAL_ADDRESS to an IP address, or teach the orchestrator's DNS its name.",
            metadata={"host": host},
        ) from error
    return list(dict.fromkeys(_plain(ipaddress.ip_address(answer[4][0])) for answer in answers))


def _plain(ip: Address) -> Address:
    """An IPv4 address that is dressed as IPv6, undressed."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, ipaddress.IPv6Address) else ip


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
