from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeBoardRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeBoardResponse(_message.Message):
    __slots__ = ("board", "state")
    BOARD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    board: BoardInfo
    state: BoardState
    def __init__(self, board: _Optional[_Union[BoardInfo, _Mapping]] = ..., state: _Optional[_Union[BoardState, _Mapping]] = ...) -> None: ...

class BoardInfo(_message.Message):
    __slots__ = ("id", "target", "simulated", "model", "soc", "serial_hash", "os_version", "versions", "labels", "memory_bytes", "capabilities", "absent", "boot_id", "agent_version", "mode", "address")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[BoardInfo.Mode]
        MODE_PULL: _ClassVar[BoardInfo.Mode]
        MODE_DIAL: _ClassVar[BoardInfo.Mode]
    MODE_UNSPECIFIED: BoardInfo.Mode
    MODE_PULL: BoardInfo.Mode
    MODE_DIAL: BoardInfo.Mode
    class VersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SOC_FIELD_NUMBER: _ClassVar[int]
    SERIAL_HASH_FIELD_NUMBER: _ClassVar[int]
    OS_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    target: str
    simulated: bool
    model: str
    soc: str
    serial_hash: str
    os_version: str
    versions: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    memory_bytes: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    absent: _containers.RepeatedScalarFieldContainer[str]
    boot_id: str
    agent_version: str
    mode: BoardInfo.Mode
    address: str
    def __init__(self, id: _Optional[str] = ..., target: _Optional[str] = ..., simulated: bool = ..., model: _Optional[str] = ..., soc: _Optional[str] = ..., serial_hash: _Optional[str] = ..., os_version: _Optional[str] = ..., versions: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., memory_bytes: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ..., absent: _Optional[_Iterable[str]] = ..., boot_id: _Optional[str] = ..., agent_version: _Optional[str] = ..., mode: _Optional[_Union[BoardInfo.Mode, str]] = ..., address: _Optional[str] = ...) -> None: ...

class BoardState(_message.Message):
    __slots__ = ("observe_time", "in_rotation", "findings", "busy_job", "figures", "governor", "lease_holder", "lease_end_time", "bpu_governor")
    OBSERVE_TIME_FIELD_NUMBER: _ClassVar[int]
    IN_ROTATION_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    BUSY_JOB_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    LEASE_HOLDER_FIELD_NUMBER: _ClassVar[int]
    LEASE_END_TIME_FIELD_NUMBER: _ClassVar[int]
    BPU_GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    observe_time: _timestamp_pb2.Timestamp
    in_rotation: bool
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    busy_job: str
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    governor: str
    lease_holder: str
    lease_end_time: _timestamp_pb2.Timestamp
    bpu_governor: str
    def __init__(self, observe_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., in_rotation: bool = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., busy_job: _Optional[str] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., governor: _Optional[str] = ..., lease_holder: _Optional[str] = ..., lease_end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., bpu_governor: _Optional[str] = ...) -> None: ...

class RunModelRequest(_message.Message):
    __slots__ = ("run_id", "compiled_model", "quantized_model", "heldout", "reference_outputs", "quantized_outputs", "samples", "perf", "float_model", "job_id", "estimated_latency_us", "sample_layouts", "sample_pictures")
    class SampleLayoutsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class SamplePicturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PictureForm
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PictureForm, _Mapping]] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_MODEL_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PERF_FIELD_NUMBER: _ClassVar[int]
    FLOAT_MODEL_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_PICTURES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    compiled_model: _artifact_pb2.ArtifactRef
    quantized_model: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    quantized_outputs: _artifact_pb2.ArtifactRef
    samples: int
    perf: PerfSpec
    float_model: _artifact_pb2.ArtifactRef
    job_id: str
    estimated_latency_us: float
    sample_layouts: _containers.ScalarMap[str, str]
    sample_pictures: _containers.MessageMap[str, PictureForm]
    def __init__(self, run_id: _Optional[str] = ..., compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., quantized_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., quantized_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., samples: _Optional[int] = ..., perf: _Optional[_Union[PerfSpec, _Mapping]] = ..., float_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., job_id: _Optional[str] = ..., estimated_latency_us: _Optional[float] = ..., sample_layouts: _Optional[_Mapping[str, str]] = ..., sample_pictures: _Optional[_Mapping[str, PictureForm]] = ...) -> None: ...

