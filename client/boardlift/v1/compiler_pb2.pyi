from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeToolchainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeToolchainResponse(_message.Message):
    __slots__ = ("toolchain", "targets", "knobs", "presets", "failure_kinds")
    TOOLCHAIN_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    KNOBS_FIELD_NUMBER: _ClassVar[int]
    PRESETS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_KINDS_FIELD_NUMBER: _ClassVar[int]
    toolchain: _toolchain_pb2.ToolchainInfo
    targets: _containers.RepeatedScalarFieldContainer[str]
    knobs: _containers.RepeatedCompositeFieldContainer[Knob]
    presets: _containers.RepeatedScalarFieldContainer[str]
    failure_kinds: _containers.RepeatedCompositeFieldContainer[FailureKind]
    def __init__(self, toolchain: _Optional[_Union[_toolchain_pb2.ToolchainInfo, _Mapping]] = ..., targets: _Optional[_Iterable[str]] = ..., knobs: _Optional[_Iterable[_Union[Knob, _Mapping]]] = ..., presets: _Optional[_Iterable[str]] = ..., failure_kinds: _Optional[_Iterable[_Union[FailureKind, _Mapping]]] = ...) -> None: ...

class Knob(_message.Message):
    __slots__ = ("section", "key", "unit", "allowed", "default_value", "field", "reason")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    section: str
    key: str
    unit: str
    allowed: str
    default_value: str
    field: str
    reason: str
    def __init__(self, section: _Optional[str] = ..., key: _Optional[str] = ..., unit: _Optional[str] = ..., allowed: _Optional[str] = ..., default_value: _Optional[str] = ..., field: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class FailureKind(_message.Message):
    __slots__ = ("code", "cause", "remedy", "user_fault", "transform_pass")
    CODE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    USER_FAULT_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PASS_FIELD_NUMBER: _ClassVar[int]
    code: str
    cause: str
    remedy: str
    user_fault: bool
    transform_pass: str
    def __init__(self, code: _Optional[str] = ..., cause: _Optional[str] = ..., remedy: _Optional[str] = ..., user_fault: bool = ..., transform_pass: _Optional[str] = ...) -> None: ...

class ConvertConfigRequest(_message.Message):
    __slots__ = ("yaml",)
    YAML_FIELD_NUMBER: _ClassVar[int]
    yaml: str
    def __init__(self, yaml: _Optional[str] = ...) -> None: ...

class ConvertConfigResponse(_message.Message):
    __slots__ = ("variant", "findings", "paths")
    class PathsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    variant: VariantSpec
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    paths: _containers.ScalarMap[str, str]
    def __init__(self, variant: _Optional[_Union[VariantSpec, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., paths: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CheckModelRequest(_message.Message):
    __slots__ = ("model", "target", "variant")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    model: _artifact_pb2.ArtifactRef
    target: str
    variant: VariantSpec
    def __init__(self, model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., target: _Optional[str] = ..., variant: _Optional[_Union[VariantSpec, _Mapping]] = ...) -> None: ...

class CheckModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: CheckResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[CheckResult, _Mapping]] = ...) -> None: ...

class CheckResult(_message.Message):
    __slots__ = ("failure", "nodes", "bpu_subgraphs", "bpu_nodes", "cpu_nodes", "findings", "log", "execution", "subgraphs")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    BPU_SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    BPU_NODES_FIELD_NUMBER: _ClassVar[int]
    CPU_NODES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    nodes: _containers.RepeatedCompositeFieldContainer[NodePlacement]
    bpu_subgraphs: int
    bpu_nodes: int
    cpu_nodes: int
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    log: _artifact_pb2.ArtifactRef
    execution: _toolchain_pb2.ExecutionInfo
    subgraphs: _containers.RepeatedCompositeFieldContainer[SubgraphEstimate]
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[NodePlacement, _Mapping]]] = ..., bpu_subgraphs: _Optional[int] = ..., bpu_nodes: _Optional[int] = ..., cpu_nodes: _Optional[int] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., log: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., subgraphs: _Optional[_Iterable[_Union[SubgraphEstimate, _Mapping]]] = ...) -> None: ...

