"""Rules that hold for the whole tree: floors, budgets, nothing of one machine or registry committed."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = sorted(p.parent for p in ROOT.glob("*/**/pyproject.toml") if not {".venv", ".boardlift"} & set(p.parts))
# Files over the budget of 300 lines, each with its reason.
LONG_FILES: dict[str, str] = {}


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def sources():
    return [
        p
        for p in tracked()
        if p.suffix == ".py" and not p.name.endswith(("_test.py", "conftest.py")) and "boardlift/v1" not in str(p)
    ]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda p: p.name)
def test_floor_is_python_3_10(member):
    assert re.search(r'^requires-python = ">=3\.10"$', (member / "pyproject.toml").read_text(), re.M)


def test_every_service_has_the_same_inner_names():
    for service in (ROOT / "services").iterdir():
        package = service / f"boardlift_{service.name}"
        if package.is_dir():
            missing = [
                n for n in ("__main__.py", "settings.py", "server.py", "convert.py") if not (package / n).is_file()
            ]
            assert not missing, f"{package.name} lacks {missing}"


def test_no_module_has_a_name_that_says_nothing():
    bad = [str(p.relative_to(ROOT)) for p in sources() if p.stem in {"utils", "util", "common", "helpers", "misc"}]
    assert bad == []


def test_files_keep_their_budget():
    long = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in sources()}
    over = {name: n for name, n in long.items() if n > 300 and name not in LONG_FILES}
    assert over == {}


def test_every_error_that_names_a_reason_gives_a_remedy():
    silent = []
    for path in sources():
        if "testing" in path.parts:  # what a made-up server says is the test's own affair
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            given = {k.arg for k in call.keywords}
            name = ast.unparse(call.func)
            coded = name == "Failure" and call.args and isinstance(call.args[0], ast.Constant) and len(call.args) < 4
            if ((name.endswith("Error") and "reason" in given) or coded) and "remedy" not in given:
                silent.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert silent == []


def test_no_registry_and_no_machine_path_is_committed():
    hosts = re.compile(
        r"(pypi\.org|pythonhosted|files\.python|registry\.npmjs|deb\.debian\.org|/" + "root/|/" + "work/)"
    )
    bad = []
    for path in tracked():
        if path.suffix in {".onnx", ".npz", ".bin", ".png", ".gz", ".data"} or path.name == Path(__file__).name:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if hosts.search(line):
                bad.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert bad == []


def test_no_vendor_binary_is_committed():
    bad = [str(p.relative_to(ROOT)) for p in tracked() if p.suffix in {".whl", ".hbm", ".bin", ".so"}]
    assert bad == []


def test_no_large_file_is_committed():
    large = [str(p.relative_to(ROOT)) for p in tracked() if p.stat().st_size > 2_000_000]
    assert large == []
