from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import board_agent_pb2 as _board_agent_pb2
from boardlift.v1 import compiler_pb2 as _compiler_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from boardlift.v1 import transform_pb2 as _transform_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobSpec(_message.Message):
    __slots__ = ("model", "dataset", "target", "split", "transform", "variants", "gates", "board", "perf", "goal", "limit_duration", "display_name", "model_name", "command", "skip_board", "board_samples", "bit_check_samples", "priority")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    GATES_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    PERF_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_DURATION_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_NAME_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SKIP_BOARD_FIELD_NUMBER: _ClassVar[int]
    BOARD_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BIT_CHECK_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    model: _transform_pb2.ModelSource
    dataset: _artifact_pb2.ArtifactRef
    target: str
    split: _transform_pb2.SplitSpec
    transform: _transform_pb2.TransformSpec
    variants: _containers.RepeatedCompositeFieldContainer[_compiler_pb2.VariantSpec]
    gates: _containers.RepeatedCompositeFieldContainer[Gate]
    board: BoardSelector
    perf: _board_agent_pb2.PerfSpec
    goal: str
    limit_duration: _duration_pb2.Duration
    display_name: str
    model_name: str
    command: _containers.RepeatedScalarFieldContainer[str]
    skip_board: bool
    board_samples: int
    bit_check_samples: int
    priority: int
    def __init__(self, model: _Optional[_Union[_transform_pb2.ModelSource, _Mapping]] = ..., dataset: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., target: _Optional[str] = ..., split: _Optional[_Union[_transform_pb2.SplitSpec, _Mapping]] = ..., transform: _Optional[_Union[_transform_pb2.TransformSpec, _Mapping]] = ..., variants: _Optional[_Iterable[_Union[_compiler_pb2.VariantSpec, _Mapping]]] = ..., gates: _Optional[_Iterable[_Union[Gate, _Mapping]]] = ..., board: _Optional[_Union[BoardSelector, _Mapping]] = ..., perf: _Optional[_Union[_board_agent_pb2.PerfSpec, _Mapping]] = ..., goal: _Optional[str] = ..., limit_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., display_name: _Optional[str] = ..., model_name: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., skip_board: bool = ..., board_samples: _Optional[int] = ..., bit_check_samples: _Optional[int] = ..., priority: _Optional[int] = ...) -> None: ...

class Gate(_message.Message):
    __slots__ = ("metric", "minimum", "maximum", "output")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    metric: str
    minimum: float
    maximum: float
    output: str
    def __init__(self, metric: _Optional[str] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., output: _Optional[str] = ...) -> None: ...

class BoardSelector(_message.Message):
    __slots__ = ("id", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    id: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("id", "spec", "state", "stages", "verdict", "error", "create_time", "start_time", "end_time", "artifacts", "owner", "revision", "waiting_turn", "submitter")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Job.State]
        STATE_QUEUED: _ClassVar[Job.State]
        STATE_RUNNING: _ClassVar[Job.State]
        STATE_SUCCEEDED: _ClassVar[Job.State]
        STATE_FAILED: _ClassVar[Job.State]
        STATE_CANCELLING: _ClassVar[Job.State]
        STATE_CANCELLED: _ClassVar[Job.State]
    STATE_UNSPECIFIED: Job.State
    STATE_QUEUED: Job.State
    STATE_RUNNING: Job.State
    STATE_SUCCEEDED: Job.State
    STATE_FAILED: Job.State
    STATE_CANCELLING: Job.State
    STATE_CANCELLED: Job.State
    ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ARTIFACTS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WAITING_TURN_FIELD_NUMBER: _ClassVar[int]
    SUBMITTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    spec: JobSpec
    state: Job.State
    stages: _containers.RepeatedCompositeFieldContainer[StageRecord]
    verdict: Verdict
    error: _toolchain_pb2.StageFailure
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    artifacts: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.NamedArtifact]
    owner: str
    revision: int
    waiting_turn: bool
    submitter: str
    def __init__(self, id: _Optional[str] = ..., spec: _Optional[_Union[JobSpec, _Mapping]] = ..., state: _Optional[_Union[Job.State, str]] = ..., stages: _Optional[_Iterable[_Union[StageRecord, _Mapping]]] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., error: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., artifacts: _Optional[_Iterable[_Union[_toolchain_pb2.NamedArtifact, _Mapping]]] = ..., owner: _Optional[str] = ..., revision: _Optional[int] = ..., waiting_turn: bool = ..., submitter: _Optional[str] = ...) -> None: ...

