from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import compiler_pb2 as _compiler_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Goal(_message.Message):
    __slots__ = ("metric", "output", "target")
    METRIC_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    metric: str
    output: str
    target: float
    def __init__(self, metric: _Optional[str] = ..., output: _Optional[str] = ..., target: _Optional[float] = ...) -> None: ...

class ModelForm(_message.Message):
    __slots__ = ("name", "model", "transform_pass", "calibration", "heldout", "reference_outputs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PASS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    model: _artifact_pb2.ArtifactRef
    transform_pass: str
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    def __init__(self, name: _Optional[str] = ..., model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., transform_pass: _Optional[str] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class EstimateLatencyRequest(_message.Message):
    __slots__ = ("compiled_model",)
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    compiled_model: _artifact_pb2.ArtifactRef
    def __init__(self, compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class EstimateLatencyResponse(_message.Message):
    __slots__ = ("subgraphs", "figures", "islands", "relation", "findings")
    SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    ISLANDS_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    subgraphs: _containers.RepeatedCompositeFieldContainer[_compiler_pb2.SubgraphEstimate]
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    islands: _containers.RepeatedCompositeFieldContainer[CpuIsland]
    relation: str
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    def __init__(self, subgraphs: _Optional[_Iterable[_Union[_compiler_pb2.SubgraphEstimate, _Mapping]]] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., islands: _Optional[_Iterable[_Union[CpuIsland, _Mapping]]] = ..., relation: _Optional[str] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ...) -> None: ...

class CpuIsland(_message.Message):
    __slots__ = ("nodes", "splits", "elements", "figures")
    NODES_FIELD_NUMBER: _ClassVar[int]
    SPLITS_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    splits: bool
    elements: int
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    def __init__(self, nodes: _Optional[_Iterable[str]] = ..., splits: bool = ..., elements: _Optional[int] = ..., figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ...) -> None: ...

class MeasureSensitivityRequest(_message.Message):
    __slots__ = ("model", "target", "variant", "calibration", "heldout", "reference_outputs", "goal", "samples", "no_proof")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    NO_PROOF_FIELD_NUMBER: _ClassVar[int]
    model: _artifact_pb2.ArtifactRef
    target: str
    variant: _compiler_pb2.VariantSpec
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    goal: Goal
    samples: int
    no_proof: bool
    def __init__(self, model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., target: _Optional[str] = ..., variant: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., goal: _Optional[_Union[Goal, _Mapping]] = ..., samples: _Optional[int] = ..., no_proof: bool = ...) -> None: ...

class MeasureSensitivityResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: SensitivityResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[SensitivityResult, _Mapping]] = ...) -> None: ...

class LayerSensitivity(_message.Message):
    __slots__ = ("node", "type", "model_node", "single_int8", "single_int16", "cumulative", "int16_cost_us", "suggested_int16")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_NODE_FIELD_NUMBER: _ClassVar[int]
    SINGLE_INT8_FIELD_NUMBER: _ClassVar[int]
    SINGLE_INT16_FIELD_NUMBER: _ClassVar[int]
    CUMULATIVE_FIELD_NUMBER: _ClassVar[int]
    INT16_COST_US_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_INT16_FIELD_NUMBER: _ClassVar[int]
    node: str
    type: str
    model_node: str
    single_int8: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    single_int16: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    cumulative: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    int16_cost_us: float
    suggested_int16: bool
    def __init__(self, node: _Optional[str] = ..., type: _Optional[str] = ..., model_node: _Optional[str] = ..., single_int8: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., single_int16: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., cumulative: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., int16_cost_us: _Optional[float] = ..., suggested_int16: bool = ...) -> None: ...

class MixedPlan(_message.Message):
    __slots__ = ("variant", "int16_nodes", "emulated", "proven", "latency", "reaches_target")
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    INT16_NODES_FIELD_NUMBER: _ClassVar[int]
    EMULATED_FIELD_NUMBER: _ClassVar[int]
    PROVEN_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    REACHES_TARGET_FIELD_NUMBER: _ClassVar[int]
    variant: _compiler_pb2.VariantSpec
    int16_nodes: _containers.RepeatedScalarFieldContainer[str]
    emulated: _toolchain_pb2.Figure
    proven: _toolchain_pb2.Figure
    latency: LatencySummary
    reaches_target: bool
    def __init__(self, variant: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., int16_nodes: _Optional[_Iterable[str]] = ..., emulated: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., proven: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., latency: _Optional[_Union[LatencySummary, _Mapping]] = ..., reaches_target: bool = ...) -> None: ...

class LatencySummary(_message.Message):
    __slots__ = ("figures", "bpu_subgraphs", "cpu_nodes", "optimize_level")
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    BPU_SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    CPU_NODES_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    figures: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Figure]
    bpu_subgraphs: int
    cpu_nodes: int
    optimize_level: str
    def __init__(self, figures: _Optional[_Iterable[_Union[_toolchain_pb2.Figure, _Mapping]]] = ..., bpu_subgraphs: _Optional[int] = ..., cpu_nodes: _Optional[int] = ..., optimize_level: _Optional[str] = ...) -> None: ...