class PictureForm(_message.Message):
    __slots__ = ("colour", "space_and_range")
    COLOUR_FIELD_NUMBER: _ClassVar[int]
    SPACE_AND_RANGE_FIELD_NUMBER: _ClassVar[int]
    colour: str
    space_and_range: str
    def __init__(self, colour: _Optional[str] = ..., space_and_range: _Optional[str] = ...) -> None: ...

class PerfSpec(_message.Message):
    __slots__ = ("warmup_frames", "frames", "threads", "limit_duration", "sustained_duration", "governor")
    WARMUP_FRAMES_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_DURATION_FIELD_NUMBER: _ClassVar[int]
    SUSTAINED_DURATION_FIELD_NUMBER: _ClassVar[int]
    GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    warmup_frames: int
    frames: int
    threads: _containers.RepeatedScalarFieldContainer[int]
    limit_duration: _duration_pb2.Duration
    sustained_duration: _duration_pb2.Duration
    governor: str
    def __init__(self, warmup_frames: _Optional[int] = ..., frames: _Optional[int] = ..., threads: _Optional[_Iterable[int]] = ..., limit_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., sustained_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., governor: _Optional[str] = ...) -> None: ...

class RunModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: RunResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[RunResult, _Mapping]] = ...) -> None: ...

class BoardTensor(_message.Message):
    __slots__ = ("name", "input", "source", "valid_shape", "aligned_shape", "aligned_size_bytes", "type", "layout", "quantization", "stride_bytes", "scale", "quantize_axis")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    VALID_SHAPE_FIELD_NUMBER: _ClassVar[int]
    ALIGNED_SHAPE_FIELD_NUMBER: _ClassVar[int]
    ALIGNED_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    QUANTIZATION_FIELD_NUMBER: _ClassVar[int]
    STRIDE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    QUANTIZE_AXIS_FIELD_NUMBER: _ClassVar[int]
    name: str
    input: bool
    source: str
    valid_shape: _containers.RepeatedScalarFieldContainer[int]
    aligned_shape: _containers.RepeatedScalarFieldContainer[int]
    aligned_size_bytes: int
    type: str
    layout: str
    quantization: str
    stride_bytes: _containers.RepeatedScalarFieldContainer[int]
    scale: _containers.RepeatedScalarFieldContainer[float]
    quantize_axis: int
    def __init__(self, name: _Optional[str] = ..., input: bool = ..., source: _Optional[str] = ..., valid_shape: _Optional[_Iterable[int]] = ..., aligned_shape: _Optional[_Iterable[int]] = ..., aligned_size_bytes: _Optional[int] = ..., type: _Optional[str] = ..., layout: _Optional[str] = ..., quantization: _Optional[str] = ..., stride_bytes: _Optional[_Iterable[int]] = ..., scale: _Optional[_Iterable[float]] = ..., quantize_axis: _Optional[int] = ...) -> None: ...

class LatencyResult(_message.Message):
    __slots__ = ("threads", "frames", "figures", "stable", "raw_samples")
    THREADS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    STABLE_FIELD_NUMBER: _ClassVar[int]
    RAW_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    threads: int
    frames: int
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    stable: bool
    raw_samples: _artifact_pb2.ArtifactRef
    def __init__(self, threads: _Optional[int] = ..., frames: _Optional[int] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., stable: bool = ..., raw_samples: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class RunResult(_message.Message):
    __slots__ = ("failure", "board", "tensors", "board_vs_float", "board_vs_quantized", "latency", "cpu_baseline", "states", "board_outputs", "findings", "figures", "log", "execution", "sustained", "engine")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    BOARD_VS_FLOAT_FIELD_NUMBER: _ClassVar[int]
    BOARD_VS_QUANTIZED_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    CPU_BASELINE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    BOARD_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    SUSTAINED_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    board: BoardInfo
    tensors: _containers.RepeatedCompositeFieldContainer[BoardTensor]
    board_vs_float: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    board_vs_quantized: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    latency: _containers.RepeatedCompositeFieldContainer[LatencyResult]
    cpu_baseline: LatencyResult
    states: _containers.RepeatedCompositeFieldContainer[BoardState]
    board_outputs: _artifact_pb2.ArtifactRef
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    log: _artifact_pb2.ArtifactRef
    execution: _toolchain_pb2.ExecutionInfo
    sustained: SustainedRun
    engine: str
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., board: _Optional[_Union[BoardInfo, _Mapping]] = ..., tensors: _Optional[_Iterable[_Union[BoardTensor, _Mapping]]] = ..., board_vs_float: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., board_vs_quantized: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., latency: _Optional[_Iterable[_Union[LatencyResult, _Mapping]]] = ..., cpu_baseline: _Optional[_Union[LatencyResult, _Mapping]] = ..., states: _Optional[_Iterable[_Union[BoardState, _Mapping]]] = ..., board_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., log: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., sustained: _Optional[_Union[SustainedRun, _Mapping]] = ..., engine: _Optional[str] = ...) -> None: ...

