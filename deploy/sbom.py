#!/usr/bin/env python3
"""Write the software bill of materials of an image as CycloneDX 1.5: `deploy/sbom.py IMAGE >sbom.json`.

Reads the image's own records through `docker export`, starting nothing of it: Python distributions by their METADATA,
system packages by dpkg's or apk's database. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import IO

_LONGEST = 64 << 20
_DPKG = "var/lib/dpkg/status"
_APK = "lib/apk/db/installed"


def components(image: IO[bytes]) -> list[dict[str, object]]:
    """Return the components in an image's file system.

    Args:
        image: The file system as a tar stream.

    Returns:
        CycloneDX components, sorted, each once.
    """
    found: dict[str, dict[str, object]] = {}
    with tarfile.open(fileobj=image, mode="r|") as files:
        for member in files:
            name = member.name.removeprefix("./")
            if not member.isfile() or member.size > _LONGEST or not _is_record(name):
                continue
            stream = files.extractfile(member)
            text = stream.read().decode("utf-8", "replace") if stream else ""
            for item in _read(name, text):
                found[str(item["purl"])] = item
    return [found[key] for key in sorted(found)]


def _is_record(name: str) -> bool:
    path = PurePosixPath(name)
    return name in (_DPKG, _APK) or (path.name == "METADATA" and path.parent.suffix == ".dist-info")


def _read(name: str, text: str) -> Iterator[dict[str, object]]:
    if name == _DPKG:
        for entry in _blocks(text):
            if entry.get("Status", "").endswith(" installed"):
                yield _component("deb/debian", entry["Package"], entry["Version"], "")
    elif name == _APK:
        for block in text.split("\n\n"):
            entry = dict(line.split(":", 1) for line in block.splitlines() if line[1:2] == ":")
            if "P" in entry:
                yield _component("apk/alpine", entry["P"], entry["V"], entry.get("L", ""))
    else:
        head = HeaderParser().parsestr(text)
        licence = head.get("License-Expression") or head.get("License") or ""
        if not licence or "\n" in licence:
            classes = [c for c in head.get_all("Classifier", []) if c.startswith("License ::")]
            licence = classes[0].rpartition(":: ")[2] if classes else ""
        normal = re.sub(r"[-_.]+", "-", head["Name"]).lower()
        yield _component("pypi", normal, head["Version"], licence.strip())


def _blocks(text: str) -> Iterator[dict[str, str]]:
    for block in text.split("\n\n"):
        lines = [line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != " "]
        if lines:
            yield dict(lines)


def _component(kind: str, name: str, version: str, licence: str) -> dict[str, object]:
    item: dict[str, object] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{name}@{version}",
    }
    if licence:
        item["licenses"] = [{"license": {"name": licence}}]
    return item


def main() -> int:
    """Export the image and print its bill."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    image = parser.parse_args().image
    digest = _docker("image", "inspect", "-f", "{{.Id}}", image)
    container = _docker("create", "--network", "none", image)
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            listed = components(export.stdout)  # type: ignore[arg-type]  # a pipe by request
    finally:
        _docker("rm", "-f", container)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": image, "version": digest}},
        "components": listed,
    }
    json.dump(bill, sys.stdout, indent=1)
    print()
    return 0


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
