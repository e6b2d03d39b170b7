"""Run one command and die with the parent: started by `tool.py` as a process of its own, standard library only.

Usage: guard.py LIFE_FD REPORT_FD LIMITS_JSON COMMAND [ARG...]

The guard leads a new process group and runs the command inside it. When the other end of LIFE_FD closes (the
service was killed, even by SIGKILL), the whole group is killed, so that no compiler stays behind. When the command
ends, REPORT_FD receives exit code, largest resident memory and processor time; `tool.py` then kills what it left.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading

LIMITS = {"memory_bytes": resource.RLIMIT_AS, "file_bytes": resource.RLIMIT_FSIZE, "cpu_s": resource.RLIMIT_CPU}


def main() -> None:
    """Do it."""
    life, report = int(sys.argv[1]), int(sys.argv[2])
    limits = json.loads(sys.argv[3])
    for fd in (life, report):
        os.set_inheritable(fd, False)
    # The group gets TERM on a stop; the guard must outlive the command to reap and report it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def watch() -> None:
        while os.read(life, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()

    def child_setup() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for name, value in limits.items():
            resource.setrlimit(LIMITS[name], (value, value))

    try:
        child = subprocess.Popen(sys.argv[4:], stdin=subprocess.DEVNULL, preexec_fn=child_setup)
    except OSError as error:
        os.write(report, json.dumps({"start_error": str(error)}).encode())
        os._exit(127)
    # wait4 counts the command and everything it waited for itself.
    _, status, usage = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    answer = {
        "exit_code": code if code >= 0 else 128 - code,
        "signal": -code if code < 0 else 0,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }
    os.write(report, json.dumps(answer).encode())
    # What the command left in the group goes, and this process with it: nobody holds the output pipes open any longer.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
