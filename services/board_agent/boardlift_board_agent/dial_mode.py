"""How the agent gets its work: it pulls (default), or it is dialled at an address that it registers."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from boardlift.errors import InvalidInputError

from boardlift_board_agent.settings import AllSettings

PULL: Final = "pull"
DIAL: Final = "dial"
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]{1,253}):([0-9]{1,5})")


def check_mode(settings: AllSettings) -> None:
    """Refuse settings under which no work would ever come.

    Raises:
        InvalidInputError: MODE_INVALID, DIAL_WITHOUT_ORCHESTRATOR, DIAL_ADDRESS_INVALID or DIAL_ADDRESS_MISSING.
    """
    own = settings.own
    if own.mode not in (PULL, DIAL):
        raise InvalidInputError(
            f"BOARDLIFT_MODE must be pull or dial, not {own.mode!r}.",
            reason="MODE_INVALID",
            remedy="Set BOARDLIFT_MODE=pull, or BOARDLIFT_MODE=dial.",
            metadata={"variable": "BOARDLIFT_MODE"},
        )
    if own.mode == PULL:
        return
    if not own.orchestrator:
        raise InvalidInputError(
            "A board that is to be dialled must register somewhere.",
            reason="DIAL_WITHOUT_ORCHESTRATOR",
            remedy="Set BOARDLIFT_ORCHESTRATOR.",
            metadata={"variable": "BOARDLIFT_ORCHESTRATOR"},
        )
    dial_address(settings, 1)


def dial_address(settings: AllSettings, port: int) -> str:
    """`host:port` at which the orchestrator is to call: BOARDLIFT_DIAL_ADDRESS, else what the agent listens on.

    Args:
        settings: All settings.
        port: Port that the agent listens on.

    Raises:
        InvalidInputError: DIAL_ADDRESS_INVALID or DIAL_ADDRESS_MISSING.
    """
    given = settings.own.dial_address
    if given:
        match = _ADDRESS.fullmatch(given)
        if match is None or not 1 <= int(match[2]) <= 65535:
            raise InvalidInputError(
                f"BOARDLIFT_DIAL_ADDRESS is not host:port: {given[:80]!r}.",
                reason="DIAL_ADDRESS_INVALID",
                remedy="Set it as in 192.0.2.7:7403.",
                metadata={"variable": "BOARDLIFT_DIAL_ADDRESS"},
            )
        return given
    listen = settings.server.listen
    host = listen.rpartition(":")[0]
    if listen.startswith("unix:") or _is_everywhere(host):
        raise InvalidInputError(
            f"The agent listens on {listen}, which says nobody where to dial it.",
            reason="DIAL_ADDRESS_MISSING",
            remedy="Set BOARDLIFT_DIAL_ADDRESS to the host:port that the orchestrator reaches.",
            metadata={"variable": "BOARDLIFT_DIAL_ADDRESS"},
        )
    return f"{host}:{port}"


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return not host