class NodePlacement(_message.Message):
    __slots__ = ("node", "device", "subgraph", "type", "cosine", "threshold", "dtype", "reason")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SUBGRAPH_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    node: str
    device: str
    subgraph: int
    type: str
    cosine: float
    threshold: str
    dtype: str
    reason: str
    def __init__(self, node: _Optional[str] = ..., device: _Optional[str] = ..., subgraph: _Optional[int] = ..., type: _Optional[str] = ..., cosine: _Optional[float] = ..., threshold: _Optional[str] = ..., dtype: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class InputSpec(_message.Message):
    __slots__ = ("name", "type_train", "type_rt", "layout_train", "layout_rt", "space_and_range", "norm_type", "mean_value", "scale_value", "shape", "source", "batch", "calibration_dtype")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_TRAIN_FIELD_NUMBER: _ClassVar[int]
    TYPE_RT_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_TRAIN_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_RT_FIELD_NUMBER: _ClassVar[int]
    SPACE_AND_RANGE_FIELD_NUMBER: _ClassVar[int]
    NORM_TYPE_FIELD_NUMBER: _ClassVar[int]
    MEAN_VALUE_FIELD_NUMBER: _ClassVar[int]
    SCALE_VALUE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_DTYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type_train: str
    type_rt: str
    layout_train: str
    layout_rt: str
    space_and_range: str
    norm_type: str
    mean_value: _containers.RepeatedScalarFieldContainer[float]
    scale_value: _containers.RepeatedScalarFieldContainer[float]
    shape: _containers.RepeatedScalarFieldContainer[int]
    source: str
    batch: int
    calibration_dtype: str
    def __init__(self, name: _Optional[str] = ..., type_train: _Optional[str] = ..., type_rt: _Optional[str] = ..., layout_train: _Optional[str] = ..., layout_rt: _Optional[str] = ..., space_and_range: _Optional[str] = ..., norm_type: _Optional[str] = ..., mean_value: _Optional[_Iterable[float]] = ..., scale_value: _Optional[_Iterable[float]] = ..., shape: _Optional[_Iterable[int]] = ..., source: _Optional[str] = ..., batch: _Optional[int] = ..., calibration_dtype: _Optional[str] = ...) -> None: ...

class NodeOverride(_message.Message):
    __slots__ = ("node", "device", "input_type", "output_type", "input_types")
    class InputTypesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TYPES_FIELD_NUMBER: _ClassVar[int]
    node: str
    device: str
    input_type: str
    output_type: str
    input_types: _containers.ScalarMap[int, str]
    def __init__(self, node: _Optional[str] = ..., device: _Optional[str] = ..., input_type: _Optional[str] = ..., output_type: _Optional[str] = ..., input_types: _Optional[_Mapping[int, str]] = ...) -> None: ...

class CalibrationSpec(_message.Message):
    __slots__ = ("method", "max_percentile", "per_channel", "optimization", "run_on_cpu", "run_on_bpu")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MAX_PERCENTILE_FIELD_NUMBER: _ClassVar[int]
    PER_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZATION_FIELD_NUMBER: _ClassVar[int]
    RUN_ON_CPU_FIELD_NUMBER: _ClassVar[int]
    RUN_ON_BPU_FIELD_NUMBER: _ClassVar[int]
    method: str
    max_percentile: float
    per_channel: bool
    optimization: _containers.RepeatedScalarFieldContainer[str]
    run_on_cpu: _containers.RepeatedScalarFieldContainer[str]
    run_on_bpu: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, method: _Optional[str] = ..., max_percentile: _Optional[float] = ..., per_channel: bool = ..., optimization: _Optional[_Iterable[str]] = ..., run_on_cpu: _Optional[_Iterable[str]] = ..., run_on_bpu: _Optional[_Iterable[str]] = ...) -> None: ...

