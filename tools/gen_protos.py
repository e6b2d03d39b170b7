"""Generate the gRPC stubs from `protos/` into the client distribution, and lint the protos.

Run by `make gen` in an environment of its own: the generator is pinned low (grpcio-tools 1.71.2), so that the stubs run
on every protobuf runtime from 5.29 on. `--check` compares instead of writing and exits 1 when a stub is stale.
"""

from __future__ import annotations

import argparse
import filecmp
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
STUBS = ROOT / "client"
PACKAGE = Path("boardlift/v1")


def generate(destination: Path) -> None:
    """Write `_pb2.py`, `_pb2.pyi` and `_pb2_grpc.py` for every proto below `destination`."""
    sources = sorted(str(p.relative_to(PROTOS)) for p in PROTOS.glob("boardlift/v1/*.proto"))
    include = Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{PROTOS}", f"-I{include}"]
    arguments += [f"--python_out={destination}", f"--pyi_out={destination}", f"--grpc_python_out={destination}"]
    if protoc.main(arguments + sources):
        raise SystemExit("protoc failed")


def lint() -> None:
    """Run `buf lint` over a descriptor set made by protoc, without the network."""
    include = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted(str(p.relative_to(PROTOS)) for p in PROTOS.glob("boardlift/v1/*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "api.binpb"
        arguments = ["protoc", f"-I{PROTOS}", f"-I{include}", "--include_imports", "--include_source_info"]
        if protoc.main([*arguments, f"--descriptor_set_out={image}", *sources]):
            raise SystemExit("protoc failed")
        buf = Path(sys.executable).parent / "buf"
        done = subprocess.run([str(buf), "lint", str(image), "--path", "boardlift"], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def stale(fresh: Path) -> list[str]:
    """Return the stubs below `client/` that differ from those below `fresh`, or exist on one side only."""
    names = {p.name for p in (fresh / PACKAGE).iterdir()} | {p.name for p in (STUBS / PACKAGE).glob("*_pb2*")}
    return sorted(
        name
        for name in names
        if not (STUBS / PACKAGE / name).is_file()
        or not (fresh / PACKAGE / name).is_file()
        or not filecmp.cmp(STUBS / PACKAGE / name, fresh / PACKAGE / name, shallow=False)
    )


def main() -> None:
    """Generate, or check with `--check`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing; exit 1 when a stub is stale")
    arguments = parser.parse_args()
    lint()
    if not arguments.check:
        generate(STUBS)
        return
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        names = stale(Path(folder))
    if names:
        raise SystemExit("stale stubs, run `make gen`: " + ", ".join(names))
    print("stubs are fresh")


if __name__ == "__main__":
    main()
