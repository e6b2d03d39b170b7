from boardlift.v1 import artifact_pb2 as _artifact_pb2
from boardlift.v1 import toolchain_pb2 as _toolchain_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ModelSource(_message.Message):
    __slots__ = ("artifact", "inline_model", "external_data")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    INLINE_MODEL_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DATA_FIELD_NUMBER: _ClassVar[int]
    artifact: _artifact_pb2.ArtifactRef
    inline_model: bytes
    external_data: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.NamedArtifact]
    def __init__(self, artifact: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., inline_model: _Optional[bytes] = ..., external_data: _Optional[_Iterable[_Union[_toolchain_pb2.NamedArtifact, _Mapping]]] = ...) -> None: ...

class InspectModelRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: ModelSource
    def __init__(self, model: _Optional[_Union[ModelSource, _Mapping]] = ...) -> None: ...

class InspectModelResponse(_message.Message):
    __slots__ = ("summary", "failure", "findings")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    summary: ModelSummary
    failure: _toolchain_pb2.StageFailure
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    def __init__(self, summary: _Optional[_Union[ModelSummary, _Mapping]] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ...) -> None: ...

class ModelSummary(_message.Message):
    __slots__ = ("sha256", "opset", "other_opsets", "ir_version", "producer", "inputs", "outputs", "operators", "nodes", "parameters", "macs", "largest_tensors", "metadata")
    class OtherOpsetsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class OperatorsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OPSET_FIELD_NUMBER: _ClassVar[int]
    OTHER_OPSETS_FIELD_NUMBER: _ClassVar[int]
    IR_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    MACS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_TENSORS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    opset: int
    other_opsets: _containers.ScalarMap[str, int]
    ir_version: int
    producer: str
    inputs: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.TensorSpec]
    outputs: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.TensorSpec]
    operators: _containers.ScalarMap[str, int]
    nodes: int
    parameters: int
    macs: int
    largest_tensors: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.TensorSpec]
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, sha256: _Optional[str] = ..., opset: _Optional[int] = ..., other_opsets: _Optional[_Mapping[str, int]] = ..., ir_version: _Optional[int] = ..., producer: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[_toolchain_pb2.TensorSpec, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[_toolchain_pb2.TensorSpec, _Mapping]]] = ..., operators: _Optional[_Mapping[str, int]] = ..., nodes: _Optional[int] = ..., parameters: _Optional[int] = ..., macs: _Optional[int] = ..., largest_tensors: _Optional[_Iterable[_Union[_toolchain_pb2.TensorSpec, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class SplitSpec(_message.Message):
    __slots__ = ("calibration_samples", "heldout_samples", "seed")
    CALIBRATION_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    calibration_samples: int
    heldout_samples: int
    seed: int
    def __init__(self, calibration_samples: _Optional[int] = ..., heldout_samples: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class PrepareDatasetRequest(_message.Message):
    __slots__ = ("model", "dataset", "split", "frozen_inputs")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    FROZEN_INPUTS_FIELD_NUMBER: _ClassVar[int]
    model: ModelSource
    dataset: _artifact_pb2.ArtifactRef
    split: SplitSpec
    frozen_inputs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[_Union[ModelSource, _Mapping]] = ..., dataset: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., split: _Optional[_Union[SplitSpec, _Mapping]] = ..., frozen_inputs: _Optional[_Iterable[str]] = ...) -> None: ...

class PrepareDatasetResponse(_message.Message):
    __slots__ = ("calibration", "heldout", "calibration_samples", "heldout_samples", "findings", "failure", "provenance_json", "model_summary")
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_JSON_FIELD_NUMBER: _ClassVar[int]
    MODEL_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    calibration_samples: int
    heldout_samples: int
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    failure: _toolchain_pb2.StageFailure
    provenance_json: str
    model_summary: ModelSummary
    def __init__(self, calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., calibration_samples: _Optional[int] = ..., heldout_samples: _Optional[int] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., provenance_json: _Optional[str] = ..., model_summary: _Optional[_Union[ModelSummary, _Mapping]] = ...) -> None: ...

class TransformSpec(_message.Message):
    __slots__ = ("target", "outputs", "input_shapes", "passes", "skip_passes", "precision", "keep_foreign_domains", "opset", "frozen_inputs", "diff", "normalised_inputs")
    class FrozenInputsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    SKIP_PASSES_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    KEEP_FOREIGN_DOMAINS_FIELD_NUMBER: _ClassVar[int]
    OPSET_FIELD_NUMBER: _ClassVar[int]
    FROZEN_INPUTS_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    NORMALISED_INPUTS_FIELD_NUMBER: _ClassVar[int]
    target: str
    outputs: _containers.RepeatedScalarFieldContainer[str]
    input_shapes: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.TensorSpec]
    passes: _containers.RepeatedCompositeFieldContainer[PassRequest]
    skip_passes: _containers.RepeatedScalarFieldContainer[str]
    precision: str
    keep_foreign_domains: bool
    opset: int
    frozen_inputs: _containers.ScalarMap[str, str]
    diff: bool
    normalised_inputs: _containers.RepeatedCompositeFieldContainer[InputNormalisation]
    def __init__(self, target: _Optional[str] = ..., outputs: _Optional[_Iterable[str]] = ..., input_shapes: _Optional[_Iterable[_Union[_toolchain_pb2.TensorSpec, _Mapping]]] = ..., passes: _Optional[_Iterable[_Union[PassRequest, _Mapping]]] = ..., skip_passes: _Optional[_Iterable[str]] = ..., precision: _Optional[str] = ..., keep_foreign_domains: bool = ..., opset: _Optional[int] = ..., frozen_inputs: _Optional[_Mapping[str, str]] = ..., diff: bool = ..., normalised_inputs: _Optional[_Iterable[_Union[InputNormalisation, _Mapping]]] = ...) -> None: ...

class InputNormalisation(_message.Message):
    __slots__ = ("name", "mean", "scale", "layout")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    mean: _containers.RepeatedScalarFieldContainer[float]
    scale: _containers.RepeatedScalarFieldContainer[float]
    layout: str
    def __init__(self, name: _Optional[str] = ..., mean: _Optional[_Iterable[float]] = ..., scale: _Optional[_Iterable[float]] = ..., layout: _Optional[str] = ...) -> None: ...

class PassRequest(_message.Message):
    __slots__ = ("id", "parameters")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    parameters: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PlanTransformRequest(_message.Message):
    __slots__ = ("model", "spec")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    model: ModelSource
    spec: TransformSpec
    def __init__(self, model: _Optional[_Union[ModelSource, _Mapping]] = ..., spec: _Optional[_Union[TransformSpec, _Mapping]] = ...) -> None: ...

class PlanTransformResponse(_message.Message):
    __slots__ = ("passes", "refusals", "assumptions")
    PASSES_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    passes: _containers.RepeatedCompositeFieldContainer[PlannedPass]
    refusals: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.StageFailure]
    assumptions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, passes: _Optional[_Iterable[_Union[PlannedPass, _Mapping]]] = ..., refusals: _Optional[_Iterable[_Union[_toolchain_pb2.StageFailure, _Mapping]]] = ..., assumptions: _Optional[_Iterable[str]] = ...) -> None: ...

