"""Compile a model that needs no transform, without a job: direct calls to the compiler service.

An existing makertbin YAML is taken over as it is: the service converts it, and what it points at is read here.
Results are the protobuf messages themselves (`boardlift.v1.compiler_pb2`), since they are wide and meant for tools.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boardlift._local_files import unreadable
from boardlift._model_inputs import read_input_origins, read_input_shapes
from boardlift._requests import to_ref
from boardlift._store import Store
from boardlift._transfer import safe_name
from boardlift.errors import InvalidInputError
from boardlift.models import Finding
from boardlift.stages import OnEvent, StageClient
from boardlift.v1 import artifact_pb2, compiler_pb2

if TYPE_CHECKING:
    from boardlift.datasets import Dataset

MAX_YAML_BYTES = 1 << 20
WRITTEN_BY = b"# written by boardlift"
"""How every config.yaml of the service begins."""


@dataclass
class TakenSamples:
    """Calibration samples as they will be sent."""

    dataset: Dataset | None = None
    """The samples; None when the build needs none."""
    findings: list[Finding] = field(default_factory=list)
    """What had to be assumed."""


class CompileClient(StageClient):
    """A `StageClient` that compiles; bytes travel through the compiler's own store where it has one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Connect lazily; arguments as of `StageClient`."""
        super().__init__(*arguments, **named)
        self._stores[0].close()
        self._stores[0] = Store(self._ways["compiler"], patience_s=2)

    def __enter__(self) -> CompileClient:
        return self

    def convert_config(self, yaml: Path) -> compiler_pb2.ConvertConfigResponse:
        """Convert a makertbin YAML to a variant and lint it; a finding that is an error leaves no variant.

        Raises:
            InvalidInputError: The file can't be read or is too large (`CONFIG_UNREADABLE`).
        """
        request = compiler_pb2.ConvertConfigRequest(yaml=_read_yaml(yaml))
        return self._unary(compiler_pb2.ConvertConfigResponse, self._compiler.ConvertConfig, request, "compiler")

    def compile(
        self, request: compiler_pb2.CompileModelRequest, on_event: OnEvent | None = None
    ) -> compiler_pb2.CompileResult:
        """Compile a model.

        Raises:
            BoardliftError: The call failed. A model that is refused is a result whose `failure` says why.
        """
        result: compiler_pb2.CompileResult = self._stream(self._compiler.CompileModel, request, "compiler", on_event)
        return result

    def push(self, path: Path) -> artifact_pb2.ArtifactRef:
        """Upload a file."""
        return to_ref(self._with_store(lambda store: store.push(path)))

    def push_samples(self, dataset: Dataset) -> artifact_pb2.ArtifactRef:
        """Upload the calibration samples of a dataset: numbers and input names, nothing about where they come from."""
        from boardlift.datasets import Dataset, write_dataset

        count = dataset.split[0] if dataset.split else dataset.samples
        with tempfile.TemporaryDirectory(prefix="boardlift-") as folder:
            path = Path(folder) / "calibration.npz"
            arrays = {name: array[:count] for name, array in dataset.arrays.items()}
            write_dataset(Dataset(arrays, {"split": {"calibration": count, "heldout": 0}}), path)
            return self.push(path)

    def save(self, result: compiler_pb2.CompileResult, name: str, folder: Path) -> list[Path]:
        """Download what a compile made: NAME.bin, NAME_quantized.onnx, the log, and all other files."""
        wanted = {
            f"{name}.bin": result.compiled_model,
            f"{name}_quantized.onnx": result.quantized_model,
            f"{name}.log": result.log,
            **{safe_name(item.name): item.artifact for item in result.files},
        }
        folder.mkdir(parents=True, exist_ok=True)
        return [self.fetch(ref, folder / file) for file, ref in wanted.items() if ref.sha256]


def check_folder(folder: Path, model: Path) -> None:
    """Refuse a folder for results whose own files `save_inputs` would overwrite; an earlier build's are fine.

    Raises:
        InvalidInputError: It holds another model.onnx or calibration folders that no build left (`OUT_TAKEN`).
    """
    config = folder / "config.yaml"
    if config.is_file() and config.read_bytes().startswith(WRITTEN_BY):
        return
    taken = [p for p in (folder / "model.onnx", *folder.glob("calibration[0-9]*_*")) if p.exists()]
    for path in taken:
        if not (path.is_file() and path.samefile(model)):
            raise InvalidInputError(
                f"{folder} holds {path.name}, which no build of boardlift left; the result's own would replace it.",
                reason="OUT_TAKEN",
                remedy="Name another folder with --out.",
                metadata={"file": str(path)},
            )


def save_inputs(answer: compiler_pb2.ConvertConfigResponse, model: Path, dataset: Dataset | None, folder: Path) -> None:
    """Put what a saved `config.yaml` names beside it, so that it builds again as it lies there.

    Args:
        answer: The service's reading of that YAML.
        model: The model that was built.
        dataset: The samples that it was calibrated with; None without calibration.
        folder: Where the YAML is.

    Raises:
        InvalidInputError: The YAML names something outside of its folder, or another file in it (`CONFIG_PATH`); a
            folder for samples holds something else (`CALIBRATION_FOLDER_INVALID`).
    """
    from boardlift.datasets.raw_folders import write_raw_folder

    place = _inside(folder, answer.paths["onnx_model"], ".onnx")
    if not (place.exists() and place.samefile(model)):
        shutil.copyfile(model, place)
    named = [text for text in answer.paths["cal_data_dir"].split(";") if text]
    if dataset is None or not named:
        return
    count = dataset.split[0] if dataset.split else dataset.samples
    for item, name in zip(answer.variant.inputs, named, strict=True):
        samples = dataset.arrays[item.name][:count]
        write_raw_folder(samples, _inside(folder, name), item.calibration_dtype)


