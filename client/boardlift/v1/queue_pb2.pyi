from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import board_agent_pb2 as _board_agent_pb2
from boardlift.v1 import compiler_pb2 as _compiler_pb2
from boardlift.v1 import job_pb2 as _job_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from boardlift.v1 import transform_pb2 as _transform_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StageTask(_message.Message):
    __slots__ = ("job_id", "stage", "variant", "attempt", "deadline_time", "ingest", "transform", "check", "compile", "simulate", "board", "verdict", "diagnose")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_TIME_FIELD_NUMBER: _ClassVar[int]
    INGEST_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    COMPILE_FIELD_NUMBER: _ClassVar[int]
    SIMULATE_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    stage: str
    variant: str
    attempt: int
    deadline_time: _timestamp_pb2.Timestamp
    ingest: _transform_pb2.PrepareDatasetRequest
    transform: _transform_pb2.TransformModelRequest
    check: _compiler_pb2.CheckModelRequest
    compile: _compiler_pb2.CompileModelRequest
    simulate: _compiler_pb2.SimulateModelRequest
    board: _board_agent_pb2.RunModelRequest
    verdict: MakeReportRequest
    diagnose: _board_agent_pb2.DiagnoseModelRequest
    def __init__(self, job_id: _Optional[str] = ..., stage: _Optional[str] = ..., variant: _Optional[str] = ..., attempt: _Optional[int] = ..., deadline_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ingest: _Optional[_Union[_transform_pb2.PrepareDatasetRequest, _Mapping]] = ..., transform: _Optional[_Union[_transform_pb2.TransformModelRequest, _Mapping]] = ..., check: _Optional[_Union[_compiler_pb2.CheckModelRequest, _Mapping]] = ..., compile: _Optional[_Union[_compiler_pb2.CompileModelRequest, _Mapping]] = ..., simulate: _Optional[_Union[_compiler_pb2.SimulateModelRequest, _Mapping]] = ..., board: _Optional[_Union[_board_agent_pb2.RunModelRequest, _Mapping]] = ..., verdict: _Optional[_Union[MakeReportRequest, _Mapping]] = ..., diagnose: _Optional[_Union[_board_agent_pb2.DiagnoseModelRequest, _Mapping]] = ...) -> None: ...

class MakeReportRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class MakeReportResult(_message.Message):
    __slots__ = ("verdict", "artifacts")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    verdict: _job_pb2.Verdict
    artifacts: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.NamedArtifact]
    def __init__(self, verdict: _Optional[_Union[_job_pb2.Verdict, _Mapping]] = ..., artifacts: _Optional[_Iterable[_Union[_toolchain_pb2.NamedArtifact, _Mapping]]] = ...) -> None: ...

class StageOutcome(_message.Message):
    __slots__ = ("job_id", "stage", "variant", "attempt", "worker", "result", "failure", "retryable", "cancelled", "cached", "started")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    stage: str
    variant: str
    attempt: int
    worker: str
    result: _artifact_pb2.ArtifactRef
    failure: _toolchain_pb2.StageFailure
    retryable: bool
    cancelled: bool
    cached: bool
    started: bool
    def __init__(self, job_id: _Optional[str] = ..., stage: _Optional[str] = ..., variant: _Optional[str] = ..., attempt: _Optional[int] = ..., worker: _Optional[str] = ..., result: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., retryable: bool = ..., cancelled: bool = ..., cached: bool = ..., started: bool = ...) -> None: ...

class StopStage(_message.Message):
    __slots__ = ("job_id", "stage", "variant", "attempt")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    stage: str
    variant: str
    attempt: int
    def __init__(self, job_id: _Optional[str] = ..., stage: _Optional[str] = ..., variant: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class BoardPresence(_message.Message):
    __slots__ = ("boot_id", "state", "record_digest")
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RECORD_DIGEST_FIELD_NUMBER: _ClassVar[int]
    boot_id: str
    state: _board_agent_pb2.BoardState
    record_digest: bytes
    def __init__(self, boot_id: _Optional[str] = ..., state: _Optional[_Union[_board_agent_pb2.BoardState, _Mapping]] = ..., record_digest: _Optional[bytes] = ...) -> None: ...

class BoardRecord(_message.Message):
    __slots__ = ("info", "state", "register_time", "peer")
    INFO_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REGISTER_TIME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    info: _board_agent_pb2.BoardInfo
    state: _board_agent_pb2.BoardState
    register_time: _timestamp_pb2.Timestamp
    peer: str
    def __init__(self, info: _Optional[_Union[_board_agent_pb2.BoardInfo, _Mapping]] = ..., state: _Optional[_Union[_board_agent_pb2.BoardState, _Mapping]] = ..., register_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., peer: _Optional[str] = ...) -> None: ...

class BoardDial(_message.Message):
    __slots__ = ("dialler", "findings")
    DIALLER_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    dialler: str
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    def __init__(self, dialler: _Optional[str] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ...) -> None: ...

class BoardLease(_message.Message):
    __slots__ = ("board_id", "lease_id", "holder", "end_time")
    BOARD_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    board_id: str
    lease_id: str
    holder: str
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, board_id: _Optional[str] = ..., lease_id: _Optional[str] = ..., holder: _Optional[str] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