class StageRecord(_message.Message):
    __slots__ = ("stage", "variant", "state", "attempt", "result", "failure", "worker", "start_time", "end_time", "cached", "begin_time", "note")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[StageRecord.State]
        STATE_WAITING: _ClassVar[StageRecord.State]
        STATE_RUNNING: _ClassVar[StageRecord.State]
        STATE_SUCCEEDED: _ClassVar[StageRecord.State]
        STATE_FAILED: _ClassVar[StageRecord.State]
        STATE_SKIPPED: _ClassVar[StageRecord.State]
        STATE_CANCELLED: _ClassVar[StageRecord.State]
    STATE_UNSPECIFIED: StageRecord.State
    STATE_WAITING: StageRecord.State
    STATE_RUNNING: StageRecord.State
    STATE_SUCCEEDED: StageRecord.State
    STATE_FAILED: StageRecord.State
    STATE_SKIPPED: StageRecord.State
    STATE_CANCELLED: StageRecord.State
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    stage: str
    variant: str
    state: StageRecord.State
    attempt: int
    result: _artifact_pb2.ArtifactRef
    failure: _toolchain_pb2.StageFailure
    worker: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    cached: bool
    begin_time: _timestamp_pb2.Timestamp
    note: str
    def __init__(self, stage: _Optional[str] = ..., variant: _Optional[str] = ..., state: _Optional[_Union[StageRecord.State, str]] = ..., attempt: _Optional[int] = ..., result: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., worker: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., cached: bool = ..., begin_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("outcome", "reasons", "best_variant", "variants", "next_steps")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[Verdict.Outcome]
        OUTCOME_PASS: _ClassVar[Verdict.Outcome]
        OUTCOME_FAIL: _ClassVar[Verdict.Outcome]
        OUTCOME_UNDECIDED: _ClassVar[Verdict.Outcome]
    OUTCOME_UNSPECIFIED: Verdict.Outcome
    OUTCOME_PASS: Verdict.Outcome
    OUTCOME_FAIL: Verdict.Outcome
    OUTCOME_UNDECIDED: Verdict.Outcome
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    BEST_VARIANT_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEPS_FIELD_NUMBER: _ClassVar[int]
    outcome: Verdict.Outcome
    reasons: _containers.RepeatedScalarFieldContainer[str]
    best_variant: str
    variants: _containers.RepeatedCompositeFieldContainer[VariantVerdict]
    next_steps: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, outcome: _Optional[_Union[Verdict.Outcome, str]] = ..., reasons: _Optional[_Iterable[str]] = ..., best_variant: _Optional[str] = ..., variants: _Optional[_Iterable[_Union[VariantVerdict, _Mapping]]] = ..., next_steps: _Optional[_Iterable[str]] = ...) -> None: ...

class VariantVerdict(_message.Message):
    __slots__ = ("variant", "outcome", "gates", "figures", "reasons")
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    GATES_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    variant: str
    outcome: Verdict.Outcome
    gates: _containers.RepeatedCompositeFieldContainer[GateResult]
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    reasons: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, variant: _Optional[str] = ..., outcome: _Optional[_Union[Verdict.Outcome, str]] = ..., gates: _Optional[_Iterable[_Union[GateResult, _Mapping]]] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., reasons: _Optional[_Iterable[str]] = ...) -> None: ...

class GateResult(_message.Message):
    __slots__ = ("gate", "figure", "outcome", "reason", "subject")
    GATE_FIELD_NUMBER: _ClassVar[int]
    FIGURE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    gate: Gate
    figure: _toolchain_pb2.Figure
    outcome: Verdict.Outcome
    reason: str
    subject: str
    def __init__(self, gate: _Optional[_Union[Gate, _Mapping]] = ..., figure: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., outcome: _Optional[_Union[Verdict.Outcome, str]] = ..., reason: _Optional[str] = ..., subject: _Optional[str] = ...) -> None: ...

