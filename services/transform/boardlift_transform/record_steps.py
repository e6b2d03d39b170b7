"""Watch a plan run: the text diff of every step, and the model after every step as a file for viewers."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx_ir as ir

from boardlift_transform.diff_graph import GraphDiff, GraphView, diff_graphs, view_graph
from boardlift_transform.refusal import Refusal

_OURS = re.compile(r"\d{2,}-[a-z0-9-]+\.onnx")


class StepRecorder:
    """Takes a model before the first step and after each one; costs nothing when it is not used."""

    def __init__(self, model: ir.Model, keep: Path | None = None) -> None:
        """Look at the model that the first step will get.

        Args:
            model: The model before any step.
            keep: Folder for `00-original.onnx` and one file per step that changed something; made when it is absent.

        Raises:
            Refusal: STEPS_FOLDER_IN_USE when it holds anything but files of an earlier run, which are replaced.
        """
        self._count = 0
        self._folder = keep
        self._last: GraphView = view_graph(model.graph)
        if keep is not None:
            _prepare(keep)
            self._save(model, "original")

    def after(self, step: str, model: ir.Model, changed: bool) -> GraphDiff:
        """Compare with the step before; save the model when this step changed it."""
        self._count += 1
        now = view_graph(model.graph)
        diff = diff_graphs(self._last, now)
        self._last = now
        if self._folder is not None and (changed or not diff.is_empty):
            self._save(model, step)
        return diff

    def _save(self, model: ir.Model, step: str) -> None:
        if self._folder is None:
            return
        path = self._folder / f"{self._count:02d}-{step}.onnx"
        try:
            onnx.save(ir.to_proto(model), str(path))
        except OSError as error:
            raise _not_writable(self._folder, error) from error


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = list(folder.iterdir())
        if any(not _OURS.fullmatch(path.name) for path in found):
            raise Refusal(
                "STEPS_FOLDER_IN_USE",
                f"{folder.name} holds files that are no steps of a transform",
                remedy="name a new or empty folder",
                metadata={"folder": folder.name},
            )
        for path in found:
            path.unlink()
    except OSError as error:
        raise _not_writable(folder, error) from error


def _not_writable(folder: Path, error: OSError) -> Refusal:
    return Refusal(
        "STEPS_FOLDER_NOT_WRITABLE",
        f"cannot write to {folder.name}: {error.strerror}",
        remedy="name a folder that can be written to",
        metadata={"folder": folder.name},
    )
