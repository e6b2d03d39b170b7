"""Start ``hb_mapper`` by fork from a process that has imported it once, inside the toolchain's own interpreter.

Usage: ``python fork_server.py FD`` where FD is a connected Unix datagram-like socket (SOCK_SEQPACKET). Imports nothing
of boardlift. Messages are JSON, one per packet.

In:  ``{"id": 1, "argv": [...], "cwd": "...", "env": {...}, "limits": {...}}`` with one file descriptor attached that
     becomes the run's standard output and error. With ``"script": true`` argv is an interpreter and a Python file, and
     the file runs in place of the tool.
Out: ``{"ready": true}`` once, ``{"id": 1, "pid": 123}`` when a run has begun,
     ``{"id": 1, "exit_code": 0, "signal": 0, "cpu_s": 1.2, "peak_memory_bytes": 3}`` when it has ended.

Every run is its own session and process group. When the socket closes, all groups are killed and this process ends.

The tool makes its temporary folder while it is imported. A fork would share it with every other fork, and two compiles
would overwrite each other's files, so each run gets a folder of its own in its place; when that place is not found
(another tool version), the run refuses with exit code 250 and the service starts the tool plainly.
"""

import ctypes
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
MAX_PACKET = 1 << 20
CANNOT_FORK = 250
FOLDERS = []
"""Temporary folders that were made while importing."""


def prepare(request):
    """Take on the run's folder, environment and limits."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None
    for folder in FOLDERS:
        if not replace_folder(folder, tempfile.mkdtemp()):
            sys.exit(CANNOT_FORK)
    limits = request.get("limits", {})
    for key, kind in (("memory_bytes", resource.RLIMIT_AS), ("file_bytes", resource.RLIMIT_FSIZE)):
        if limits.get(key):
            resource.setrlimit(kind, (limits[key], limits[key]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_child(request, output, main):
    """Become the run; never returns, as only the parent may do what comes behind the fork."""
    code = 1
    try:
        code = run(request, output, main)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 255)


def run(request, output, main):
    """Do what is asked and return the exit code."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 256)
        prepare(request)
        if request.get("script"):
            sys.argv = list(request["argv"][1:])
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            sys.argv = list(request["argv"])
            main(sys.argv[1:], prog_name="hb_mapper")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001  # the outermost boundary of the child: as the interpreter itself would do
        import traceback

        traceback.print_exc()
        return 1
    return 0


def replace_folder(old, new):
    """Replace a folder's path wherever a module or an object of a module holds it; True when it was found."""
    found = False
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name, value in list(names.items()):
            if isinstance(value, str):
                if value == old:
                    names[name] = new
                    found = True
                continue
            inner = getattr(value, "__dict__", None)
            if not isinstance(inner, dict) or isinstance(value, type(sys)):
                continue
            for key, text in list(inner.items()):
                if isinstance(text, str) and text == old:
                    inner[key] = new
                    found = True
    return found


def reap(channel, runs):
    """Report every run that has ended."""
    for pid in list(runs):
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if not found:
            continue
        number = runs.pop(pid)
        kill_group(pid)
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = 128 + ended_by if ended_by else os.WEXITSTATUS(status)
        message = {
            "id": number,
            "exit_code": code,
            "signal": ended_by,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_memory_bytes": usage.ru_maxrss * 1024,
        }
        channel.send(json.dumps(message).encode())


def kill_group(pid):
    """Kill what is left of a run's process group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def serve(channel, main):
    """Take requests until the other side closes."""
    runs = {}
    channel.send(json.dumps({"ready": True}).encode())
    try:
        while True:
            readable, _, _ = select.select([channel], [], [], 0.02 if runs else 1.0)
            reap(channel, runs)
            if not readable:
                continue
            data, descriptors, _, _ = socket.recv_fds(channel, MAX_PACKET, 1)
            if not data:
                break
            request = json.loads(data)
            pid = os.fork()
            if pid == 0:
                run_child(request, descriptors[0], main)
            runs[pid] = request["id"]
            os.close(descriptors[0])
            channel.send(json.dumps({"id": request["id"], "pid": pid}).encode())
    finally:  # also when the other side closes while it is being told of a run's end
        for pid in runs:
            kill_group(pid)


def load_main():
    """Import the tool once; the child must not depend on where this happened."""
    sys.argv = ["hb_mapper"]
    make = tempfile.mkdtemp

    def remember(*arguments, **options):
        folder = make(*arguments, **options)
        FOLDERS.append(folder)
        return folder

    tempfile.mkdtemp = remember
    from horizon_tc_ui.hb_mapper import main

    tempfile.mkdtemp = make
    return main


if __name__ == "__main__":
    started = time.monotonic()
    connection = socket.socket(fileno=int(sys.argv[1]))
    try:
        serve(connection, load_main())
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)
