from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from boardlift import _threaded
from boardlift._threaded import close_after, in_thread


def test_items_come_in_order_and_errors_with_them():
    def items():
        yield from (1, 2)
        raise ValueError("after two")

    got = []
    with pytest.raises(ValueError, match="after two"):
        for item in in_thread(items()):
            got.append(item)
    assert got == [1, 2] and list(in_thread(iter(()))) == []


SCRIPT = """
import os, signal, threading
from boardlift._threaded import in_thread

signal.signal(signal.SIGINT, signal.default_int_handler)
waiting, go_on, ended = threading.Event(), threading.Event(), threading.Event()

def items():
    yield 1
    waiting.wait()
    os.kill(os.getpid(), signal.SIGINT)
    go_on.wait()
    ended.set()

try:
    for _ in in_thread(items()):
        waiting.set()
except KeyboardInterrupt:
    go_on.set()
    print("whole" if ended.wait(30) else "torn")
"""


def test_an_interrupt_strikes_the_waiter_and_not_what_runs():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "whole\n" and not ended.stderr


def test_a_connection_that_an_interrupt_broke_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(_threaded, "CLOSE_PATIENCE_S", 0.05)
    stuck = threading.Event()
    start = time.monotonic()
    close_after(KeyboardInterrupt, lambda: stuck.wait(30) and None)
    assert time.monotonic() - start < 10
    stuck.set()
    closed = []
    close_after(None, lambda: closed.append(1))
    close_after(ValueError, lambda: closed.append(2))
    assert closed == [1, 2]
