"""Between the wire's messages and this package's data; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from boardlift.v1 import compiler_pb2, toolchain_pb2

from boardlift_compiler.compare_outputs import BitComparison, Comparison
from boardlift_compiler.explain_failure import StageFailure
from boardlift_compiler.failures import FAILURE_KINDS
from boardlift_compiler.findings import Finding
from boardlift_compiler.parse_log import LogFacts, SubgraphLine
from boardlift_compiler.parse_reports import SubgraphReport
from boardlift_compiler.parse_tables import OutputRow
from boardlift_compiler.spec import (
    KNOBS,
    CalibrationSpec,
    CompilerKnobs,
    CompileSpec,
    InputSpec,
    NodeOverride,
    norm_type_of,
)
from boardlift_compiler.toolchain import Toolchain

MEASURED = toolchain_pb2.FIGURE_KIND_MEASURED
ESTIMATED = toolchain_pb2.FIGURE_KIND_ESTIMATED
SIMULATED = toolchain_pb2.FIGURE_KIND_SIMULATED
UNITS = {"sqnr_db": "dB"}
SEVERITY = {
    "note": toolchain_pb2.Finding.SEVERITY_NOTE,
    "warning": toolchain_pb2.Finding.SEVERITY_WARNING,
    "error": toolchain_pb2.Finding.SEVERITY_ERROR,
}


def spec_from_wire(variant: compiler_pb2.VariantSpec) -> CompileSpec:
    """Read a variant; empty fields take their defaults."""
    calibration, knobs = variant.calibration, variant.compiler
    return CompileSpec(
        name=variant.name,
        preset=variant.preset,
        purpose=variant.purpose or "release",
        inputs=tuple(input_from_wire(i) for i in variant.inputs),
        calibration=CalibrationSpec(
            calibration.method,
            calibration.max_percentile,
            calibration.per_channel,
            tuple(calibration.optimization),
            tuple(calibration.run_on_cpu),
            tuple(calibration.run_on_bpu),
        ),
        nodes=tuple(
            NodeOverride(n.node, n.device, n.input_type, n.output_type, dict(n.input_types)) for n in variant.nodes
        ),
        compiler=CompilerKnobs(
            knobs.optimize_level,
            knobs.compile_mode or "latency",
            knobs.balance_factor,
            not knobs.no_debug,
            knobs.max_time_per_fc_us,
            knobs.jobs,
            knobs.advice_us,
        ),
        remove_node_types=tuple(variant.remove_node_types),
        remove_node_names=tuple(variant.remove_node_names),
        output_nodes=tuple(variant.output_nodes),
        layer_out_dump=variant.layer_out_dump,
        dump_calibration_data=variant.dump_calibration_data,
    )


def input_from_wire(item: compiler_pb2.InputSpec) -> InputSpec:
    """Read one input; empty fields take their defaults."""
    return InputSpec(
        item.name,
        item.type_train or "featuremap",
        item.type_rt or "featuremap",
        item.layout_train or "NCHW",
        item.layout_rt or "NCHW",
        item.space_and_range or "regular",
        item.norm_type or norm_type_of(tuple(item.mean_value), tuple(item.scale_value)),
        tuple(item.mean_value),
        tuple(item.scale_value),
        tuple(item.shape),
        item.source,
        item.batch,
        item.calibration_dtype,
    )


def spec_to_wire(spec: CompileSpec) -> compiler_pb2.VariantSpec:
    """Write a variant."""
    variant = compiler_pb2.VariantSpec(
        name=spec.name,
        preset=spec.preset,
        purpose=spec.purpose,
        remove_node_types=spec.remove_node_types,
        remove_node_names=spec.remove_node_names,
        output_nodes=spec.output_nodes,
        layer_out_dump=spec.layer_out_dump,
        dump_calibration_data=spec.dump_calibration_data,
    )
    for i in spec.inputs:
        variant.inputs.add(
            name=i.name,
            type_train=i.type_train,
            type_rt=i.type_rt,
            layout_train=i.layout_train,
            layout_rt=i.layout_rt,
            space_and_range=i.space_and_range,
            norm_type=i.norm_type,
            mean_value=i.mean,
            scale_value=i.scale,
            shape=i.shape,
            source=i.source,
            batch=i.batch,
            calibration_dtype=i.calibration_dtype,
        )
    c, k = spec.calibration, spec.compiler
    variant.calibration.CopyFrom(
        compiler_pb2.CalibrationSpec(
            method=c.method,
            max_percentile=c.max_percentile,
            per_channel=c.per_channel,
            optimization=c.optimization,
            run_on_cpu=c.run_on_cpu,
            run_on_bpu=c.run_on_bpu,
        )
    )
    for n in spec.nodes:
        variant.nodes.add(
            node=n.node,
            device=n.device,
            input_type=n.input_type,
            output_type=n.output_type,
            input_types=dict(n.input_types),
        )
    variant.compiler.CopyFrom(
        compiler_pb2.CompilerKnobs(
            optimize_level=k.optimize_level,
            compile_mode=k.compile_mode,
            balance_factor=k.balance_factor,
            debug=k.debug,
            no_debug=not k.debug,
            max_time_per_fc_us=k.max_time_per_fc_us,
            jobs=k.jobs,
            advice_us=k.advice_us,
        )
    )
    return variant


def failure_to_wire(failure: StageFailure) -> toolchain_pb2.StageFailure:
    """Write a failure."""
    return toolchain_pb2.StageFailure(
        code=failure.code,
        message=failure.message,
        subject=failure.subject,
        remedy=failure.remedy,
        evidence=failure.evidence,
        user_fault=failure.user_fault,
        exit_code=failure.exit_code,
        transform_pass=failure.transform_pass,
    )


def findings_to_wire(findings: Iterable[Finding]) -> list[toolchain_pb2.Finding]:
    """Write findings."""
    return [
        toolchain_pb2.Finding(
            code=f.code, severity=SEVERITY[f.severity], message=f.message, subject=f.subject, remedy=f.remedy
        )
        for f in findings
    ]


def tool_to_wire(toolchain: Toolchain) -> toolchain_pb2.ToolchainInfo:
    """Write what the toolchain is."""
    return toolchain_pb2.ToolchainInfo(
        name="hb_mapper", version=toolchain.version, parts=toolchain.parts, known=toolchain.known
    )


def figure(name: str, value: float, unit: str, kind: toolchain_pb2.FigureKind, source: str) -> toolchain_pb2.Figure:
    """Write one number."""
    return toolchain_pb2.Figure(name=name, value=value, unit=unit, kind=kind, source=source)


def nodes_to_wire(facts: LogFacts, reasons: Mapping[str, str]) -> list[compiler_pb2.NodePlacement]:
    """Write the node table."""
    nodes = []
    for row in facts.nodes:
        node = compiler_pb2.NodePlacement(
            node=row.node,
            device=row.device,
            subgraph=row.subgraph,
            type=row.type,
            threshold=row.threshold,
            dtype=row.dtype,
            reason=reasons.get(row.node, ""),
        )
        if row.cosine is not None:
            node.cosine = row.cosine
        nodes.append(node)
    return nodes


def vendor_output_to_wire(row: OutputRow, source: str) -> toolchain_pb2.OutputComparison:
    """Write one row of the tool's own comparison (first calibration sample, fake-quantised model)."""
    values = {"cosine": row.cosine, "l1": row.l1, "l2": row.l2, "chebyshev": row.chebyshev}
    figures = [figure(k, v, "1", SIMULATED, source) for k, v in values.items()]
    return toolchain_pb2.OutputComparison(output=row.output, samples=1, figures=figures)


