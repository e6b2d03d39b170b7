"""The table and the adapters against every operator version that the installed onnx knows."""

from __future__ import annotations

import onnx
import pytest
from onnx import defs

from boardlift_transform.opset.families.refused import REFUSED
from boardlift_transform.opset.registry import adapters
from boardlift_transform.opset.schemas import schema_at
from boardlift_transform.opset.type_steps import TYPE_STEPS

LOWEST = 10
"""Lowest target."""
READ_AS_EQUAL = {
    "Loop": (11,),  # the trip count and the condition were made optional in writing only
    "Optional": (28,),
}
"""Versions whose schema differs in form, read and found to mean the same."""


def versions() -> list[onnx.defs.OpSchema]:
    return [
        s
        for s in defs.get_all_schemas_with_history()
        if s.domain == "" and s.since_version > LOWEST and not s.deprecated
    ]


def test_every_operator_version_has_been_looked_at():
    unseen = [
        f"{s.name}-{s.since_version}"
        for s in versions()
        if (s.name, s.since_version) not in adapters() and s.since_version not in TYPE_STEPS.get(s.name, ())
    ]
    assert unseen == [], "read these versions: an adapter, a line in TYPE_STEPS, or a refusal"


@pytest.mark.parametrize(("op", "version"), [(o, v) for o, vs in TYPE_STEPS.items() for v in vs])
def test_a_type_step_changes_types_only(op, version):
    now, before = schema_at(op, version), schema_at(op, version - 1)
    assert now is not None, f"{op}-{version} is not in the installed onnx"
    assert now.since_version == version
    assert before is not None
    if version in READ_AS_EQUAL.get(op, ()):
        return
    assert set(now.attributes) <= set(before.attributes)
    assert [p.option for p in now.inputs] == [p.option for p in before.inputs]
    assert [p.option for p in now.outputs] == [p.option for p in before.outputs]
    assert now.min_input == before.min_input
    assert now.min_output == before.min_output
    for name, attribute in now.attributes.items():
        old = before.attributes[name]
        assert attribute.type == old.type
        assert attribute.default_value.SerializeToString() == old.default_value.SerializeToString(), name
        assert attribute.required == old.required, name


def test_adapters_and_table_do_not_overlap():
    assert [k for k in adapters() if k[1] in TYPE_STEPS.get(k[0], ())] == []


def test_every_adapter_names_a_version_that_exists():
    for op, version in adapters():
        if version <= defs.onnx_opset_version():
            schema = schema_at(op, version)
            assert schema is not None, (op, version)
            assert schema.since_version == version, (op, version)


def test_refusals_carry_reason_and_remedy():
    assert all(reason and remedy for reason, remedy in REFUSED.values())
