from boardlift.v1 import artifact_pb2 as _artifact_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FigureKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FIGURE_KIND_UNSPECIFIED: _ClassVar[FigureKind]
    FIGURE_KIND_MEASURED: _ClassVar[FigureKind]
    FIGURE_KIND_ESTIMATED: _ClassVar[FigureKind]
    FIGURE_KIND_SIMULATED: _ClassVar[FigureKind]
FIGURE_KIND_UNSPECIFIED: FigureKind
FIGURE_KIND_MEASURED: FigureKind
FIGURE_KIND_ESTIMATED: FigureKind
FIGURE_KIND_SIMULATED: FigureKind

class Figure(_message.Message):
    __slots__ = ("name", "value", "unit", "kind", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    unit: str
    kind: FigureKind
    source: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., unit: _Optional[str] = ..., kind: _Optional[_Union[FigureKind, str]] = ..., source: _Optional[str] = ...) -> None: ...

class ToolchainInfo(_message.Message):
    __slots__ = ("name", "version", "parts", "simulated", "known")
    class PartsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    parts: _containers.ScalarMap[str, str]
    simulated: bool
    known: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., parts: _Optional[_Mapping[str, str]] = ..., simulated: bool = ..., known: bool = ...) -> None: ...

class StageFailure(_message.Message):
    __slots__ = ("code", "message", "subject", "remedy", "evidence", "user_fault", "exit_code", "log", "transform_pass")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    USER_FAULT_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PASS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    subject: str
    remedy: str
    evidence: _containers.RepeatedScalarFieldContainer[str]
    user_fault: bool
    exit_code: int
    log: _artifact_pb2.ArtifactRef
    transform_pass: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., subject: _Optional[str] = ..., remedy: _Optional[str] = ..., evidence: _Optional[_Iterable[str]] = ..., user_fault: bool = ..., exit_code: _Optional[int] = ..., log: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., transform_pass: _Optional[str] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("code", "severity", "message", "subject", "remedy")
    class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SEVERITY_UNSPECIFIED: _ClassVar[Finding.Severity]
        SEVERITY_NOTE: _ClassVar[Finding.Severity]
        SEVERITY_WARNING: _ClassVar[Finding.Severity]
        SEVERITY_ERROR: _ClassVar[Finding.Severity]
    SEVERITY_UNSPECIFIED: Finding.Severity
    SEVERITY_NOTE: Finding.Severity
    SEVERITY_WARNING: Finding.Severity
    SEVERITY_ERROR: Finding.Severity
    CODE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    code: str
    severity: Finding.Severity
    message: str
    subject: str
    remedy: str
    def __init__(self, code: _Optional[str] = ..., severity: _Optional[_Union[Finding.Severity, str]] = ..., message: _Optional[str] = ..., subject: _Optional[str] = ..., remedy: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("step", "fraction", "done", "total", "elapsed_duration", "remaining_duration")
    STEP_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_DURATION_FIELD_NUMBER: _ClassVar[int]
    REMAINING_DURATION_FIELD_NUMBER: _ClassVar[int]
    step: str
    fraction: float
    done: int
    total: int
    elapsed_duration: _duration_pb2.Duration
    remaining_duration: _duration_pb2.Duration
    def __init__(self, step: _Optional[str] = ..., fraction: _Optional[float] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., elapsed_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., remaining_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("text", "source")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    text: str
    source: str
    def __init__(self, text: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class ExecutionInfo(_message.Message):
    __slots__ = ("digest", "cached", "start_time", "end_time", "tools", "step_seconds", "peak_memory_bytes")
    class StepSecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    digest: str
    cached: bool
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    tools: _containers.RepeatedCompositeFieldContainer[ToolchainInfo]
    step_seconds: _containers.ScalarMap[str, float]
    peak_memory_bytes: int
    def __init__(self, digest: _Optional[str] = ..., cached: bool = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., tools: _Optional[_Iterable[_Union[ToolchainInfo, _Mapping]]] = ..., step_seconds: _Optional[_Mapping[str, float]] = ..., peak_memory_bytes: _Optional[int] = ...) -> None: ...

class NamedArtifact(_message.Message):
    __slots__ = ("name", "artifact")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    name: str
    artifact: _artifact_pb2.ArtifactRef
    def __init__(self, name: _Optional[str] = ..., artifact: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class TensorSpec(_message.Message):
    __slots__ = ("name", "dtype", "shape", "layout")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    layout: str
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., layout: _Optional[str] = ...) -> None: ...

class OutputComparison(_message.Message):
    __slots__ = ("output", "samples", "figures", "worst_sample", "allowed_max_abs")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    WORST_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_MAX_ABS_FIELD_NUMBER: _ClassVar[int]
    output: str
    samples: int
    figures: _containers.RepeatedCompositeFieldContainer[Figure]
    worst_sample: int
    allowed_max_abs: float
    def __init__(self, output: _Optional[str] = ..., samples: _Optional[int] = ..., figures: _Optional[_Iterable[_Union[Figure, _Mapping]]] = ..., worst_sample: _Optional[int] = ..., allowed_max_abs: _Optional[float] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("name", "version", "tools", "slots", "busy_slots", "findings", "store", "server_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    BUSY_SLOTS_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    tools: _containers.RepeatedCompositeFieldContainer[ToolchainInfo]
    slots: int
    busy_slots: int
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    store: StoreInfo
    server_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[ToolchainInfo, _Mapping]]] = ..., slots: _Optional[int] = ..., busy_slots: _Optional[int] = ..., findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ..., store: _Optional[_Union[StoreInfo, _Mapping]] = ..., server_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StoreInfo(_message.Message):
    __slots__ = ("objects", "size_bytes", "limit_bytes", "sweep_time", "freed_objects", "freed_bytes", "removed_jobs")
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SWEEP_TIME_FIELD_NUMBER: _ClassVar[int]
    FREED_OBJECTS_FIELD_NUMBER: _ClassVar[int]
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_JOBS_FIELD_NUMBER: _ClassVar[int]
    objects: int
    size_bytes: int
    limit_bytes: int
    sweep_time: _timestamp_pb2.Timestamp
    freed_objects: int
    freed_bytes: int
    removed_jobs: int
    def __init__(self, objects: _Optional[int] = ..., size_bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ..., sweep_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., freed_objects: _Optional[int] = ..., freed_bytes: _Optional[int] = ..., removed_jobs: _Optional[int] = ...) -> None: ...

class CancelExecutionRequest(_message.Message):
    __slots__ = ("execution_id",)
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    def __init__(self, execution_id: _Optional[str] = ...) -> None: ...

class CancelExecutionResponse(_message.Message):
    __slots__ = ("stopped",)
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    stopped: bool
    def __init__(self, stopped: bool = ...) -> None: ...