class SustainedRun(_message.Message):
    __slots__ = ("rounds", "figures", "curves")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    CURVES_FIELD_NUMBER: _ClassVar[int]
    rounds: int
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    curves: _artifact_pb2.ArtifactRef
    def __init__(self, rounds: _Optional[int] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., curves: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class DiagnoseModelRequest(_message.Message):
    __slots__ = ("run_id", "job_id", "compiled_model", "quantized_model", "samples", "reference_outputs", "quantized_outputs", "user_outputs", "user_inputs", "calibration", "other_outputs", "nodes", "sample_limit", "bit_check", "sample_layouts", "sample_pictures")
    class BitCheckOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BIT_CHECK_OUTCOME_UNSPECIFIED: _ClassVar[DiagnoseModelRequest.BitCheckOutcome]
        BIT_CHECK_OUTCOME_EQUAL: _ClassVar[DiagnoseModelRequest.BitCheckOutcome]
        BIT_CHECK_OUTCOME_DIFFERENT: _ClassVar[DiagnoseModelRequest.BitCheckOutcome]
    BIT_CHECK_OUTCOME_UNSPECIFIED: DiagnoseModelRequest.BitCheckOutcome
    BIT_CHECK_OUTCOME_EQUAL: DiagnoseModelRequest.BitCheckOutcome
    BIT_CHECK_OUTCOME_DIFFERENT: DiagnoseModelRequest.BitCheckOutcome
    class SampleLayoutsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class SamplePicturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PictureForm
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PictureForm, _Mapping]] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_MODEL_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    QUANTIZED_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    USER_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    USER_INPUTS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    OTHER_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    BIT_CHECK_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_PICTURES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    job_id: str
    compiled_model: _artifact_pb2.ArtifactRef
    quantized_model: _artifact_pb2.ArtifactRef
    samples: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    quantized_outputs: _artifact_pb2.ArtifactRef
    user_outputs: _artifact_pb2.ArtifactRef
    user_inputs: _artifact_pb2.ArtifactRef
    calibration: _artifact_pb2.ArtifactRef
    other_outputs: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.NamedArtifact]
    nodes: _containers.RepeatedCompositeFieldContainer[DiagnosedNode]
    sample_limit: int
    bit_check: DiagnoseModelRequest.BitCheckOutcome
    sample_layouts: _containers.ScalarMap[str, str]
    sample_pictures: _containers.MessageMap[str, PictureForm]
    def __init__(self, run_id: _Optional[str] = ..., job_id: _Optional[str] = ..., compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., quantized_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., samples: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., quantized_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., user_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., user_inputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., other_outputs: _Optional[_Iterable[_Union[_toolchain_pb2.NamedArtifact, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[DiagnosedNode, _Mapping]]] = ..., sample_limit: _Optional[int] = ..., bit_check: _Optional[_Union[DiagnoseModelRequest.BitCheckOutcome, str]] = ..., sample_layouts: _Optional[_Mapping[str, str]] = ..., sample_pictures: _Optional[_Mapping[str, PictureForm]] = ...) -> None: ...

class DiagnosedNode(_message.Message):
    __slots__ = ("name", "on_cpu", "precision", "cosine")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ON_CPU_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    name: str
    on_cpu: bool
    precision: str
    cosine: float
    def __init__(self, name: _Optional[str] = ..., on_cpu: bool = ..., precision: _Optional[str] = ..., cosine: _Optional[float] = ...) -> None: ...

class Diagnosis(_message.Message):
    __slots__ = ("cause", "stage", "confidence", "message", "subject", "evidence", "next_step")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    cause: str
    stage: str
    confidence: float
    message: str
    subject: str
    evidence: _containers.RepeatedScalarFieldContainer[str]
    next_step: str
    def __init__(self, cause: _Optional[str] = ..., stage: _Optional[str] = ..., confidence: _Optional[float] = ..., message: _Optional[str] = ..., subject: _Optional[str] = ..., evidence: _Optional[_Iterable[str]] = ..., next_step: _Optional[str] = ...) -> None: ...

class DiagnoseModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: DiagnoseResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[DiagnoseResult, _Mapping]] = ...) -> None: ...