def _inside(folder: Path, name: str, suffix: str = "") -> Path:
    if not name or safe_name(name) != name or not name.endswith(suffix):
        raise InvalidInputError(
            f"The service's config.yaml names {name[:80]!r}, which is no {suffix or 'folder'} beside it.",
            reason="CONFIG_PATH",
            remedy="Use the compiler service of this release.",
        )
    return folder / name


def locate_model(yaml: Path, answer: compiler_pb2.ConvertConfigResponse) -> Path:
    """Return the model that a YAML names; like the vendor's tool, relative to the YAML.

    Raises:
        InvalidInputError: It is not there (`MODEL_MISSING`).
    """
    path = yaml.parent / answer.paths["onnx_model"]
    if not path.is_file():
        raise InvalidInputError(
            f"The model that {yaml.name} names is not there: {path}.",
            reason="MODEL_MISSING",
            remedy="Correct onnx_model, or name the model on the command line.",
            metadata={"file": str(path)},
        )
    return path


def name_inputs(variant: compiler_pb2.VariantSpec, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Give inputs without a name, as YAMLs of models with one input have them, the model's names in order."""
    for item, name in zip(variant.inputs, shapes):  # noqa: B905  # a wrong count is the service's to refuse
        item.name = item.name or name


def read_folders(
    yaml: Path, answer: compiler_pb2.ConvertConfigResponse, shapes: Mapping[str, tuple[int, ...]]
) -> TakenSamples:
    """Read the calibration folders that a YAML names; like the vendor's tool, relative to the YAML.

    Args:
        yaml: The YAML.
        answer: What the service made of it, with its inputs named.
        shapes: Shapes of the model's inputs; the YAML's own win.

    Raises:
        InvalidInputError: Folders are missing or hold something else than samples (`CALIBRATION_FOLDER_INVALID`).
    """
    from boardlift.datasets.raw_folders import RawFolder, build_from_raw_folders

    variant = answer.variant
    if variant.calibration.method in ("skip", "load"):
        return TakenSamples()
    named = [text.strip() for text in answer.paths["cal_data_dir"].split(";") if text.strip()]
    if len(named) != len(variant.inputs):
        raise InvalidInputError(
            f"{yaml.name} names {len(named)} calibration folders for {len(variant.inputs)} inputs.",
            reason="CALIBRATION_FOLDER_INVALID",
            remedy="Name one folder per input in cal_data_dir, separated by ';', or give --data.",
            metadata={"field": "cal_data_dir"},
        )
    folders = [
        RawFolder(
            item.name,
            yaml.parent / text,
            tuple(item.shape) or shapes.get(item.name, ()),
            item.calibration_dtype or "uint8",
        )
        for item, text in zip(variant.inputs, named, strict=True)
    ]
    for folder in folders:
        if min(folder.shape, default=1) < 1:
            raise InvalidInputError(
                f"Input {folder.input_name} has an open dimension and {yaml.name} gives it no shape.",
                reason="DYNAMIC_SHAPE",
                remedy="Set input_shape in the YAML.",
                metadata={"input": folder.input_name},
            )
    return TakenSamples(build_from_raw_folders(folders))


def fit_names(dataset: Dataset, model: Path) -> TakenSamples:
    """Give samples of inputs that a transform has renamed the names of the transformed model.

    Whether the samples fit in shape and type is for the service to say.

    Raises:
        InvalidInputError: An input has no samples, by this name or the one in the user's model
            (`DATASET_INPUT_MISSING`, as a job says).
    """
    from boardlift.datasets import Dataset

    origins = read_input_origins(model)
    taken, findings = {}, []
    for name in read_input_shapes(model):
        origin = origins.get(name, name)
        old = name if name in dataset.arrays else origin
        if old not in dataset.arrays:
            raise InvalidInputError(
                f"The dataset has no array for input {name}{f', {origin} before the transform' * (origin != name)}"
                f" (it has {', '.join(dataset.arrays) or 'none'}).",
                reason="DATASET_INPUT_MISSING",
                remedy="Name the arrays as the model names its inputs: boardlift dataset arrays"
                f" {origin}=SAMPLES.npy --out data.npz.",
                metadata={"input": name},
            )
        taken[name] = dataset.arrays[old]
        if old != name:
            text = f"Samples of {old} are taken for {name}: so the transform has renamed it."
            findings.append(Finding("INPUT_NAME_TAKEN", "note", text, name))
    if not findings:
        return TakenSamples(dataset)
    return TakenSamples(Dataset(taken, {k: v for k, v in dataset.document.items() if k == "split"}), findings)


def _read_yaml(yaml: Path) -> str:
    try:
        if yaml.stat().st_size > MAX_YAML_BYTES:
            raise ValueError("it is larger than 1 MiB")
        return yaml.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise unreadable(yaml, error, reason="CONFIG_UNREADABLE", remedy="Name a makertbin YAML in UTF-8.") from error
