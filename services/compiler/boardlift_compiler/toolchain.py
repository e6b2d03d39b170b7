"""Find the vendor toolchain, ask its version, and say how its programs are started.

The toolchain is a Python environment of its own (setting ``BOARDLIFT_TOOLCHAIN``); the command that makes it is
``deploy/toolchain/install.sh DEST``. This service never imports it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from boardlift.errors import PreconditionError
from boardlift_servicekit.tool import ToolCommand, run_tool

from boardlift_compiler.findings import Finding
from boardlift_compiler.run_folder import RunFolder

KNOWN_VERSIONS = ("1.24.3",)
REMEDY = "Run `make toolchain` (or `deploy/toolchain/install.sh DEST` and set BOARDLIFT_TOOLCHAIN=DEST)."
PROBE_SECONDS = 180.0
NEEDED_CPU_FLAGS = ("avx", "avx2")


@dataclass(frozen=True)
class Toolchain:
    """An installed and probed toolchain."""

    root: Path
    """Its environment."""
    version: str
    """What ``hb_mapper --version`` says."""
    parts: dict[str, str] = field(default_factory=dict)
    """Versions of its parts: hbdk."""

    @property
    def known(self) -> bool:
        """True when this release was tested with the version."""
        return self.version in KNOWN_VERSIONS

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What every result says about the tool: nothing, or that its version is not a tested one."""
        if self.known:
            return ()
        text = f"hb_mapper {self.version} is not a version this release was tested with ({', '.join(KNOWN_VERSIONS)})."
        advice = "What its logs say was understood; check the compiled model's outputs with care."
        return (Finding("TOOL_VERSION_UNTESTED", "warning", text, self.version, advice),)

    @property
    def python(self) -> Path:
        """The interpreter the vendor's packages live in: the one ``hb_mapper`` itself starts."""
        with (self.root / "bin" / "hb_mapper").open("rb") as file:
            first = file.readline(1024)
        named = Path(first[2:].decode(errors="replace").strip().split(" ")[0]) if first.startswith(b"#!/") else None
        return named if named is not None and named.name.startswith("python") else self.root / "bin" / "python"

    def program(self, name: str) -> str:
        """Absolute path of one of its programs."""
        return str(self.root / "bin" / name)


def tool_environment(root: Path, folder: RunFolder | None = None) -> dict[str, str]:
    """Return the whole environment for a program of the toolchain.

    Its own ``bin`` must be on PATH (it shells out to ``hbdk-config``), hashing is fixed for reproducible builds, and
    temporary files and home lie in the run's folder.
    """
    temporary = str(folder.temporary) if folder else "/tmp"  # noqa: S108  # probes write nothing
    return {
        "PATH": f"{root / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder.home) if folder else "/nonexistent",
        "TMPDIR": temporary,
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
    }


def missing_cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Return vector instructions that the vendor's binaries hold code for and this processor lacks."""
    try:
        text = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    flags = next((line.partition(":")[2].split() for line in text.splitlines() if line.startswith("flags")), [])
    return tuple(f for f in NEEDED_CPU_FLAGS if flags and f not in flags)


def missing_toolchain(root: Path, why: str) -> PreconditionError:
    """Build the error that says what is missing and the one command that gets it."""
    return PreconditionError(
        f"No usable vendor toolchain at {root.name or root}: {why}.",
        reason="TOOLCHAIN_MISSING",
        remedy=REMEDY,
        metadata={"why": why},
    )


async def probe_toolchain(root: Path) -> Toolchain:
    """Start the toolchain once and read its versions.

    Raises:
        PreconditionError: TOOLCHAIN_MISSING when it is absent or does not start.
    """
    if not (root / "bin" / "hb_mapper").is_file():
        raise missing_toolchain(root, "bin/hb_mapper is not there")
    mapper, compiler = await asyncio.gather(
        _first_line(root, "hb_mapper", "--version"), _first_line(root, "hbdk-cc", "--version")
    )
    words = mapper.split()
    if "version" not in words:
        raise missing_toolchain(root, f"hb_mapper --version says: {mapper[:120] or 'nothing'}")
    parts = {"hbdk": compiler.split()[-1]} if compiler.split() else {}
    return Toolchain(root, words[-1], parts)


async def _first_line(root: Path, program: str, *arguments: str) -> str:
    """Return the line that names the version, else the first one.

    Raises:
        PreconditionError: TOOLCHAIN_MISSING when the program does not end well, whatever it prints then.
    """
    lines: list[str] = []
    command = ToolCommand(
        [str(root / "bin" / program), *arguments],
        cwd=Path("/"),
        environment=tool_environment(root),
        timeout_s=PROBE_SECONDS,
    )
    result = await run_tool(command, lambda source, text: lines.append(text))
    if result.exit_code != 0:
        said = result.last_lines[-1][:120] if result.last_lines else "nothing"
        ended = "does not end" if result.timed_out else f"ends with {result.exit_code}"
        raise missing_toolchain(root, f"{program} {' '.join(arguments)} {ended} and says: {said}")
    return next((line for line in lines if "version" in line.lower()), lines[0] if lines else "")
