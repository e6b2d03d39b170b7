"""`CompilerService` of the fake server, with made-up answers that say so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc

from boardlift.testing.artifacts import ArtifactServicer
from boardlift.testing.scenario import SOURCE, Scenario
from boardlift.testing.stages import made_up_failure
from boardlift.v1 import compiler_pb2, compiler_pb2_grpc, toolchain_pb2


class CompilerServicer(compiler_pb2_grpc.CompilerServiceServicer):
    """Finds every model fine; `requests` holds what was to be compiled, `converted` answers every YAML.

    `simulated` holds what was to be simulated, `bits` is what its bit check finds: equal, differs or not compared.
    """

    def __init__(self, scenario: Scenario, artifacts: ArtifactServicer) -> None:
        """Use the stages "check" and "compile" of `scenario`."""
        self._scenario = scenario
        self._artifacts = artifacts
        self.requests: list[compiler_pb2.CompileModelRequest] = []
        self.simulated: list[compiler_pb2.SimulateModelRequest] = []
        self.bits = "equal"
        variant = compiler_pb2.VariantSpec(name="from-yaml")
        self.converted = compiler_pb2.ConvertConfigResponse(variant=variant, paths={"onnx_model": "model.onnx"})

    def CheckModel(self, request: compiler_pb2.CheckModelRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Place one node on the BPU and one on the CPU."""
        script = self._scenario.script("check", "")
        nodes = [
            compiler_pb2.NodePlacement(node="Gemm_0", device="BPU", type="HzSQuantizedConv", dtype="int8"),
            compiler_pb2.NodePlacement(node="Elu_1", device="CPU", subgraph=-1, type="Elu", reason="made up"),
        ]
        result = compiler_pb2.CheckResult(nodes=nodes, bpu_subgraphs=1, bpu_nodes=1, cpu_nodes=1)
        if script.failure_code:
            result = compiler_pb2.CheckResult(failure=made_up_failure(script.failure_code, script.failure_message))
        yield compiler_pb2.CheckModelResponse(sequence=1, log=toolchain_pb2.LogLine(text="checking", source="stdout"))
        time.sleep(self._scenario.step_s)
        yield compiler_pb2.CheckModelResponse(sequence=2, result=result)

    def ConvertConfig(self, request: compiler_pb2.ConvertConfigRequest, context: grpc.ServicerContext) -> Any:
        """Answer with `converted`, whatever the YAML."""
        return self.converted

    def CompileModel(self, request: compiler_pb2.CompileModelRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Build a made-up model of two nodes; the second falls back to int8 where int16 was asked."""
        self.requests.append(request)
        response = compiler_pb2.CompileModelResponse
        script = self._scenario.script("compile", request.variant.name)
        progress = toolchain_pb2.Progress(step="calibrate", fraction=0.5, done=3, total=6)
        yield response(sequence=1, progress=progress)
        time.sleep(self._scenario.step_s)
        if script.failure_code:
            result = compiler_pb2.CompileResult(failure=made_up_failure(script.failure_code, script.failure_message))
            result.failure.user_fault = script.user_fault
        elif request.validate_only:
            result = compiler_pb2.CompileResult(yaml="made_up: true\n")
        else:
            result = self._built(request.variant)
        yield response(sequence=2, result=result)

    def SimulateModel(self, request: compiler_pb2.SimulateModelRequest, context: grpc.ServicerContext) -> Iterator[Any]:
        """Find one output a little off and its bits as `bits` says, or fail as the stage "simulate" of the scenario."""
        self.simulated.append(request)
        cosine = _figure("cosine", 0.98, "1", toolchain_pb2.FIGURE_KIND_SIMULATED)
        check = compiler_pb2.BitCheck(subgraph="main_graph_subgraph_0", tensor="actions_quantized", samples=2)
        check.equal = self.bits == "equal"
        if self.bits == "differs":
            check.different_elements, check.max_difference = 3, 1
            check.first_difference = "sample 0 at [0, 4]"
        elif not check.equal:
            check.not_compared = "made up"
        result = compiler_pb2.SimulateResult(
            outputs=[toolchain_pb2.OutputComparison(output="actions", samples=256, figures=[cosine])],
            bit_checks=[check],
            bit_exact=check.equal,
            quantized_outputs=self._artifacts.put(b"made up outputs"),
        )
        script = self._scenario.script("simulate", "")
        if script.failure_code:
            result = compiler_pb2.SimulateResult(failure=made_up_failure(script.failure_code, script.failure_message))
            result.failure.user_fault = script.user_fault
        yield compiler_pb2.SimulateModelResponse(sequence=1, result=result)

    def _built(self, variant: compiler_pb2.VariantSpec) -> compiler_pb2.CompileResult:
        estimated, simulated = toolchain_pb2.FIGURE_KIND_ESTIMATED, toolchain_pb2.FIGURE_KIND_SIMULATED
        latency = _figure("estimated_latency_us", 64, "us", estimated)
        place = compiler_pb2.NodePlacement
        result = compiler_pb2.CompileResult(
            compiled_model=self._artifacts.put(f"made up {variant.name}".encode()),
            quantized_model=self._artifacts.put(b"made up quantised", "application/onnx"),
            log=self._artifacts.put(b"made up log", "text/plain"),
            nodes=[
                place(node="Gemm_0", device="BPU", type="HzSQuantizedConv", dtype="int8", cosine=0.99, threshold="1.5"),
                place(node="Elu_1", device="CPU", subgraph=-1, type="Elu", dtype="float", reason="made up"),
            ],
            vendor_outputs=[
                toolchain_pb2.OutputComparison(output="actions", figures=[_figure("cosine", 0.98, "1", simulated)])
            ],
            subgraphs=[compiler_pb2.SubgraphEstimate(name="main_graph_subgraph_0", figures=[latency])],
            figures=[latency],
            bpu_nodes=1,
            cpu_nodes=1,
            chosen_method="max",
            samples_read=30,
            optimize_level="O3",
        )
        result.files.add(
            name="config.yaml",
            artifact=self._artifacts.put(b"# written by boardlift\nmade_up: true\n", "application/yaml"),
        )
        if variant.preset == "int16":
            severity = toolchain_pb2.Finding.SEVERITY_ERROR
            result.findings.add(code="INT16_FELL_BACK", severity=severity, message="Made up.", subject="Gemm_0")
        return result


def _figure(name: str, value: float, unit: str, kind: toolchain_pb2.FigureKind) -> toolchain_pb2.Figure:
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source=SOURCE)
