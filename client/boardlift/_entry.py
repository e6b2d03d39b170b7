"""The console script: says what to install when only the SDK is there, and ends quietly from its first moment on."""

from __future__ import annotations

import os
import sys

CANCELLED = 4


def main() -> None:
    """Run `boardlift`, or say how to get it."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what its calls end with is said by us, once
    try:
        from boardlift.cli.__main__ import main as run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.stderr.write("boardlift: the command line is not installed. Remedy: pip install click rich numpy\n")
        sys.exit(3)
    except KeyboardInterrupt:  # while modules load, which can take a second
        sys.stderr.write("error CANCELLED: Stopped by the keyboard.\n")
        sys.exit(CANCELLED)