class CompilerKnobs(_message.Message):
    __slots__ = ("optimize_level", "compile_mode", "balance_factor", "debug", "max_time_per_fc_us", "jobs", "advice_us", "no_debug")
    OPTIMIZE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    COMPILE_MODE_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    DEBUG_FIELD_NUMBER: _ClassVar[int]
    MAX_TIME_PER_FC_US_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    ADVICE_US_FIELD_NUMBER: _ClassVar[int]
    NO_DEBUG_FIELD_NUMBER: _ClassVar[int]
    optimize_level: str
    compile_mode: str
    balance_factor: int
    debug: bool
    max_time_per_fc_us: int
    jobs: int
    advice_us: int
    no_debug: bool
    def __init__(self, optimize_level: _Optional[str] = ..., compile_mode: _Optional[str] = ..., balance_factor: _Optional[int] = ..., debug: bool = ..., max_time_per_fc_us: _Optional[int] = ..., jobs: _Optional[int] = ..., advice_us: _Optional[int] = ..., no_debug: bool = ...) -> None: ...

class VariantSpec(_message.Message):
    __slots__ = ("name", "preset", "inputs", "calibration", "nodes", "compiler", "remove_node_types", "remove_node_names", "output_nodes", "purpose", "layer_out_dump", "dump_calibration_data")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    COMPILER_FIELD_NUMBER: _ClassVar[int]
    REMOVE_NODE_TYPES_FIELD_NUMBER: _ClassVar[int]
    REMOVE_NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_NODES_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    LAYER_OUT_DUMP_FIELD_NUMBER: _ClassVar[int]
    DUMP_CALIBRATION_DATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    preset: str
    inputs: _containers.RepeatedCompositeFieldContainer[InputSpec]
    calibration: CalibrationSpec
    nodes: _containers.RepeatedCompositeFieldContainer[NodeOverride]
    compiler: CompilerKnobs
    remove_node_types: _containers.RepeatedScalarFieldContainer[str]
    remove_node_names: _containers.RepeatedScalarFieldContainer[str]
    output_nodes: _containers.RepeatedScalarFieldContainer[str]
    purpose: str
    layer_out_dump: bool
    dump_calibration_data: bool
    def __init__(self, name: _Optional[str] = ..., preset: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[InputSpec, _Mapping]]] = ..., calibration: _Optional[_Union[CalibrationSpec, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[NodeOverride, _Mapping]]] = ..., compiler: _Optional[_Union[CompilerKnobs, _Mapping]] = ..., remove_node_types: _Optional[_Iterable[str]] = ..., remove_node_names: _Optional[_Iterable[str]] = ..., output_nodes: _Optional[_Iterable[str]] = ..., purpose: _Optional[str] = ..., layer_out_dump: bool = ..., dump_calibration_data: bool = ...) -> None: ...

class CompileModelRequest(_message.Message):
    __slots__ = ("model", "target", "variant", "calibration", "validate_only")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    model: _artifact_pb2.ArtifactRef
    target: str
    variant: VariantSpec
    calibration: _artifact_pb2.ArtifactRef
    validate_only: bool
    def __init__(self, model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., target: _Optional[str] = ..., variant: _Optional[_Union[VariantSpec, _Mapping]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., validate_only: bool = ...) -> None: ...

class CompileModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: CompileResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[CompileResult, _Mapping]] = ...) -> None: ...

