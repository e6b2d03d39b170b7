"""Who else uses the BPU: the kernel's own list of its users, and processes that hold its device file open."""

from __future__ import annotations

from pathlib import Path

_LISTS = "sys/devices/system/bpu"
_MAX_BYTES = 65536


def foreign_bpu_users(root: Path, agent: int, running: bool = False) -> tuple[int, ...] | None:
    """Process ids that use the BPU and are not ours.

    Args:
        root: `/`, or a simulated board's folder.
        agent: our own process id; its children's tools are ours.
        running: a tool of ours runs, so the kernel's list holds it. Only processes that we see and that are not ours
            count then: in a container the list's numbers are the host's.

    Returns:
        The ids in order; None when neither source can be read.
    """
    listed, holding = _listed(root), _holding(root)
    if listed is None and holding is None:
        return None
    found = set(listed or ()) | set(holding or ())
    own = _family(root, agent)
    if running:
        found = {pid for pid in found if (root / "proc" / str(pid)).is_dir()}
    return tuple(sorted(found - own))


def _listed(root: Path) -> set[int] | None:
    """Ids of the kernel's list, one per line behind two lines of headings; readable for everybody."""
    found: set[int] = set()
    files = [root / _LISTS / "users", *(root / _LISTS).glob("bpu*/users")]
    texts = [text for text in map(_text, files) if text is not None]
    for line in "\n".join(texts).splitlines():
        words = line.split()
        if len(words) == 2 and words[0].isdigit():
            found.add(int(words[0]))
    return found if texts else None


def _holding(root: Path) -> set[int] | None:
    """Ids of processes whose open files we may see and among which the BPU is."""
    if not (root / "dev/bpu").exists():
        return None
    return {int(p.name) for p in (root / "proc").iterdir() if p.name.isdigit() and _holds_bpu(p / "fd")}


def _holds_bpu(folder: Path) -> bool:
    try:
        return any(str(link.readlink()).startswith("/dev/bpu") for link in folder.iterdir())
    except OSError:
        return False  # another user's process, which the kernel's list shows, or one that has ended


def _family(root: Path, ancestor: int) -> set[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for folder in (root / "proc").glob("[0-9]*"):
        text = _text(folder / "stat")
        if text and folder.name.isdigit():
            parents[int(folder.name)] = int(text.rpartition(")")[2].split()[1])
    family, grown = {ancestor}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return family


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return None
