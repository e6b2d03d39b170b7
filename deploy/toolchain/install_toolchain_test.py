"""The install recipe: what it refuses, what it leaves alone, and the placeholders it writes."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
INSTALL = HERE / "install.sh"


def load():
    spec = importlib.util.spec_from_file_location("install_toolchain", HERE / "install_toolchain.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_requirement_is_pinned_and_hashed_and_names_no_host():
    text = (HERE / "requirements.txt").read_text()
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.M)
    assert len(pins) == 22
    assert len(set(pins)) == 22
    assert {"dgdk", "dg-nn-toolkit", "rdkx5-yolo-mapper"} <= set(pins)
    assert "://" not in text
    for block in re.split(r"\n(?=[A-Za-z])", text.split("\n", 1)[1]):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "aarch64"), ("Windows", "AMD64")])
def test_other_machines_get_one_clear_line(monkeypatch, capsys, tmp_path, system, machine):
    module = load()
    monkeypatch.setattr(module.platform, "system", lambda: system)
    monkeypatch.setattr(module.platform, "machine", lambda: machine)
    assert module.main([str(tmp_path / "t")]) == 3
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert machine in lines[0]
    assert not (tmp_path / "t").exists()


def test_without_python_310_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    module = load()
    monkeypatch.setattr(
        module, "python310_candidates", lambda: [sys.executable] if sys.version_info[:2] != (3, 10) else []
    )
    monkeypatch.setattr(module, "find_uv", lambda: None)
    assert module.main([str(tmp_path / "t")]) == 3
    assert "Python 3.10" in capsys.readouterr().err


def test_it_never_deletes_what_is_not_an_environment(tmp_path, capsys):
    module = load()
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.txt").write_text("x")
    assert module.main([str(precious)]) == 1
    assert (precious / "thesis.txt").exists()
    assert "refusing" in capsys.readouterr().err


def test_placeholders_resolve_and_refuse_to_compute(tmp_path):
    load().write_placeholders(tmp_path)
    code = """
import torch, torch.nn, torch.onnx, matplotlib, matplotlib.pyplot, paramiko.channel, skimage.transform
from torch.onnx.symbolic_helper import parse_args
class Layer(torch.nn.Module): pass
assert not isinstance(3, (torch.Tensor, torch.device))
torch.onnx.register_custom_op_symbolic("a::b", print, 11)
matplotlib.use("Agg")
@parse_args("v")
def f(x): return x + 1
assert f(1) == 2
figure, axes = matplotlib.pyplot.subplots(2)
axes[0].plot([1, 2], label="x").set_title("nothing is drawn")
for make in (torch.Tensor, Layer, skimage.transform.resize):
    try: make()
    except RuntimeError as error: assert "placeholder" in str(error)
    else: raise SystemExit("a placeholder computed")
print(torch.float32.__name__)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.stdout == "float32\n", done.stderr


def test_a_real_package_is_not_shadowed(tmp_path):
    (tmp_path / "matplotlib-3.10.0.dist-info").mkdir()
    load().write_placeholders(tmp_path)
    assert not (tmp_path / "matplotlib").exists()
    assert (tmp_path / "torch").exists()


@pytest.mark.toolchain
def test_a_second_run_changes_nothing_and_the_probe_answers():
    root = Path(os.environ.get("BOARDLIFT_TOOLCHAIN") or HERE.parents[1] / ".boardlift/toolchain")
    before = (root / "pyvenv.cfg").stat().st_mtime_ns
    for arguments in ([str(root)], [str(root), "--probe"]):
        done = subprocess.run([str(INSTALL), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (root / "pyvenv.cfg").stat().st_mtime_ns == before
    stamp = root / "boardlift-toolchain.json"
    assert not stamp.exists() or json.loads(stamp.read_text())["hb_mapper"] == "1.24.3"


def test_probe_of_nothing_fails(tmp_path):
    done = subprocess.run([str(INSTALL), str(tmp_path), "--probe"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not start" in done.stderr