class CreateJobRequest(_message.Message):
    __slots__ = ("spec", "request_id", "job_id", "validate_only")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    spec: JobSpec
    request_id: str
    job_id: str
    validate_only: bool
    def __init__(self, spec: _Optional[_Union[JobSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., job_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class CreateJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "state")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    state: Job.State
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[_Union[Job.State, str]] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "next_page_token")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    next_page_token: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: Job
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ...) -> None: ...

class DeleteJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class DeleteJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PlanJobRequest(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: JobSpec
    def __init__(self, spec: _Optional[_Union[JobSpec, _Mapping]] = ...) -> None: ...

class PlanJobResponse(_message.Message):
    __slots__ = ("stages", "boards_online", "boards_free", "board_stages_queued", "active_jobs", "waiting_jobs", "own_waiting_jobs")
    STAGES_FIELD_NUMBER: _ClassVar[int]
    BOARDS_ONLINE_FIELD_NUMBER: _ClassVar[int]
    BOARDS_FREE_FIELD_NUMBER: _ClassVar[int]
    BOARD_STAGES_QUEUED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_JOBS_FIELD_NUMBER: _ClassVar[int]
    WAITING_JOBS_FIELD_NUMBER: _ClassVar[int]
    OWN_WAITING_JOBS_FIELD_NUMBER: _ClassVar[int]
    stages: _containers.RepeatedCompositeFieldContainer[StagePlan]
    boards_online: int
    boards_free: int
    board_stages_queued: int
    active_jobs: int
    waiting_jobs: int
    own_waiting_jobs: int
    def __init__(self, stages: _Optional[_Iterable[_Union[StagePlan, _Mapping]]] = ..., boards_online: _Optional[int] = ..., boards_free: _Optional[int] = ..., board_stages_queued: _Optional[int] = ..., active_jobs: _Optional[int] = ..., waiting_jobs: _Optional[int] = ..., own_waiting_jobs: _Optional[int] = ...) -> None: ...

class StagePlan(_message.Message):
    __slots__ = ("stage", "variant", "answer", "duration", "past_runs", "basis", "failure")
    class Answer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ANSWER_UNSPECIFIED: _ClassVar[StagePlan.Answer]
        ANSWER_CACHED: _ClassVar[StagePlan.Answer]
        ANSWER_RUNS: _ClassVar[StagePlan.Answer]
        ANSWER_ALWAYS_RUNS: _ClassVar[StagePlan.Answer]
        ANSWER_AFTER_RUN: _ClassVar[StagePlan.Answer]
        ANSWER_UNKNOWN: _ClassVar[StagePlan.Answer]
        ANSWER_SKIPPED: _ClassVar[StagePlan.Answer]
    ANSWER_UNSPECIFIED: StagePlan.Answer
    ANSWER_CACHED: StagePlan.Answer
    ANSWER_RUNS: StagePlan.Answer
    ANSWER_ALWAYS_RUNS: StagePlan.Answer
    ANSWER_AFTER_RUN: StagePlan.Answer
    ANSWER_UNKNOWN: StagePlan.Answer
    ANSWER_SKIPPED: StagePlan.Answer
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    PAST_RUNS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    stage: str
    variant: str
    answer: StagePlan.Answer
    duration: _toolchain_pb2.Figure
    past_runs: int
    basis: str
    failure: _toolchain_pb2.StageFailure
    def __init__(self, stage: _Optional[str] = ..., variant: _Optional[str] = ..., answer: _Optional[_Union[StagePlan.Answer, str]] = ..., duration: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., past_runs: _Optional[int] = ..., basis: _Optional[str] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("job_id", "after_sequence")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    after_sequence: int
    def __init__(self, job_id: _Optional[str] = ..., after_sequence: _Optional[int] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("sequence", "event_time", "stage", "variant", "job", "progress", "log")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    event_time: _timestamp_pb2.Timestamp
    stage: str
    variant: str
    job: Job
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    def __init__(self, sequence: _Optional[int] = ..., event_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., stage: _Optional[str] = ..., variant: _Optional[str] = ..., job: _Optional[_Union[Job, _Mapping]] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ...) -> None: ...

class RegisterBoardRequest(_message.Message):
    __slots__ = ("board", "state", "leaving")
    BOARD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    board: _board_agent_pb2.BoardInfo
    state: _board_agent_pb2.BoardState
    leaving: bool
    def __init__(self, board: _Optional[_Union[_board_agent_pb2.BoardInfo, _Mapping]] = ..., state: _Optional[_Union[_board_agent_pb2.BoardState, _Mapping]] = ..., leaving: bool = ...) -> None: ...

class RegisterBoardResponse(_message.Message):
    __slots__ = ("renew_duration", "lease_holder", "lease_end_time", "findings")
    RENEW_DURATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_HOLDER_FIELD_NUMBER: _ClassVar[int]
    LEASE_END_TIME_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    renew_duration: _duration_pb2.Duration
    lease_holder: str
    lease_end_time: _timestamp_pb2.Timestamp
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    def __init__(self, renew_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lease_holder: _Optional[str] = ..., lease_end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ...) -> None: ...

class ListBoardsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListBoardsResponse(_message.Message):
    __slots__ = ("boards", "next_page_token")
    BOARDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    boards: _containers.RepeatedCompositeFieldContainer[Board]
    next_page_token: str
    def __init__(self, boards: _Optional[_Iterable[_Union[Board, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteBoardRequest(_message.Message):
    __slots__ = ("board_id",)
    BOARD_ID_FIELD_NUMBER: _ClassVar[int]
    board_id: str
    def __init__(self, board_id: _Optional[str] = ...) -> None: ...

class DeleteBoardResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Board(_message.Message):
    __slots__ = ("info", "state", "online", "last_seen_time")
    INFO_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_TIME_FIELD_NUMBER: _ClassVar[int]
    info: _board_agent_pb2.BoardInfo
    state: _board_agent_pb2.BoardState
    online: bool
    last_seen_time: _timestamp_pb2.Timestamp
    def __init__(self, info: _Optional[_Union[_board_agent_pb2.BoardInfo, _Mapping]] = ..., state: _Optional[_Union[_board_agent_pb2.BoardState, _Mapping]] = ..., online: bool = ..., last_seen_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DiagnoseJobRequest(_message.Message):
    __slots__ = ("diagnosis", "board")
    DIAGNOSIS_FIELD_NUMBER: _ClassVar[int]
    BOARD_FIELD_NUMBER: _ClassVar[int]
    diagnosis: _board_agent_pb2.DiagnoseModelRequest
    board: BoardSelector
    def __init__(self, diagnosis: _Optional[_Union[_board_agent_pb2.DiagnoseModelRequest, _Mapping]] = ..., board: _Optional[_Union[BoardSelector, _Mapping]] = ...) -> None: ...

class DiagnoseJobResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: _board_agent_pb2.DiagnoseResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[_board_agent_pb2.DiagnoseResult, _Mapping]] = ...) -> None: ...

class GrantBoardLeaseRequest(_message.Message):
    __slots__ = ("board_id", "limit_duration", "lease_id", "holder")
    BOARD_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_DURATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    board_id: str
    limit_duration: _duration_pb2.Duration
    lease_id: str
    holder: str
    def __init__(self, board_id: _Optional[str] = ..., limit_duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lease_id: _Optional[str] = ..., holder: _Optional[str] = ...) -> None: ...

class GrantBoardLeaseResponse(_message.Message):
    __slots__ = ("lease_id", "end_time", "busy_job")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    BUSY_JOB_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    end_time: _timestamp_pb2.Timestamp
    busy_job: str
    def __init__(self, lease_id: _Optional[str] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., busy_job: _Optional[str] = ...) -> None: ...

class ReleaseBoardLeaseRequest(_message.Message):
    __slots__ = ("board_id", "lease_id")
    BOARD_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    board_id: str
    lease_id: str
    def __init__(self, board_id: _Optional[str] = ..., lease_id: _Optional[str] = ...) -> None: ...

class ReleaseBoardLeaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