def comparison_to_wire(item: Comparison, source: str) -> toolchain_pb2.OutputComparison:
    """Write one of our comparisons.

    The infinite sqnr_db of equal outputs is left out: it is no error. Any other figure that is no finite number is one,
    and goes to the gates as it is.
    """
    figures = [
        figure(k, v, UNITS.get(k, "1"), SIMULATED, source)
        for k, v in item.figures().items()
        if (k, v) != ("sqnr_db", math.inf)
    ]
    return toolchain_pb2.OutputComparison(
        output=item.output, samples=item.samples, figures=figures, worst_sample=item.worst_sample
    )


def bit_to_wire(item: BitComparison) -> compiler_pb2.BitCheck:
    """Write one bit check."""
    return compiler_pb2.BitCheck(
        subgraph=item.subgraph,
        tensor=item.tensor,
        samples=item.samples,
        equal=item.equal,
        different_elements=item.different,
        max_difference=item.max_difference,
        first_difference=item.first,
        not_compared=item.not_compared,
    )


def subgraph_to_wire(line: SubgraphLine, report: SubgraphReport | None, source: str) -> compiler_pb2.SubgraphEstimate:
    """Write the static figures of one subgraph."""
    figures = [
        figure("estimated_latency_us", line.latency_us, "us", ESTIMATED, source),
        figure("fps", line.fps, "fps", ESTIMATED, source),
        figure("ddr_bytes", line.ddr_bytes, "bytes", ESTIMATED, source),
    ]
    message = compiler_pb2.SubgraphEstimate(name=line.name, figures=figures)
    for layer in report.layers if report else ():
        message.layers.add(
            layer=layer.layer,
            operations=layer.operations,
            compute_us=layer.compute_us,
            transfer_us=layer.transfer_us,
            active=layer.active,
        )
    return message


def knobs_to_wire() -> list[compiler_pb2.Knob]:
    """Write all knobs."""
    return [
        compiler_pb2.Knob(
            section=k.section,
            key=k.key,
            unit=k.unit,
            allowed=k.allowed,
            default_value=k.default,
            field=k.field,
            reason=k.why,
        )
        for k in KNOBS
    ]


def failure_kinds_to_wire() -> list[compiler_pb2.FailureKind]:
    """Write the failure table."""
    return [
        compiler_pb2.FailureKind(
            code=k.code, cause=k.cause, remedy=k.remedy, user_fault=k.user_fault, transform_pass=k.cure
        )
        for k in FAILURE_KINDS.values()
    ]
