"""Who this agent is across restarts: one lock per state folder, one boot id per folder and kernel start.

A restarted agent keeps its boot id, so its own last sign of life does not look like somebody else's. A copied card in
another machine gets another one, because the kernel's boot id goes in; that is how a cloned identity is noticed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from pathlib import Path

from boardlift.errors import PreconditionError

_KERNEL_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Identity:
    """Holds the state folder; released when the process ends."""

    def __init__(self, folder: Path) -> None:
        """Lock `folder` and work out the boot id.

        Raises:
            PreconditionError: AGENT_RUNNING when another agent uses the folder.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise PreconditionError(
                "Another agent uses this state folder.",
                reason="AGENT_RUNNING",
                remedy="Stop it, or set BOARDLIFT_STATE_DIR to another folder.",
            ) from error
        seed = folder / "identity"
        if not seed.is_file():
            seed.write_text(secrets.token_hex(16))
            seed.chmod(0o600)
        kernel = _KERNEL_BOOT.read_text() if _KERNEL_BOOT.is_file() else ""
        self.boot_id = hashlib.sha256((seed.read_text() + kernel).encode()).hexdigest()[:16]

    def release(self) -> None:
        """Let another agent have the folder."""
        os.close(self._lock)
