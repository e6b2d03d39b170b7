"""Sickness on demand: BOARDLIFT_SIMULATOR_SICK="slow=3,flaky=2" -> what goes wrong.

| word | effect |
| --- | --- |
| `slow=F` | every frame takes F times as long (default 3) |
| `throttled=F` | the second half of a run takes F times as long (default 2) |
| `hot` | only the simulated board's sensors say so (`boardlift-simulated-board`) |
| `shared` | only the simulated board's files say so: another process uses the BPU |
| `unstable=S` | jitter with sigma S instead of the normal one (default 0.5) |
| `flaky=N` | the first N starts fail with a runtime error (default 1); counted in BOARDLIFT_SIMULATOR_STATE |
| `hanging` | prints its first lines and never ends |
| `dying=K` | kills itself by SIGKILL after K frames or outputs (default half way) |
| `wrong` | one output value in sixteen is off |
| `restless` | the same in every second inference only; counted in BOARDLIFT_SIMULATOR_STATE |
| `misread` | outputs are written densely though the stride says padded: the memcpy mistake |
| `skew` | the runtime is older than the model's builder |
| `diskfull` | dump files are cut short and the tool fails |
| `oom` | the ION pool is too small for the model |
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .errors import OUT_OF_MEMORY, TASK_FAILED, BoardError

DEFAULTS = {
    "slow": 3.0,
    "throttled": 2.0,
    "hot": 1.0,
    "shared": 1.0,
    "unstable": 0.5,
    "flaky": 1.0,
    "hanging": 1.0,
    "dying": 0.0,
    "wrong": 1.0,
    "restless": 1.0,
    "misread": 1.0,
    "skew": 1.0,
    "diskfull": 1.0,
    "oom": 1.0,
}


@dataclass(frozen=True)
class Sickness:
    """What goes wrong in this run."""

    words: dict[str, float] = field(default_factory=dict)
    """Word -> its number."""
    state: Path | None = None
    """Folder that remembers between starts; needed by `flaky` and `restless`."""

    def has(self, word: str) -> bool:
        """True when this goes wrong."""
        return word in self.words

    def start(self) -> None:
        """Effects at the start: failing, running out of memory.

        Raises:
            BoardError: as asked for.
        """
        if self.has("oom"):
            raise BoardError(OUT_OF_MEMORY, "ion alloc failed")
        if self.has("flaky") and self._seen("flaky", int(self.words["flaky"])) < int(self.words["flaky"]):
            raise BoardError(TASK_FAILED, "infer task failed")

    def spoils(self) -> bool:
        """True when this inference's outputs are off."""
        return self.has("wrong") or (self.has("restless") and self._seen("restless") % 2 == 1)

    def _seen(self, word: str, most: int = 1 << 30) -> int:
        """How often this was asked before; counts up to `most`, and without a state folder not at all."""
        if self.state is None:
            return most
        counter = self.state / word
        seen = int(counter.read_text()) if counter.is_file() else 0
        if seen < most:
            self.state.mkdir(parents=True, exist_ok=True)
            counter.write_text(str(seen + 1))
        return seen

    def hang(self) -> None:
        """Never returns when `hanging`."""
        if self.has("hanging"):
            sys.stdout.flush()
            while True:
                time.sleep(3600)

    def maybe_die(self, done: int, total: int) -> None:
        """Kills this process after the asked number of steps."""
        if not self.has("dying"):
            return
        if done >= (int(self.words["dying"]) or max(1, total // 2)):
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def read_sickness(environment: dict[str, str]) -> Sickness:
    """Reads the sickness from the environment.

    Args:
        environment: BOARDLIFT_SIMULATOR_SICK and BOARDLIFT_SIMULATOR_STATE matter.

    Returns:
        The sickness; healthy when unset.

    Raises:
        ValueError: an unknown word or a number that is none.
    """
    words: dict[str, float] = {}
    for part in environment.get("BOARDLIFT_SIMULATOR_SICK", "").split(","):
        word, _, number = part.strip().partition("=")
        if not word:
            continue
        if word not in DEFAULTS:
            raise ValueError(f"BOARDLIFT_SIMULATOR_SICK: '{word}' is none of {', '.join(sorted(DEFAULTS))}")
        words[word] = float(number) if number else DEFAULTS[word]
    state = environment.get("BOARDLIFT_SIMULATOR_STATE")
    return Sickness(words, Path(state) if state else None)
