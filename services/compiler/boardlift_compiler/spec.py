"""What can be asked of the compiler: one typed field per vendor knob, with unit, range and default.

Pure data. ``KNOBS`` is the list of all keys the vendor's YAML knows; it feeds the writer, the lint and
``DescribeToolchain``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

MARCH = "bayes-e"
TARGET = "rdk-x5"

TRAIN_TYPES = ("featuremap", "rgb", "bgr", "yuv444", "gray")
RUNTIME_TYPES = ("featuremap", "rgb", "bgr", "yuv444", "nv12", "gray")
TYPE_PAIRS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rgb": ("nv12", "yuv444", "rgb", "bgr"),
        "bgr": ("nv12", "yuv444", "rgb", "bgr"),
        "yuv444": ("nv12", "yuv444"),
        "gray": ("gray",),
        "featuremap": ("featuremap",),
    }
)
"""Training type -> run-time types the tool converts to."""
SOURCE_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"ddr": ("featuremap", "rgb", "bgr", "yuv444", "gray"), "pyramid": ("nv12", "gray"), "resizer": ("nv12", "gray")}
)
"""Where the board takes the input from -> run-time types that come from there (measured)."""
LAYOUTS = ("NCHW", "NHWC")
NORM_TYPES = ("no_preprocess", "data_mean", "data_scale", "data_mean_and_scale")


def norm_type_of(mean: tuple[float, ...], scale: tuple[float, ...]) -> str:
    """Return the ``norm_type`` that goes with what is given of mean and scale."""
    if mean:
        return "data_mean_and_scale" if scale else "data_mean"
    return "data_scale" if scale else "no_preprocess"


METHODS = ("default", "mix", "kl", "max", "load", "skip")
OPTIMIZE_LEVELS = ("O0", "O1", "O2", "O3")
COMPILE_MODES = ("latency", "bandwidth", "balance")
REMOVABLE_TYPES = ("Quantize", "Dequantize", "Transpose", "Cast", "Reshape", "Softmax")
SOURCES = tuple(SOURCE_TYPES)
CALIBRATION_TYPES = ("float32", "uint8", "int32", "int16", "int8")
PRESETS = ("int8", "int16", "mixed", "auto", "fast-perf")
PURPOSES = ("release", "search", "preview")


@dataclass(frozen=True)
class InputSpec:
    """Facts about one input."""

    name: str
    """Input name in the model."""
    type_train: str = "featuremap"
    """What the model was trained with; one of TRAIN_TYPES."""
    type_rt: str = "featuremap"
    """What the board feeds; one of RUNTIME_TYPES."""
    layout_train: str = "NCHW"
    """Layout at training."""
    layout_rt: str = "NCHW"
    """Layout at run time; not written for nv12."""
    space_and_range: str = "regular"
    """``regular`` or ``bt601_video`` (nv12 of an input trained as rgb or bgr only)."""
    norm_type: str = "no_preprocess"
    """One of NORM_TYPES; featuremap takes none."""
    mean: tuple[float, ...] = ()
    """Mean per channel in units of the raw data (0 to 255 for images)."""
    scale: tuple[float, ...] = ()
    """Factor per channel, applied after the mean."""
    shape: tuple[int, ...] = ()
    """Fixed shape; empty takes the model's."""
    source: str = ""
    """``ddr``, ``pyramid`` or ``resizer``; empty lets the tool choose."""
    batch: int = 0
    """Batch of the compiled model, 1 to 4096; 0 leaves it alone."""
    calibration_dtype: str = ""
    """Element type of the calibration files; empty chooses uint8 for images, float32 otherwise."""

    @property
    def is_image(self) -> bool:
        """True for camera-like inputs."""
        return self.type_train != "featuremap"

    @property
    def converted_as_float(self) -> bool:
        """True where the tool converts the samples in floating point, and fails on uint8 ones (measured)."""
        turned = self.type_rt == "yuv444" and self.type_train != "yuv444"
        return turned or self.space_and_range == "bt601_video"

    @property
    def written_dtype(self) -> str:
        """Element type of the calibration files we write."""
        return self.calibration_dtype or ("uint8" if self.is_image else "float32")


@dataclass(frozen=True)
class NodeOverride:
    """Override for one node."""

    node: str
    """Node name in the model."""
    device: str = ""
    """``BPU``, ``CPU`` or empty."""
    input_type: str = ""
    """``int8``, ``int16`` or empty, for all inputs."""
    output_type: str = ""
    """``int8``, ``int16`` or empty."""
    input_types: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """Input number -> type, for single inputs."""


