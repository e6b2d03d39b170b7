"""Make well-formed facts about a variant for tests of verdict and report."""

from __future__ import annotations

from typing import Any

from boardlift.v1 import board_agent_pb2, compiler_pb2, job_pb2, toolchain_pb2, transform_pb2

from boardlift_orchestrator.facts import VariantFacts, gather_facts, make_figure
from boardlift_orchestrator.plan_stages import plan_classes, plan_stages
from boardlift_orchestrator.record import Failure, JobRecord, Ref, StageState

MEASURED = toolchain_pb2.FIGURE_KIND_MEASURED
ESTIMATED = toolchain_pb2.FIGURE_KIND_ESTIMATED
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED
REF = {"sha256": "ab" * 32, "size_bytes": 1234}


def compare(output: str = "actions", **figures: float) -> toolchain_pb2.OutputComparison:
    """Return a comparison of one output, on the simulator."""
    made = [make_figure(name, value, "1", SIMULATED, "vendor runtime") for name, value in figures.items()]
    return toolchain_pb2.OutputComparison(output=output, samples=16, figures=made)


def make_results(name: str, cosine: float = 0.999, latency_us: float = 100.0, max_abs: float = 0.01) -> dict[str, Any]:
    """Return a healthy variant's results by stage key; change them to make a sick one."""
    errors = {"cosine": cosine, "max_abs": max_abs, "mean_abs": max_abs / 3, "l1": 1.0, "l2": 0.5, "chebyshev": max_abs}
    tool = toolchain_pb2.ToolchainInfo(name="hb_mapper", version="1.24.3", parts={"hbdk": "3.49.15"}, known=True)
    node = compiler_pb2.NodePlacement(node="/fc/Gemm", device="BPU", subgraph=0, type="HzSQuantizedConv", cosine=0.9991)
    compiled = compiler_pb2.CompileResult(
        compiled_model=REF,
        nodes=[node, compiler_pb2.NodePlacement(node="/out", device="CPU", subgraph=-1, cosine=0.9989, reason="float")],
        vendor_outputs=[compare("actions", **errors)],
        figures=[
            make_figure("estimated_latency_us", latency_us, "us", ESTIMATED, "hbdk 3.49.15"),
            make_figure("ddr_bytes", 4096, "bytes", ESTIMATED, "hbdk 3.49.15"),
            make_figure("compiled_model_bytes", 1234, "bytes", MEASURED, "file"),
        ],
        bpu_nodes=1,
        cpu_nodes=1,
        yaml="model_parameters: {}",
        command=["hb_mapper", "makertbin", "-c", "config.yaml"],
    )
    compiled.execution.tools.append(tool)
    check = compiler_pb2.BitCheck(subgraph="g0", tensor="t", samples=4, equal=True)
    latency = board_agent_pb2.LatencyResult(threads=1, frames=1000, stable=True)
    latency.figures.extend(
        make_figure(n, v, "ms", SIMULATED, "estimate") for n, v in (("p50_ms", 0.2), ("p99_ms", 0.3))
    )
    transform = transform_pb2.TransformResult(io_snippet="feed(obs)", equivalence=[compare(cosine=1.0, max_abs=1e-7)])
    mapping = transform.io_map.add(direction=transform_pb2.IoMapping.DIRECTION_INPUT, rule="reshape to [1, 1, 1, 225]")
    mapping.before.CopyFrom(toolchain_pb2.TensorSpec(name="obs", dtype="float32", shape=[-1, 225]))
    mapping.after.CopyFrom(toolchain_pb2.TensorSpec(name="obs_4d", dtype="float32", shape=[1, 1, 1, 225]))
    summary = transform_pb2.ModelSummary(sha256="cd" * 32, opset=17, nodes=9, parameters=1000)
    return {
        "ingest/": transform_pb2.PrepareDatasetResponse(
            calibration_samples=64, heldout_samples=16, provenance_json='{"logs": 1}', model_summary=summary
        ),
        "transform/": transform,
        "check/": compiler_pb2.CheckResult(bpu_nodes=1, bpu_subgraphs=1),
        f"compile/{name}": compiled,
        f"simulate/{name}": compiler_pb2.SimulateResult(
            outputs=[compare("actions", **errors)], bit_checks=[check], bit_exact=True
        ),
        f"board/{name}": board_agent_pb2.RunResult(
            board=board_agent_pb2.BoardInfo(id="sim-1", target="rdk-x5", simulated=True, versions={"dnn": "1.24"}),
            board_vs_float=[compare("actions", **errors)],
            board_vs_quantized=[compare(max_abs=0.0)],
            latency=[latency],
            engine="compiled",
            states=[board_agent_pb2.BoardState(governor="performance")],
        ),
    }


def make_spec(*names: str, **fields: Any) -> job_pb2.JobSpec:
    """Return a specification with variants of one precision class, so that they share transform and check."""
    variants = [compiler_pb2.VariantSpec(name=name, preset="int8") for name in names]
    return job_pb2.JobSpec(
        target="rdk-x5",
        variants=variants,
        model=transform_pb2.ModelSource(artifact=REF),
        dataset=REF,
        model_name="robots/policy v2.onnx",
        command=["boardlift", "run", "policy v2.onnx"],
        **fields,
    )


def make_facts(
    spec: job_pb2.JobSpec, results: dict[str, Any], failures: dict[str, Failure] | None = None
) -> tuple[JobRecord, list[VariantFacts]]:
    """Return the record and the facts; stages without a result are skipped, those with a failure failed."""
    stages = []
    for stage in plan_stages(spec):
        failure = (failures or {}).get(stage.key)
        state = StageState.FAILED if failure else StageState.SUCCEEDED if stage.key in results else StageState.SKIPPED
        values = {"state": state, "failure": failure, "start": 10.0, "end": 12.0, "attempt": 1}
        stages.append(type(stage)(**{**stage.__dict__, **values}))
    job = JobRecord("j-1", Ref("ef" * 32), 9.0, 99.0, tuple(stages), started=10.0, classes=plan_classes(spec))
    return job, gather_facts(job, spec, results)