class SubgraphEstimate(_message.Message):
    __slots__ = ("name", "figures", "layers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    layers: _containers.RepeatedCompositeFieldContainer[LayerCost]
    def __init__(self, name: _Optional[str] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., layers: _Optional[_Iterable[_Union[LayerCost, _Mapping]]] = ...) -> None: ...

class LayerCost(_message.Message):
    __slots__ = ("layer", "operations", "compute_us", "transfer_us", "active")
    LAYER_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_US_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_US_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    layer: str
    operations: int
    compute_us: float
    transfer_us: float
    active: str
    def __init__(self, layer: _Optional[str] = ..., operations: _Optional[int] = ..., compute_us: _Optional[float] = ..., transfer_us: _Optional[float] = ..., active: _Optional[str] = ...) -> None: ...

class CompileResult(_message.Message):
    __slots__ = ("failure", "compiled_model", "quantized_model", "files", "nodes", "vendor_outputs", "subgraphs", "figures", "bpu_nodes", "cpu_nodes", "chosen_method", "batch_fallback", "samples_read", "findings", "normalized_sha256", "yaml", "command", "log", "execution", "optimize_level")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_MODEL_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    VENDOR_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    BPU_NODES_FIELD_NUMBER: _ClassVar[int]
    CPU_NODES_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_METHOD_FIELD_NUMBER: _ClassVar[int]
    BATCH_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_READ_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_SHA256_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    compiled_model: _artifact_pb2.ArtifactRef
    quantized_model: _artifact_pb2.ArtifactRef
    files: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.NamedArtifact]
    nodes: _containers.RepeatedCompositeFieldContainer[NodePlacement]
    vendor_outputs: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    subgraphs: _containers.RepeatedCompositeFieldContainer[SubgraphEstimate]
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    bpu_nodes: int
    cpu_nodes: int
    chosen_method: str
    batch_fallback: bool
    samples_read: int
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    normalized_sha256: str
    yaml: str
    command: _containers.RepeatedScalarFieldContainer[str]
    log: _artifact_pb2.ArtifactRef
    execution: _toolchain_pb2.ExecutionInfo
    optimize_level: str
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., quantized_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., files: _Optional[_Iterable[_Union[_toolchain_pb2.NamedArtifact, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[NodePlacement, _Mapping]]] = ..., vendor_outputs: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., subgraphs: _Optional[_Iterable[_Union[SubgraphEstimate, _Mapping]]] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., bpu_nodes: _Optional[int] = ..., cpu_nodes: _Optional[int] = ..., chosen_method: _Optional[str] = ..., batch_fallback: bool = ..., samples_read: _Optional[int] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., normalized_sha256: _Optional[str] = ..., yaml: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., log: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., optimize_level: _Optional[str] = ...) -> None: ...

class SimulateModelRequest(_message.Message):
    __slots__ = ("quantized_model", "compiled_model", "heldout", "reference_outputs", "bit_check_samples", "inputs")
    QUANTIZED_MODEL_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    BIT_CHECK_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    quantized_model: _artifact_pb2.ArtifactRef
    compiled_model: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    bit_check_samples: int
    inputs: _containers.RepeatedCompositeFieldContainer[InputSpec]
    def __init__(self, quantized_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., bit_check_samples: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[InputSpec, _Mapping]]] = ...) -> None: ...

class SimulateModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: SimulateResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[SimulateResult, _Mapping]] = ...) -> None: ...

class BitCheck(_message.Message):
    __slots__ = ("subgraph", "tensor", "samples", "equal", "different_elements", "max_difference", "first_difference", "not_compared")
    SUBGRAPH_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    EQUAL_FIELD_NUMBER: _ClassVar[int]
    DIFFERENT_ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    NOT_COMPARED_FIELD_NUMBER: _ClassVar[int]
    subgraph: str
    tensor: str
    samples: int
    equal: bool
    different_elements: int
    max_difference: int
    first_difference: str
    not_compared: str
    def __init__(self, subgraph: _Optional[str] = ..., tensor: _Optional[str] = ..., samples: _Optional[int] = ..., equal: bool = ..., different_elements: _Optional[int] = ..., max_difference: _Optional[int] = ..., first_difference: _Optional[str] = ..., not_compared: _Optional[str] = ...) -> None: ...

class SimulateResult(_message.Message):
    __slots__ = ("failure", "outputs", "bit_checks", "bit_exact", "quantized_outputs", "findings", "execution", "batched")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    BIT_CHECKS_FIELD_NUMBER: _ClassVar[int]
    BIT_EXACT_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    BATCHED_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    outputs: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    bit_checks: _containers.RepeatedCompositeFieldContainer[BitCheck]
    bit_exact: bool
    quantized_outputs: _artifact_pb2.ArtifactRef
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    execution: _toolchain_pb2.ExecutionInfo
    batched: bool
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., bit_checks: _Optional[_Iterable[_Union[BitCheck, _Mapping]]] = ..., bit_exact: bool = ..., quantized_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., batched: bool = ...) -> None: ...
