"""Tell whether an address can be reached from this machine only: there calls and tokens need no encryption."""

from __future__ import annotations

import ipaddress


def is_loopback(address: str) -> bool:
    """Tell whether an address stays on this machine.

    Args:
        address: `host:port`, `unix:path`, or an IP target as gRPC spells it (`ipv4:127.0.0.1:7403`).
    """
    if address.startswith("unix:"):
        return True
    host = address.removeprefix("ipv4:").removeprefix("ipv6:").rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