@dataclass(frozen=True)
class CalibrationSpec:
    """Calibration knobs."""

    method: str = ""
    """One of METHODS; empty lets the purpose choose (default for a release, max otherwise)."""
    max_percentile: float = 0.0
    """0.5 to 1 for max; 0 leaves it to the tool (1.0)."""
    per_channel: bool = False
    """Quantise per channel; not with default or mix."""
    optimization: tuple[str, ...] = ()
    """Words of the tool's ``optimization`` list."""
    run_on_cpu: tuple[str, ...] = ()
    """Nodes to place on the CPU."""
    run_on_bpu: tuple[str, ...] = ()
    """Nodes to place on the BPU; honoured for some types only."""


@dataclass(frozen=True)
class CompilerKnobs:
    """Compiler knobs."""

    optimize_level: str = ""
    """O0 to O3; empty lets the purpose choose (release O3, search O2, preview O1)."""
    compile_mode: str = "latency"
    """One of COMPILE_MODES."""
    balance_factor: int = 0
    """0 to 100, percent; only with balance."""
    debug: bool = True
    """Per-layer rows in the performance report."""
    max_time_per_fc_us: int = 0
    """0 or 1000 to 4294967295 microseconds per function call."""
    jobs: int = 0
    """Optimiser threads; 0 chooses by cores and slots."""
    advice_us: int = 0
    """Microseconds above which slow layers are listed; 0 is off."""


