"""A job whose board stage would be refused is refused before anything is compiled."""

import pytest
from boardlift.errors import InvalidInputError
from boardlift.v1 import artifact_pb2, board_agent_pb2, compiler_pb2, job_pb2, transform_pb2

from boardlift_orchestrator.validate import check_spec

Perf = board_agent_pb2.PerfSpec


def spec(**fields: object) -> job_pb2.JobSpec:
    file = artifact_pb2.ArtifactRef(sha256="a" * 64, size_bytes=1)
    model = transform_pb2.ModelSource(artifact=file)
    variant = compiler_pb2.VariantSpec(name="int8")
    return job_pb2.JobSpec(model=model, dataset=file, target="rdk-x5", variants=[variant], **fields)  # type: ignore[arg-type]


def perf(**durations: int) -> Perf:
    message = Perf()
    for name, seconds in durations.items():
        getattr(message, name).FromSeconds(seconds)
    return message


def test_bounds_themselves_are_taken() -> None:
    most = Perf(threads=[1, 8], frames=1_000_000, warmup_frames=100_000, governor="simple_ondemand")
    check_spec(spec(perf=most, board_samples=1024))
    check_spec(spec(perf=perf(limit_duration=1, sustained_duration=3600)))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"perf": Perf(threads=[2, 9])}, "spec.perf.threads"),
        ({"perf": Perf(frames=-5)}, "spec.perf.frames"),
        ({"perf": Perf(governor="../max")}, "spec.perf.governor"),
        ({"perf": Perf(warmup_frames=100_001)}, "spec.perf.warmup_frames"),
        ({"perf": perf(limit_duration=0)}, "spec.perf.limit_duration"),
        ({"perf": perf(sustained_duration=3601)}, "spec.perf.sustained_duration"),
        ({"board_samples": 1025}, "spec.board_samples"),
    ],
)
def test_what_a_board_would_refuse_is_refused_first(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_spec(spec(**fields))
    assert (caught.value.reason, caught.value.metadata["field"]) == ("SPEC_INVALID", field)


def test_variants_that_normalise_differently_have_no_common_truth() -> None:
    job = spec()
    job.variants[0].inputs.add(name="image", mean_value=[1.0], layout_train="NCHW")
    job.variants.add(name="int16", preset="int16").inputs.add(name="image", mean_value=[1.0])
    check_spec(job)
    job.variants[1].inputs[0].mean_value[0] = 2.0
    with pytest.raises(InvalidInputError) as caught:
        check_spec(job)
    assert caught.value.metadata["field"] == "spec.variants[1].inputs"


@pytest.mark.parametrize("name", ["calibration_samples", "heldout_samples"])
def test_a_negative_number_of_samples_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_spec(spec(split=transform_pb2.SplitSpec(**{name: -3})))
    assert caught.value.metadata["field"] == f"spec.split.{name}"
