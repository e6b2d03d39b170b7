"""Turn a job's specification into its stages. Pure."""

from __future__ import annotations

from typing import Final

from boardlift.v1 import compiler_pb2, job_pb2, transform_pb2

from boardlift_orchestrator.record import Stage, StageState

_PRECISIONS: Final = {"int8": "int8", "fast-perf": "int8", "int16": "int16"}


def precision_class(variant: compiler_pb2.VariantSpec) -> str:
    """Return "int8", "int16" or "any": which transform suits a variant."""
    if "set_all_nodes_int16" in variant.calibration.optimization:
        return "int16"
    types = {word for node in variant.nodes for word in (node.input_type, node.output_type) if word}
    precision = _PRECISIONS.get(variant.preset or "int8", "any")
    return precision if types <= {precision} else "any"


def plan_classes(spec: job_pb2.JobSpec) -> dict[str, str]:
    """Map each variant to the variant name of its transform and check stages; "" when all share one."""
    if spec.transform.precision or spec.transform.passes:
        return {variant.name: "" for variant in spec.variants}
    classes = {variant.name: precision_class(variant) for variant in spec.variants}
    return classes if len(set(classes.values())) > 1 else dict.fromkeys(classes, "")


def transform_precision(spec: job_pb2.JobSpec, stage_variant: str) -> str:
    """Return `TransformSpec.precision` for a transform stage."""
    if spec.transform.precision:
        return spec.transform.precision
    label = stage_variant or ("any" if spec.transform.passes else precision_class(spec.variants[0]))
    return "" if label == "any" else label


def normalised_inputs(spec: job_pb2.JobSpec) -> list[transform_pb2.InputNormalisation]:
    """Return mean and scale of the inputs that the compiled models normalise by themselves; all variants agree."""
    return [
        transform_pb2.InputNormalisation(name=i.name, mean=i.mean_value, scale=i.scale_value, layout=i.layout_train)
        for i in spec.variants[0].inputs
        if i.mean_value or i.scale_value
    ]


def plan_stages(spec: job_pb2.JobSpec) -> tuple[Stage, ...]:
    """Return the stages in order, each after the one it needs."""
    classes = plan_classes(spec)
    stages = [Stage("ingest")]
    labels = list(dict.fromkeys(classes.values()))
    stages += [Stage("transform", label, after="ingest/") for label in labels]
    stages += [Stage("check", label, after=f"transform/{label}") for label in labels]
    board_state = StageState.SKIPPED if spec.skip_board else StageState.WAITING
    for variant in spec.variants:
        name = variant.name
        stages.append(Stage("compile", name, after=f"check/{classes[name]}"))
        stages.append(Stage("simulate", name, after=f"compile/{name}"))
        stages.append(Stage("board", name, after=f"simulate/{name}", state=board_state))
    stages.append(Stage("verdict", after="*"))
    return tuple(stages)