class SensitivityResult(_message.Message):
    __slots__ = ("failure", "layers", "plans", "suggested", "findings", "samples", "execution", "target_implied")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    SUGGESTED_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    TARGET_IMPLIED_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    layers: _containers.RepeatedCompositeFieldContainer[LayerSensitivity]
    plans: _containers.RepeatedCompositeFieldContainer[MixedPlan]
    suggested: MixedPlan
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    samples: int
    execution: _toolchain_pb2.ExecutionInfo
    target_implied: bool
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[LayerSensitivity, _Mapping]]] = ..., plans: _Optional[_Iterable[_Union[MixedPlan, _Mapping]]] = ..., suggested: _Optional[_Union[MixedPlan, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., samples: _Optional[int] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., target_implied: bool = ...) -> None: ...

class SearchVariantsRequest(_message.Message):
    __slots__ = ("forms", "target", "base", "plans", "methods", "variants", "calibration", "heldout", "reference_outputs", "goal", "first_samples", "factor", "finalists", "dry_run")
    FORMS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    FIRST_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    FINALISTS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    forms: _containers.RepeatedCompositeFieldContainer[ModelForm]
    target: str
    base: _compiler_pb2.VariantSpec
    plans: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.RepeatedScalarFieldContainer[str]
    variants: _containers.RepeatedCompositeFieldContainer[_compiler_pb2.VariantSpec]
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    goal: Goal
    first_samples: int
    factor: int
    finalists: int
    dry_run: bool
    def __init__(self, forms: _Optional[_Iterable[_Union[ModelForm, _Mapping]]] = ..., target: _Optional[str] = ..., base: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., plans: _Optional[_Iterable[str]] = ..., methods: _Optional[_Iterable[str]] = ..., variants: _Optional[_Iterable[_Union[_compiler_pb2.VariantSpec, _Mapping]]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., goal: _Optional[_Union[Goal, _Mapping]] = ..., first_samples: _Optional[int] = ..., factor: _Optional[int] = ..., finalists: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class SearchVariantsResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: SearchResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[SearchResult, _Mapping]] = ...) -> None: ...

class SearchRound(_message.Message):
    __slots__ = ("optimize_level", "candidates", "calibration_samples", "heldout_samples", "predicted_seconds", "seconds", "reused")
    OPTIMIZE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    optimize_level: str
    candidates: int
    calibration_samples: int
    heldout_samples: int
    predicted_seconds: float
    seconds: float
    reused: int
    def __init__(self, optimize_level: _Optional[str] = ..., candidates: _Optional[int] = ..., calibration_samples: _Optional[int] = ..., heldout_samples: _Optional[int] = ..., predicted_seconds: _Optional[float] = ..., seconds: _Optional[float] = ..., reused: _Optional[int] = ...) -> None: ...

class SearchCandidate(_message.Message):
    __slots__ = ("name", "form", "variant", "rounds", "outcome", "metric", "samples", "latency", "pareto", "failure", "findings", "compiled_model", "int16_nodes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    PARETO_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MODEL_FIELD_NUMBER: _ClassVar[int]
    INT16_NODES_FIELD_NUMBER: _ClassVar[int]
    name: str
    form: str
    variant: _compiler_pb2.VariantSpec
    rounds: int
    outcome: str
    metric: _toolchain_pb2.Figure
    samples: int
    latency: LatencySummary
    pareto: bool
    failure: _toolchain_pb2.StageFailure
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    compiled_model: _artifact_pb2.ArtifactRef
    int16_nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., form: _Optional[str] = ..., variant: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., rounds: _Optional[int] = ..., outcome: _Optional[str] = ..., metric: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., samples: _Optional[int] = ..., latency: _Optional[_Union[LatencySummary, _Mapping]] = ..., pareto: bool = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., compiled_model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., int16_nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class SearchResult(_message.Message):
    __slots__ = ("failure", "rounds", "candidates", "findings", "predicted_seconds", "prediction_known", "dry_run", "best", "execution")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    rounds: _containers.RepeatedCompositeFieldContainer[SearchRound]
    candidates: _containers.RepeatedCompositeFieldContainer[SearchCandidate]
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    predicted_seconds: float
    prediction_known: bool
    dry_run: bool
    best: str
    execution: _toolchain_pb2.ExecutionInfo
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., rounds: _Optional[_Iterable[_Union[SearchRound, _Mapping]]] = ..., candidates: _Optional[_Iterable[_Union[SearchCandidate, _Mapping]]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., predicted_seconds: _Optional[float] = ..., prediction_known: bool = ..., dry_run: bool = ..., best: _Optional[str] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ...) -> None: ...

class TryRemediesRequest(_message.Message):
    __slots__ = ("form", "target", "variant", "calibration", "alternatives", "try_remedies", "optimize_level")
    FORM_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    TRY_REMEDIES_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    form: ModelForm
    target: str
    variant: _compiler_pb2.VariantSpec
    calibration: _artifact_pb2.ArtifactRef
    alternatives: _containers.RepeatedCompositeFieldContainer[ModelForm]
    try_remedies: bool
    optimize_level: str
    def __init__(self, form: _Optional[_Union[ModelForm, _Mapping]] = ..., target: _Optional[str] = ..., variant: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., alternatives: _Optional[_Iterable[_Union[ModelForm, _Mapping]]] = ..., try_remedies: bool = ..., optimize_level: _Optional[str] = ...) -> None: ...

class TryRemediesResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: RemedyResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[RemedyResult, _Mapping]] = ...) -> None: ...