class DiagnoseResult(_message.Message):
    __slots__ = ("failure", "diagnoses", "board", "board_vs_float", "board_vs_quantized", "user_vs_board", "execution", "engine")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSES_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    BOARD_VS_FLOAT_FIELD_NUMBER: _ClassVar[int]
    BOARD_VS_QUANTIZED_FIELD_NUMBER: _ClassVar[int]
    USER_VS_BOARD_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    diagnoses: _containers.RepeatedCompositeFieldContainer[Diagnosis]
    board: BoardInfo
    board_vs_float: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    board_vs_quantized: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    user_vs_board: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    execution: _toolchain_pb2.ExecutionInfo
    engine: str
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., diagnoses: _Optional[_Iterable[_Union[Diagnosis, _Mapping]]] = ..., board: _Optional[_Union[BoardInfo, _Mapping]] = ..., board_vs_float: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., board_vs_quantized: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., user_vs_board: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., engine: _Optional[str] = ...) -> None: ...

class CompareModelsRequest(_message.Message):
    __slots__ = ("run_id", "job_id", "first_model", "second_model", "rounds", "frames", "threads", "governor")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_MODEL_FIELD_NUMBER: _ClassVar[int]
    SECOND_MODEL_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    job_id: str
    first_model: _artifact_pb2.ArtifactRef
    second_model: _artifact_pb2.ArtifactRef
    rounds: int
    frames: int
    threads: int
    governor: str
    def __init__(self, run_id: _Optional[str] = ..., job_id: _Optional[str] = ..., first_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., second_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., rounds: _Optional[int] = ..., frames: _Optional[int] = ..., threads: _Optional[int] = ..., governor: _Optional[str] = ...) -> None: ...

class CompareModelsResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: CompareResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[CompareResult, _Mapping]] = ...) -> None: ...

class CompareResult(_message.Message):
    __slots__ = ("failure", "verdict", "figures", "first_rounds_ms", "second_rounds_ms", "board", "states", "execution", "findings")
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[CompareResult.Verdict]
        VERDICT_FIRST_FASTER: _ClassVar[CompareResult.Verdict]
        VERDICT_SECOND_FASTER: _ClassVar[CompareResult.Verdict]
        VERDICT_UNDECIDED: _ClassVar[CompareResult.Verdict]
    VERDICT_UNSPECIFIED: CompareResult.Verdict
    VERDICT_FIRST_FASTER: CompareResult.Verdict
    VERDICT_SECOND_FASTER: CompareResult.Verdict
    VERDICT_UNDECIDED: CompareResult.Verdict
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROUNDS_MS_FIELD_NUMBER: _ClassVar[int]
    SECOND_ROUNDS_MS_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    verdict: CompareResult.Verdict
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    first_rounds_ms: _containers.RepeatedScalarFieldContainer[float]
    second_rounds_ms: _containers.RepeatedScalarFieldContainer[float]
    board: BoardInfo
    states: _containers.RepeatedCompositeFieldContainer[BoardState]
    execution: _toolchain_pb2.ExecutionInfo
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., verdict: _Optional[_Union[CompareResult.Verdict, str]] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., first_rounds_ms: _Optional[_Iterable[float]] = ..., second_rounds_ms: _Optional[_Iterable[float]] = ..., board: _Optional[_Union[BoardInfo, _Mapping]] = ..., states: _Optional[_Iterable[_Union[BoardState, _Mapping]]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ...) -> None: ...
