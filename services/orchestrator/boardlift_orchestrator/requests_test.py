"""Each stage's call is made from the right results: data that was held out never reaches a calibration."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from boardlift.errors import InternalError
from boardlift.v1 import artifact_pb2, compiler_pb2, job_pb2, transform_pb2

from boardlift_orchestrator.facts import make_figure
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages, precision_class, transform_precision
from boardlift_orchestrator.record import JobRecord, Ref, StageState
from boardlift_orchestrator.requests import build_task, needed_results

REF = Ref("0" * 64)


def name(text: str) -> artifact_pb2.ArtifactRef:
    return artifact_pb2.ArtifactRef(sha256=text)


SPEC = job_pb2.JobSpec(
    model=transform_pb2.ModelSource(artifact=name("user model")),
    dataset=name("dataset"),
    target="rdk-x5",
    split=transform_pb2.SplitSpec(calibration_samples=5, seed=3),
    transform=transform_pb2.TransformSpec(outputs=["actions"], frozen_inputs={"sr": "16000"}),
    variants=[
        compiler_pb2.VariantSpec(name="a", preset="int8", inputs=[compiler_pb2.InputSpec(name="obs")]),
        compiler_pb2.VariantSpec(name="b", preset="int16"),
    ],
    board_samples=7,
    bit_check_samples=2,
)
RESULTS: dict[str, Any] = {
    "ingest": transform_pb2.PrepareDatasetResponse(calibration=name("user cal"), heldout=name("user heldout")),
    "transform": transform_pb2.TransformResult(
        model=name("model"), calibration=name("cal"), heldout=name("heldout"), reference_outputs=name("float outputs")
    ),
    "compile": compiler_pb2.CompileResult(
        compiled_model=name("bin"),
        quantized_model=name("quantized"),
        figures=[make_figure("estimated_latency_us", 9.0, "us", 2, "x")],
    ),
    "simulate": compiler_pb2.SimulateResult(quantized_outputs=name("quantized outputs")),
}


def task(stage: str, variant: str, spec: job_pb2.JobSpec = SPEC) -> Any:
    stages = tuple(
        dataclasses.replace(item, state=StageState.SUCCEEDED, result=Ref(item.key), attempt=1)
        for item in plan_stages(SPEC)
    )
    job = JobRecord("j", REF, 0.0, 100.0, stages, classes=plan_classes(SPEC))
    found = job.find(stage, variant)
    assert found is not None
    needed = needed_results(job, found)
    assert {item.result.sha256 for item in needed.values() if item.result} <= {item.key for item in stages}
    message = build_task(job, found, spec, {key: RESULTS[key] for key in needed})
    assert (message.job_id, message.stage, message.variant, message.attempt) == ("j", stage, variant, 1)
    assert message.deadline_time.seconds == 100
    return getattr(message, stage)


def test_ingest_takes_the_user_s_model_and_data() -> None:
    call = task("ingest", "")
    assert (call.model.artifact.sha256, call.dataset.sha256, call.split.seed) == ("user model", "dataset", 3)
    assert list(call.frozen_inputs) == sorted(SPEC.transform.frozen_inputs) == ["sr"]


@pytest.mark.parametrize("precision", ["int8", "int16"])
def test_transform_takes_the_split_data_and_its_precision(precision: str) -> None:
    call = task("transform", precision)
    assert (call.calibration.sha256, call.heldout.sha256) == ("user cal", "user heldout")
    assert (call.spec.target, call.spec.precision, list(call.spec.outputs)) == ("rdk-x5", precision, ["actions"])


def test_compile_sees_calibration_samples_only() -> None:
    call = task("compile", "b")
    assert (call.model.sha256, call.calibration.sha256, call.variant.name) == ("model", "cal", "b")
    assert b"heldout" not in call.SerializeToString()


def test_simulate_is_judged_on_held_out_samples_against_the_user_s_model() -> None:
    call = task("simulate", "a")
    assert (call.heldout.sha256, call.reference_outputs.sha256) == ("heldout", "float outputs")
    assert (call.quantized_model.sha256, call.compiled_model.sha256) == ("quantized", "bin")
    assert call.bit_check_samples == 2 and [item.name for item in call.inputs] == ["obs"]


def test_the_board_gets_all_three_sides_of_the_comparison() -> None:
    call = task("board", "a")
    assert (call.compiled_model.sha256, call.float_model.sha256) == ("bin", "model")
    assert (call.heldout.sha256, call.reference_outputs.sha256, call.quantized_outputs.sha256) == (
        "heldout",
        "float outputs",
        "quantized outputs",
    )
    assert (call.samples, call.job_id, call.estimated_latency_us, call.run_id) == (7, "j", 9.0, "j/a/1")
    assert dict(call.sample_layouts) == {"obs": "NCHW"} and not call.sample_pictures


def test_the_board_hears_what_pictures_hold() -> None:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(SPEC)
    spec.variants[0].inputs[0].type_train, spec.variants[0].inputs[0].space_and_range = "bgr", "bt601_video"
    form = task("board", "a", spec).sample_pictures["obs"]
    assert (form.colour, form.space_and_range) == ("bgr", "bt601_video")


def test_a_missing_result_is_named() -> None:
    job = JobRecord("j", REF, 0.0, 1.0, plan_stages(SPEC), classes=plan_classes(SPEC))
    with pytest.raises(InternalError, match="check/int8"):
        needed_results(job, job.stages[3])


@pytest.mark.parametrize(
    ("variant", "precision"),
    [
        (compiler_pb2.VariantSpec(preset="int8"), "int8"),
        (compiler_pb2.VariantSpec(), "int8"),
        (compiler_pb2.VariantSpec(preset="int16"), "int16"),
        (compiler_pb2.VariantSpec(preset="mixed"), "any"),
        (compiler_pb2.VariantSpec(preset="auto"), "any"),
        (
            compiler_pb2.VariantSpec(preset="int8", nodes=[compiler_pb2.NodeOverride(node="n", input_type="int16")]),
            "any",
        ),
        (
            compiler_pb2.VariantSpec(calibration=compiler_pb2.CalibrationSpec(optimization=["set_all_nodes_int16"])),
            "int16",
        ),
    ],
)
def test_precision_classes(variant: compiler_pb2.VariantSpec, precision: str) -> None:
    assert precision_class(variant) == precision
    alone = job_pb2.JobSpec(variants=[variant])
    assert transform_precision(alone, "") == ("" if precision == "any" else precision)


def test_a_precision_or_passes_of_the_user_s_own_make_one_transform_for_all() -> None:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(SPEC)
    spec.transform.precision = "int16"
    assert set(plan_classes(spec).values()) == {""} and transform_precision(spec, "") == "int16"
    spec.transform.precision = ""
    spec.transform.passes.add(id="fold-batchnorm")
    assert set(plan_classes(spec).values()) == {""} and transform_precision(spec, "") == ""


def test_the_float_model_is_fed_with_what_the_compiled_one_makes_of_pixels() -> None:
    spec = job_pb2.JobSpec()
    spec.CopyFrom(SPEC)
    image = compiler_pb2.InputSpec(name="image", type_train="rgb", mean_value=[1, 2, 3], scale_value=[4])
    for variant in spec.variants:
        variant.inputs.extend([image, compiler_pb2.InputSpec(name="state")])
    stage = next(item for item in plan_stages(spec) if item.stage == "transform")
    job = JobRecord("j", REF, 0.0, 100.0, (stage,), classes=plan_classes(spec))
    call = build_task(job, stage, spec, {"ingest": RESULTS["ingest"]}).transform
    wanted = transform_pb2.InputNormalisation(name="image", mean=[1, 2, 3], scale=[4])
    assert list(call.spec.normalised_inputs) == [wanted]
    assert not task("transform", "int8").spec.normalised_inputs
