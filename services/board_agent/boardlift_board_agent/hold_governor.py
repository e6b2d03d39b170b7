"""The governors of the CPU's and the BPU's clock: set for one run where the board's owner permits it, and put back.

What was there before is written to a small file first, so that even an agent killed meanwhile puts it back when it
starts again. A governor that somebody else has set since is left as it is, and so is all after another start of the
kernel: that begins with its own governors.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from boardlift.errors import BoardliftError, InternalError, InvalidInputError, PreconditionError

from boardlift_board_agent.probe import BPU_CLOCKS

_LOG = structlog.get_logger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_CPU = "sys/devices/system/cpu/cpufreq"
_KERNEL_BOOT = "proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class HeldGovernor:
    """What a run set."""

    wanted: str
    before: dict[str, str]
    """File below the board's root -> the governor that was there; only files that were changed."""
    left: tuple[str, ...] = ()
    """The BPU's files that do not know this governor (CPU and BPU have different ones) and keep theirs."""


class GovernorKeeper:
    """Sets and restores the governors of one board."""

    def __init__(self, root: Path, state: Path | None = None, permitted: bool = False) -> None:
        """Work below `root`; remember in the file `state`; set only when `permitted`."""
        self._root, self._state = root, state
        self.permitted = permitted and state is not None
        self.stuck = ""
        """Why a governor could not be put back; empty when nothing is left to do."""

    @contextmanager
    def hold(self, wanted: str) -> Iterator[HeldGovernor | None]:
        """Sets the governors while the body runs, and puts them back however it ends.

        Args:
            wanted: name of the governor; empty leaves everything alone and yields None.

        Raises:
            InvalidInputError: GOVERNOR_INVALID.
            PreconditionError: GOVERNOR_NOT_PERMITTED, GOVERNOR_UNKNOWN, GOVERNOR_ABSENT or GOVERNOR_NOT_WRITABLE.
            InternalError: GOVERNOR_NOT_SET when the kernel took the name and kept the old one.
        """
        if not wanted:
            yield None
            return
        held = self._plan(wanted)
        try:
            self._remember(held)
            for name in held.before:
                self._set(name, wanted)
            yield held
        finally:
            self.restore()

    def check(self, wanted: str) -> None:
        """Says early what `hold` would refuse.

        Raises:
            BoardliftError: as `hold`, as far as it can be seen without writing.
        """
        if wanted:
            self._plan(wanted)

    def _plan(self, wanted: str) -> HeldGovernor:
        if not _NAME.fullmatch(wanted):
            raise InvalidInputError(
                "A governor's name has small letters, digits and underscores.",
                reason="GOVERNOR_INVALID",
                remedy="Ask for one such as performance or schedutil.",
            )
        files = self.files()
        if not any(name.startswith(_CPU) for name in files):
            raise PreconditionError(
                "The board shows no CPU governor.", reason="GOVERNOR_ABSENT", remedy="Ask for no governor."
            )
        left = tuple(name for name in files if not name.startswith(_CPU) and not self._knows(name, wanted))
        unknown = [name for name in files if name not in left and not self._knows(name, wanted)]
        if unknown:
            raise PreconditionError(
                f"The board has no governor {wanted}.",
                reason="GOVERNOR_UNKNOWN",
                remedy=f"Ask for one of: {self._available(unknown[0])}.",
                metadata={"governor": wanted, "file": f"/{unknown[0]}"},
            )
        before = {name: self._read(name) for name in files if name not in left}
        changes = {name: value for name, value in before.items() if value != wanted}
        if changes and not self.permitted:
            raise PreconditionError(
                f"The run asks for the governor {wanted}, the board has {next(iter(changes.values()))}, and its owner "
                "does not permit to change it.",
                reason="GOVERNOR_NOT_PERMITTED",
                remedy="Set BOARDLIFT_ALLOW_GOVERNOR=1 on the board, choose a board with the capability governor, or "
                "ask for no governor.",
                metadata={"governor": wanted},
            )
        for name in changes:
            if not os.access(self._root / name, os.W_OK):
                raise _not_writable(name, "permission denied")
        return HeldGovernor(wanted, changes, left)

    def files(self) -> tuple[str, ...]:
        """Governor files of all CPU policies and of the BPU, relative to the root."""
        cpu = sorted(str(p.relative_to(self._root)) for p in (self._root / _CPU).glob("policy*/scaling_governor"))
        bpu = [f"{folder}/governor" for folder in BPU_CLOCKS if (self._root / folder / "governor").is_file()]
        return (*cpu, *bpu[:1])  # the second name may be a link to the first

    def restore(self) -> None:
        """Puts back what a run of ours set; also what one before the last start left. Sets `stuck` when it can't."""
        if self._state is None or not self._state.is_file():
            return
        known, troubles = self.files(), []
        wanted, before, boot = self._remembered(self._state)
        if boot != self._read(_KERNEL_BOOT):
            _LOG.info("governor_of_another_kernel_start", wanted=wanted)
            before = {}
        for name, value in before.items():
            if name not in known or self._read(name) != wanted:
                _LOG.info("governor_left_alone", file=name)  # gone, never set, or somebody else's by now
                continue
            try:
                self._set(name, value)
            except BoardliftError as error:
                troubles.append(error.message)
        self.stuck = " ".join(troubles)
        if troubles:
            _LOG.error("governor_not_restored", why=self.stuck)
        else:
            self._state.unlink()

    def _remembered(self, state: Path) -> tuple[str, dict[str, str], str]:
        """(governor that was set, file -> governor before, start of the kernel); an unreadable file names nothing."""
        try:
            found = json.loads(state.read_text())
            before = {str(name): str(value) for name, value in found["before"].items()}
            return str(found["wanted"]), before, str(found["kernel_boot"])
        except (OSError, ValueError, KeyError, AttributeError) as error:
            _LOG.error("governor_state_unreadable", error=repr(error))
            return "", {}, ""

    def _remember(self, held: HeldGovernor) -> None:
        if self._state is None or not held.before:
            return
        part = self._state.with_suffix(".part")
        with part.open("w") as file:
            boot = self._read(_KERNEL_BOOT)
            json.dump({"wanted": held.wanted, "before": held.before, "kernel_boot": boot}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._state)

    def _set(self, name: str, governor: str) -> None:
        try:
            (self._root / name).write_text(governor + "\n")
        except OSError as error:
            raise _not_writable(name, error.strerror or repr(error)) from error
        if self._read(name) != governor:
            raise InternalError(
                f"/{name} still reads {self._read(name)!r} after {governor} was written.",
                reason="GOVERNOR_NOT_SET",
                remedy="See that the agent may write the governor's file and that nothing else sets it.",
            )

    def _knows(self, name: str, wanted: str) -> bool:
        available = self._available(name).split()
        return wanted in available or not available

    def _available(self, name: str) -> str:
        """Names the kernel offers for a file, empty when it lists none."""
        folder, _, file = name.rpartition("/")
        return self._read(f"{folder}/{file.replace('governor', 'available_governors')}")

    def _read(self, name: str) -> str:
        try:
            return (self._root / name).read_text().strip()
        except OSError:
            return ""  # an absent file: never equal to a governor's name


def _not_writable(name: str, why: str) -> PreconditionError:
    return PreconditionError(
        f"The agent can't write /{name}: {why}.",
        reason="GOVERNOR_NOT_WRITABLE",
        remedy="Install the board's agent with --allow-governor 1 (deploy/board/governor.conf), or give its group the "
        f"file by a line in /etc/tmpfiles.d: z /{name} 0664 root boardlift",
        metadata={"file": f"/{name}"},
    )