@dataclass(frozen=True)
class CompileSpec:
    """One way to compile a model."""

    name: str = "variant"
    """Name of the variant; for people, never given to the tool."""
    preset: str = ""
    """One of PRESETS or empty; fills what is left empty below."""
    purpose: str = "release"
    """One of PURPOSES; chooses level and method where they are left empty."""
    inputs: tuple[InputSpec, ...] = ()
    """One per input; a missing one is a featuremap."""
    calibration: CalibrationSpec = field(default_factory=CalibrationSpec)
    """Calibration knobs."""
    nodes: tuple[NodeOverride, ...] = ()
    """Per-node overrides."""
    compiler: CompilerKnobs = field(default_factory=CompilerKnobs)
    """Compiler knobs."""
    remove_node_types: tuple[str, ...] = ()
    """Edge nodes to remove by type, of REMOVABLE_TYPES."""
    remove_node_names: tuple[str, ...] = ()
    """Edge nodes to remove by name."""
    output_nodes: tuple[str, ...] = ()
    """Nodes at which the tool cuts the graph."""
    layer_out_dump: bool = False
    """Dump conv layers on the board; slows the model."""
    dump_calibration_data: bool = False
    """Keep what the debugger needs (``debug_mode: dump_calibration_data``)."""

    def input_named(self, name: str) -> InputSpec:
        """Return the spec of an input; a featuremap when it is not listed."""
        return next((i for i in self.inputs if i.name == name), InputSpec(name))

    @property
    def wants_int16(self) -> bool:
        """True when every node was asked to run in int16."""
        return "set_all_nodes_int16" in self.calibration.optimization

    def with_calibration(self, **changes: object) -> CompileSpec:
        """Return a copy with other calibration knobs."""
        return replace(self, calibration=replace(self.calibration, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Knob:
    """One key of the vendor's YAML."""

    section: str
    """Section of the YAML."""
    key: str
    """Key in the section."""
    unit: str
    """Unit, empty for words."""
    allowed: str
    """Range or list of values."""
    default: str
    """What the tool takes when the key is absent."""
    field: str
    """Typed field that carries it; empty when the service sets it itself or refuses it (``why``)."""
    why: str = ""
    """Why there is no typed field."""


MODEL, INPUT = "model_parameters", "input_parameters"
CALIBRATION, COMPILER = "calibration_parameters", "compiler_parameters"
OURS = "set by the service, so that nothing of the caller's names reaches the tool"
KNOBS = (
    Knob(MODEL, "onnx_model", "", "path", "", "", OURS),
    Knob(MODEL, "caffe_model", "", "path", "", "", "ONNX only"),
    Knob(MODEL, "prototxt", "", "path", "", "", "ONNX only"),
    Knob(MODEL, "march", "", "bernoulli2 bayes bayes-e", "required", "", "given by the target"),
    Knob(MODEL, "output_model_file_prefix", "", "text", "model", "", OURS),
    Knob(MODEL, "working_dir", "", "path", "model_output", "", OURS),
    Knob(MODEL, "layer_out_dump", "", "True False", "False", "layer_out_dump"),
    Knob(MODEL, "output_nodes", "", "node names ;", "", "output_nodes"),
    Knob(MODEL, "remove_node_type", "", " ".join(REMOVABLE_TYPES) + " ;", "", "remove_node_types"),
    Knob(MODEL, "remove_node_name", "", "node names ;", "", "remove_node_names"),
    Knob(MODEL, "node_info", "", "mapping or text", "", "nodes"),
    Knob(MODEL, "set_node_data_type", "", "text", "", "nodes", "deprecated form of node_info"),
    Knob(MODEL, "debug_mode", "", "dump_calibration_data", "", "dump_calibration_data"),
    Knob(MODEL, "log_level", "", "", "debug", "", "obsolete: the tool ignores it"),
    Knob(INPUT, "input_name", "", "names ;", "from model", "inputs.name"),
    Knob(INPUT, "input_type_train", "", " ".join(TRAIN_TYPES), "required", "inputs.type_train"),
    Knob(INPUT, "input_layout_train", "", "NCHW NHWC", "required", "inputs.layout_train"),
    Knob(INPUT, "input_type_rt", "", " ".join(RUNTIME_TYPES), "required", "inputs.type_rt"),
    Knob(INPUT, "input_layout_rt", "", "NCHW NHWC", "required except nv12", "inputs.layout_rt"),
    Knob(INPUT, "input_space_and_range", "", "regular bt601_video", "regular", "inputs.space_and_range"),
    Knob(INPUT, "input_shape", "elements", "like 1x3x224x224 ;", "from model", "inputs.shape"),
    Knob(INPUT, "input_batch", "samples", "1..4096", "1", "inputs.batch"),
    Knob(INPUT, "norm_type", "", " ".join(NORM_TYPES), "no_preprocess", "inputs.norm_type"),
    Knob(INPUT, "mean_value", "raw data units", "number per channel", "none", "inputs.mean"),
    Knob(INPUT, "scale_value", "1/raw data units", "number per channel", "none", "inputs.scale"),
    Knob(CALIBRATION, "cal_data_dir", "", "folders ;", "required", "", OURS),
    Knob(
        CALIBRATION, "cal_data_type", "", " ".join(CALIBRATION_TYPES), "from folder suffix", "inputs.calibration_dtype"
    ),
    Knob(CALIBRATION, "preprocess_on", "", "True False", "False", "", "decoding is ours: the tool gets raw files only"),
    Knob(CALIBRATION, "calibration_type", "", " ".join(METHODS), "default", "calibration.method"),
    Knob(CALIBRATION, "max_percentile", "share", "0.5..1", "1.0", "calibration.max_percentile"),
    Knob(CALIBRATION, "per_channel", "", "True False", "False", "calibration.per_channel"),
    Knob(CALIBRATION, "run_on_cpu", "", "node names ;", "", "calibration.run_on_cpu"),
    Knob(CALIBRATION, "run_on_bpu", "", "node names ;", "", "calibration.run_on_bpu"),
    Knob(CALIBRATION, "optimization", "", "words ;", "", "calibration.optimization"),
    Knob(COMPILER, "compile_mode", "", " ".join(COMPILE_MODES), "latency", "compiler.compile_mode"),
    Knob(COMPILER, "balance_factor", "percent", "0..100", "required with balance", "compiler.balance_factor"),
    Knob(COMPILER, "debug", "", "True False", "True (measured; manuals differ)", "compiler.debug"),
    Knob(COMPILER, "core_num", "cores", "1", "1", "", "the chip has one core"),
    Knob(COMPILER, "optimize_level", "", "O0 O1 O2 O3", "O0", "compiler.optimize_level"),
    Knob(
        COMPILER,
        "input_source",
        "",
        "mapping of input to " + " ".join(SOURCES),
        "pyramid for nv12/gray",
        "inputs.source",
    ),
    Knob(COMPILER, "max_time_per_fc", "us", "0 or 1000..4294967295", "0", "compiler.max_time_per_fc_us"),
    Knob(COMPILER, "jobs", "threads", "1..", "compiler's choice", "compiler.jobs"),
    Knob(COMPILER, "advice", "us", "0..", "0", "compiler.advice_us"),
    Knob("custom_op", "custom_op_method", "", "register", "", "", "would run the caller's Python: refused"),
    Knob("custom_op", "op_register_files", "", "files ;", "", "", "would run the caller's Python: refused"),
    Knob("custom_op", "custom_op_dir", "", "folder", "", "", "would run the caller's Python: refused"),
)
