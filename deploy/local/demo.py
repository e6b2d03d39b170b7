"""`make demo`: a robot policy from ONNX to a verdict, on this machine, with the real toolchain and a simulated board.

Installs the toolchain when it is absent, starts the stack, submits the job through the public command, shows progress,
prints the verdict and stops everything. A second run finds its stages in the cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from stack import BIN, ROOT, STATE, Stack, StackError, free_ports, running, toolchain_folder

EXAMPLE = ROOT / "examples/quadruped_policy"
GATES = ("cosine>=0.99", "max_abs<=0.25", "estimated_latency_us<=1000")


def install_toolchain() -> bool:
    """Make sure of the toolchain; the installer itself says in one line what is missing."""
    done = subprocess.run([str(ROOT / "deploy/toolchain/install.sh"), str(toolchain_folder())], check=False)
    if done.returncode:
        print(
            "boardlift: without the toolchain `make demo` can't compile. Still works: `boardlift transform`, the opset "
            "downgrade, dataset building and linting, and `BOARDLIFT_WITHOUT_TOOLCHAIN=1 make test`.",
            file=sys.stderr,
        )
    return done.returncode == 0


def build_inputs(work: Path) -> tuple[Path, Path]:
    """Build the model in code and the dataset from the synthetic robot logs; equal bytes on every run."""
    work.mkdir(parents=True, exist_ok=True)
    model, data = work / "policy.onnx", work / "policy_data.npz"
    subprocess.run([sys.executable, str(EXAMPLE / "build_policy.py"), "--out", str(model)], check=True)
    logs = sorted(str(p) for p in (EXAMPLE / "logs").iterdir())
    builder = [str(BIN / "boardlift"), "dataset", "steps", *logs, "--out", str(data), "--frames", "5", "--synthetic"]
    subprocess.run([*builder, "--calibration", "64", "--heldout", "128"], check=True)
    return model, data


def submit(stack: Stack, model: Path, data: Path, out: Path, extra: list[str]) -> int:
    """Run the public command against the stack and return its exit code."""
    gates = [part for gate in GATES for part in ("--gate", gate)]
    command = [str(BIN / "boardlift"), "run", str(model), "--data", str(data), "--outputs", "actions"]
    command += ["--variant", "int16", "--variant", "int8", *gates, "--name", "demo", "--out", str(out), *extra]
    environment = {
        **os.environ,
        "BOARDLIFT_SERVER": stack.address("orchestrator"),
        "BOARDLIFT_TRANSFORM": stack.address("transform"),
        "BOARDLIFT_COMPILER": stack.address("compiler"),
    }
    return subprocess.run(command, env=environment, check=False).returncode


def main() -> int:
    """Do it all; the exit code is the job's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=STATE / "demo", help="folder for inputs and results")
    parser.add_argument("extra", nargs="*", help="further words for `boardlift run`")
    arguments = parser.parse_args()
    start = time.monotonic()
    if not install_toolchain():
        return 3
    model, data = build_inputs(arguments.out)
    try:
        with running(Stack(ports=free_ports())) as stack:
            print(
                f"Stack is up after {time.monotonic() - start:.1f} s: NATS, transform, compiler, orchestrator, "
                "1 simulated board.",
                flush=True,
            )
            code = submit(stack, model, data, arguments.out / "result", arguments.extra)
    except StackError as error:
        print(f"boardlift: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 4
    print(f"Everything is stopped. Whole demo: {time.monotonic() - start:.1f} s.")
    print("The files are in", arguments.out / "result", "and `make up` starts a stack that knows this job.")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
