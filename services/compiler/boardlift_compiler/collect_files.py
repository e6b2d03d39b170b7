"""Collect what the tool left beside the two models: every file under a neutral name, without the machine's paths."""

from __future__ import annotations

import zipfile
from pathlib import Path

from boardlift_compiler.run_folder import RunFolder
from boardlift_compiler.scrub_paths import Scrubber
from boardlift_compiler.write_config import CONFIG_FILE, OUTPUT_FOLDER, PREFIX

TOOL_LOG = "hb_mapper_makertbin.log"
"""The tool's own log file: what the console shows, and with it what it says at level DEBUG."""
CALIBRATION_DATA = "calibration_data.zip"
DUMP_FOLDER = "calibration_data"
KNOWN = {
    f"{PREFIX}_original_float_model.onnx": "original_float_model.onnx",
    f"{PREFIX}_optimized_float_model.onnx": "optimized_float_model.onnx",
    f"{PREFIX}_calibrated_model.onnx": "calibrated_model.onnx",
    f"{PREFIX}_quant_info.json": "quant_info.json",
    "deleted_nodes_info.txt": "deleted_nodes_info.txt",
}
"""File in the tool's output folder -> name for people."""
TEXTS = (".json", ".txt", ".html", ".log")


def collect_files(folder: RunFolder, scrubber: Scrubber) -> dict[str, Path]:
    """Return the files of a finished run by neutral name; texts among them are scrubbed in place.

    With ``debug_mode: dump_calibration_data`` the samples as the vendor's debugger reads them are packed into one
    archive, ``calibration_data/<input>/<n>.npy``.
    """
    out = folder.path / OUTPUT_FOLDER
    files = {new: out / old for old, new in KNOWN.items() if (out / old).is_file()}
    for path in sorted([*out.glob("*_subgraph_*.json"), *out.glob("*_subgraph_*.html")]):
        files[path.name] = path
    if (out / DUMP_FOLDER).is_dir():
        files[CALIBRATION_DATA] = _pack(out / DUMP_FOLDER, folder.path / CALIBRATION_DATA)
    files["config.yaml"] = folder.path / CONFIG_FILE
    files |= collect_log(folder, scrubber)
    for name, path in files.items():
        if path.suffix in TEXTS and name != TOOL_LOG:
            scrubber.file(path)
    return files


def collect_log(folder: RunFolder, scrubber: Scrubber) -> dict[str, Path]:
    """Return the tool's own log file, which a failed run leaves too; empty when it never got that far."""
    log = folder.path / TOOL_LOG
    if not log.is_file():
        return {}
    scrubber.file(log)
    return {TOOL_LOG: log}


def _pack(source: Path, target: Path) -> Path:
    """Pack a folder; equal contents give equal bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(p for p in source.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(f"{source.name}/{path.relative_to(source).as_posix()}")
            archive.writestr(entry, path.read_bytes())
    return target
