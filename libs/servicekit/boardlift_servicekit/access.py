"""Who may call what: bearer tokens with scopes, kept as hashes.

A tokens file has one line per token: `<name> <sha256 of the token, hex> <scope>[,<scope>...]`. Scopes are `read`
(look), `write` (submit, run, upload, cancel), `admin` (everything) and `board` (register the board of the token's own
name, move artifacts by digest; no look at jobs). Without a file every caller that reaches the server may do everything,
which `server.py` allows on loopback only.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from boardlift.errors import InvalidInputError, PermissionDeniedError, UnauthenticatedError

SCOPES = frozenset({"read", "write", "admin", "board"})
_OF_A_BOARD = frozenset(
    {"RegisterBoard", "GetServerInfo", "UploadArtifact", "GetUploadStatus", "DownloadArtifact", "FindMissingArtifacts"}
)
_BY_BOARDS = frozenset({"RegisterBoard"})
"""What a board says of itself: whoever submits jobs must not take a board's place, nor end its sign of life."""
_WRITING = frozenset({"PlanJob"})
"""Calls that store or compute in spite of their names: a plan checks the dataset and keeps a model sent along."""
_READING = ("Get", "List", "Watch", "Download", "Find", "Describe", "Inspect", "Plan")


@dataclass(frozen=True)
class Principal:
    """Somebody who calls."""

    name: str
    """Name from the tokens file; "anonymous" where no file is set."""
    scopes: frozenset[str]
    """What the caller may do."""


class TokenTable:
    """The known tokens."""

    def __init__(self, entries: dict[str, Principal]) -> None:
        """Keep `sha256 hex -> principal`."""
        self._entries = entries

    @classmethod
    def load(cls, path: Path) -> TokenTable:
        """Read a tokens file; a malformed line is an error, never skipped."""
        entries: dict[str, Principal] = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            parts = line.split()
            scopes = frozenset(parts[2].split(",")) if len(parts) == 3 else frozenset()
            if len(parts) != 3 or len(parts[1]) != 64 or not scopes or not scopes <= SCOPES:
                raise InvalidInputError(
                    f"Line {number} of the tokens file is not `<name> <sha256> <scopes>`.",
                    reason="TOKENS_FILE_INVALID",
                    remedy="Write one line per token; scopes are read, write, admin, board.",
                    metadata={"line": str(number)},
                )
            entries[parts[1].lower()] = Principal(parts[0], scopes)
        return cls(entries)

    def authenticate(self, authorization: str) -> Principal:
        """Return who sent `Bearer <token>`.

        Raises:
            UnauthenticatedError: No token, or one that is not known.
        """
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.encode()).hexdigest()
        found = None
        for known, principal in self._entries.items():  # no early exit: equal time for every token
            if hmac.compare_digest(known, digest):
                found = principal
        if scheme != "Bearer" or found is None:
            raise UnauthenticatedError(
                "The call carries no known token.",
                reason="TOKEN_UNKNOWN",
                remedy="Set BOARDLIFT_TOKEN to a valid token.",
            )
        return found


ANONYMOUS = Principal("anonymous", frozenset({"admin"}))


def authorize(principal: Principal, method: str) -> None:
    """Check that the caller may use the gRPC method `/package.Service/Method`.

    Raises:
        PermissionDeniedError: The token lacks the scope.
    """
    name = method.rpartition("/")[2]
    reads = name.startswith(_READING) and name not in _WRITING
    needed = "board" if name in _BY_BOARDS else "read" if reads else "write"
    if "admin" in principal.scopes or needed in principal.scopes or (needed == "read" and "write" in principal.scopes):
        return
    if "board" in principal.scopes and name in _OF_A_BOARD:
        return
    raise PermissionDeniedError(
        f"{principal.name} may not call {name}.",
        reason="SCOPE_MISSING",
        remedy=f"Use a token with the scope {needed}.",
        metadata={"method": name, "scope": needed},
    )