class Remedy(_message.Message):
    __slots__ = ("name", "kind", "nodes", "message", "transform_pass", "variant", "tried", "latency", "gain_us", "vendor_cosine", "cpu_nodes", "failure")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PASS_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    TRIED_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    GAIN_US_FIELD_NUMBER: _ClassVar[int]
    VENDOR_COSINE_FIELD_NUMBER: _ClassVar[int]
    CPU_NODES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    nodes: _containers.RepeatedScalarFieldContainer[str]
    message: str
    transform_pass: str
    variant: _compiler_pb2.VariantSpec
    tried: bool
    latency: LatencySummary
    gain_us: float
    vendor_cosine: _toolchain_pb2.Figure
    cpu_nodes: _containers.RepeatedScalarFieldContainer[str]
    failure: _toolchain_pb2.StageFailure
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., nodes: _Optional[_Iterable[str]] = ..., message: _Optional[str] = ..., transform_pass: _Optional[str] = ..., variant: _Optional[_Union[_compiler_pb2.VariantSpec, _Mapping]] = ..., tried: bool = ..., latency: _Optional[_Union[LatencySummary, _Mapping]] = ..., gain_us: _Optional[float] = ..., vendor_cosine: _Optional[_Union[_toolchain_pb2.Figure, _Mapping]] = ..., cpu_nodes: _Optional[_Iterable[str]] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ...) -> None: ...

class CpuNode(_message.Message):
    __slots__ = ("node", "type", "reason", "remedies")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    node: str
    type: str
    reason: str
    remedies: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., type: _Optional[str] = ..., reason: _Optional[str] = ..., remedies: _Optional[_Iterable[str]] = ...) -> None: ...

class RemedyResult(_message.Message):
    __slots__ = ("failure", "cpu_nodes", "islands", "remedies", "baseline", "findings", "execution")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    CPU_NODES_FIELD_NUMBER: _ClassVar[int]
    ISLANDS_FIELD_NUMBER: _ClassVar[int]
    REMEDIES_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    cpu_nodes: _containers.RepeatedCompositeFieldContainer[CpuNode]
    islands: _containers.RepeatedCompositeFieldContainer[CpuIsland]
    remedies: _containers.RepeatedCompositeFieldContainer[Remedy]
    baseline: LatencySummary
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    execution: _toolchain_pb2.ExecutionInfo
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., cpu_nodes: _Optional[_Iterable[_Union[CpuNode, _Mapping]]] = ..., islands: _Optional[_Iterable[_Union[CpuIsland, _Mapping]]] = ..., remedies: _Optional[_Iterable[_Union[Remedy, _Mapping]]] = ..., baseline: _Optional[_Union[LatencySummary, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ...) -> None: ...