class PlannedPass(_message.Message):
    __slots__ = ("id", "reason", "parameters", "exactness")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    EXACTNESS_FIELD_NUMBER: _ClassVar[int]
    id: str
    reason: str
    parameters: _containers.ScalarMap[str, str]
    exactness: str
    def __init__(self, id: _Optional[str] = ..., reason: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ..., exactness: _Optional[str] = ...) -> None: ...

class TransformModelRequest(_message.Message):
    __slots__ = ("model", "spec", "calibration", "heldout")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    model: ModelSource
    spec: TransformSpec
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    def __init__(self, model: _Optional[_Union[ModelSource, _Mapping]] = ..., spec: _Optional[_Union[TransformSpec, _Mapping]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ...) -> None: ...

class TransformModelResponse(_message.Message):
    __slots__ = ("sequence", "progress", "log", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    progress: _toolchain_pb2.Progress
    log: _toolchain_pb2.LogLine
    result: TransformResult
    def __init__(self, sequence: _Optional[int] = ..., progress: _Optional[_Union[_toolchain_pb2.Progress, _Mapping]] = ..., log: _Optional[_Union[_toolchain_pb2.LogLine, _Mapping]] = ..., result: _Optional[_Union[TransformResult, _Mapping]] = ...) -> None: ...

class TransformResult(_message.Message):
    __slots__ = ("failure", "model", "io_map", "io_snippet", "passes", "equivalence", "assumptions", "calibration", "heldout", "reference_outputs", "before", "after", "findings", "execution", "random_inputs")
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    IO_MAP_FIELD_NUMBER: _ClassVar[int]
    IO_SNIPPET_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    EQUIVALENCE_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    HELDOUT_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    RANDOM_INPUTS_FIELD_NUMBER: _ClassVar[int]
    failure: _toolchain_pb2.StageFailure
    model: _artifact_pb2.ArtifactRef
    io_map: _containers.RepeatedCompositeFieldContainer[IoMapping]
    io_snippet: str
    passes: _containers.RepeatedCompositeFieldContainer[PassReport]
    equivalence: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.OutputComparison]
    assumptions: _containers.RepeatedScalarFieldContainer[str]
    calibration: _artifact_pb2.ArtifactRef
    heldout: _artifact_pb2.ArtifactRef
    reference_outputs: _artifact_pb2.ArtifactRef
    before: ModelSummary
    after: ModelSummary
    findings: _containers.RepeatedCompositeFieldContainer[_toolchain_pb2.Finding]
    execution: _toolchain_pb2.ExecutionInfo
    random_inputs: bool
    def __init__(self, failure: _Optional[_Union[_toolchain_pb2.StageFailure, _Mapping]] = ..., model: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., io_map: _Optional[_Iterable[_Union[IoMapping, _Mapping]]] = ..., io_snippet: _Optional[str] = ..., passes: _Optional[_Iterable[_Union[PassReport, _Mapping]]] = ..., equivalence: _Optional[_Iterable[_Union[_toolchain_pb2.OutputComparison, _Mapping]]] = ..., assumptions: _Optional[_Iterable[str]] = ..., calibration: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., heldout: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., reference_outputs: _Optional[_Union[_artifact_pb2.ArtifactRef, _Mapping]] = ..., before: _Optional[_Union[ModelSummary, _Mapping]] = ..., after: _Optional[_Union[ModelSummary, _Mapping]] = ..., findings: _Optional[_Iterable[_Union[_toolchain_pb2.Finding, _Mapping]]] = ..., execution: _Optional[_Union[_toolchain_pb2.ExecutionInfo, _Mapping]] = ..., random_inputs: bool = ...) -> None: ...

class IoMapping(_message.Message):
    __slots__ = ("direction", "before", "after", "rule")
    class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        DIRECTION_UNSPECIFIED: _ClassVar[IoMapping.Direction]
        DIRECTION_INPUT: _ClassVar[IoMapping.Direction]
        DIRECTION_OUTPUT: _ClassVar[IoMapping.Direction]
    DIRECTION_UNSPECIFIED: IoMapping.Direction
    DIRECTION_INPUT: IoMapping.Direction
    DIRECTION_OUTPUT: IoMapping.Direction
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    direction: IoMapping.Direction
    before: _toolchain_pb2.TensorSpec
    after: _toolchain_pb2.TensorSpec
    rule: str
    def __init__(self, direction: _Optional[_Union[IoMapping.Direction, str]] = ..., before: _Optional[_Union[_toolchain_pb2.TensorSpec, _Mapping]] = ..., after: _Optional[_Union[_toolchain_pb2.TensorSpec, _Mapping]] = ..., rule: _Optional[str] = ...) -> None: ...

class PassReport(_message.Message):
    __slots__ = ("id", "applied", "skipped", "seconds", "nodes_before", "nodes_after", "diff")
    ID_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    NODES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    NODES_AFTER_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    id: str
    applied: _containers.RepeatedCompositeFieldContainer[PassChange]
    skipped: _containers.RepeatedCompositeFieldContainer[PassSkip]
    seconds: float
    nodes_before: int
    nodes_after: int
    diff: GraphDiff
    def __init__(self, id: _Optional[str] = ..., applied: _Optional[_Iterable[_Union[PassChange, _Mapping]]] = ..., skipped: _Optional[_Iterable[_Union[PassSkip, _Mapping]]] = ..., seconds: _Optional[float] = ..., nodes_before: _Optional[int] = ..., nodes_after: _Optional[int] = ..., diff: _Optional[_Union[GraphDiff, _Mapping]] = ...) -> None: ...

class GraphDiff(_message.Message):
    __slots__ = ("added", "removed", "rewritten", "left_out")
    ADDED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    REWRITTEN_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    added: _containers.RepeatedCompositeFieldContainer[NodeView]
    removed: _containers.RepeatedCompositeFieldContainer[NodeView]
    rewritten: _containers.RepeatedCompositeFieldContainer[NodeRewrite]
    left_out: int
    def __init__(self, added: _Optional[_Iterable[_Union[NodeView, _Mapping]]] = ..., removed: _Optional[_Iterable[_Union[NodeView, _Mapping]]] = ..., rewritten: _Optional[_Iterable[_Union[NodeRewrite, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...

class NodeView(_message.Message):
    __slots__ = ("name", "operator", "inputs", "outputs", "attributes", "shape", "made_by")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    operator: str
    inputs: _containers.RepeatedScalarFieldContainer[str]
    outputs: _containers.RepeatedScalarFieldContainer[str]
    attributes: _containers.ScalarMap[str, str]
    shape: str
    made_by: str
    def __init__(self, name: _Optional[str] = ..., operator: _Optional[str] = ..., inputs: _Optional[_Iterable[str]] = ..., outputs: _Optional[_Iterable[str]] = ..., attributes: _Optional[_Mapping[str, str]] = ..., shape: _Optional[str] = ..., made_by: _Optional[str] = ...) -> None: ...

class NodeRewrite(_message.Message):
    __slots__ = ("before", "after", "changed")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    before: NodeView
    after: NodeView
    changed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, before: _Optional[_Union[NodeView, _Mapping]] = ..., after: _Optional[_Union[NodeView, _Mapping]] = ..., changed: _Optional[_Iterable[str]] = ...) -> None: ...

class PassChange(_message.Message):
    __slots__ = ("node", "before", "after")
    NODE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    node: str
    before: str
    after: str
    def __init__(self, node: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class PassSkip(_message.Message):
    __slots__ = ("node", "reason")
    NODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    node: str
    reason: str
    def __init__(self, node: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ListPassesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPassesResponse(_message.Message):
    __slots__ = ("passes",)
    PASSES_FIELD_NUMBER: _ClassVar[int]
    passes: _containers.RepeatedCompositeFieldContainer[PassDescription]
    def __init__(self, passes: _Optional[_Iterable[_Union[PassDescription, _Mapping]]] = ...) -> None: ...

class PassDescription(_message.Message):
    __slots__ = ("id", "summary", "reason", "exactness", "parameters")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXACTNESS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    summary: str
    reason: str
    exactness: str
    parameters: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., summary: _Optional[str] = ..., reason: _Optional[str] = ..., exactness: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ...) -> None: ...
