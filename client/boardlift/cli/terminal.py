"""Standard output and error that take every character of ours, whatever their encoding, and end quietly when closed."""

from __future__ import annotations

import codecs
import io
import os
import sys

PLAIN = "boardlift-plain"
"""Error handler of encodings: what a character becomes where it can't be written."""
_PLAIN_TEXTS = {
    "≥": ">=",
    "≤": "<=",
    "✓": "+",
    "✗": "x",
    "▶": ">",
    "■": "#",
    "·": ".",
    "\N{REPLACEMENT CHARACTER}": "?",
}


def write_plainly() -> None:
    """Have streams of a poor encoding (LANG=C, a Windows code page) write plain signs instead of raising."""
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN_TEXTS.get(c, "?") for c in error.object[error.start : error.end]), error.end


def close_quietly() -> bool:
    """Write out what is left; False when the reader is gone, and nothing is tried again at the interpreter's end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()
        return False
    return True


def forget_output() -> None:
    """Send what is still buffered nowhere: its reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
