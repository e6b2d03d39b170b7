"""The passes, in the order in which a plan runs them. One file per pass; a test finds files not listed here."""

from boardlift_transform.passes import (
    cut_outputs,
    downgrade_opset,
    eliminate_dead,
    fix_dynamic_dims,
    fold_constants,
    free_batch,
    freeze_inputs,
    inline_functions,
    lift_to_4d,
    merge_matmul_add,
    upgrade_opset,
    wrap_inputs,
    wrap_outputs,
)
from boardlift_transform.passes._base import Pass

PASSES: tuple[Pass, ...] = (
    inline_functions.PASS,
    fix_dynamic_dims.PASS,
    cut_outputs.PASS,
    freeze_inputs.PASS,
    fold_constants.PASS,
    upgrade_opset.PASS,
    downgrade_opset.PASS,
    eliminate_dead.PASS,
    merge_matmul_add.PASS,
    wrap_inputs.PASS,
    wrap_outputs.PASS,
    lift_to_4d.PASS,
    free_batch.PASS,
)
PASSES_BY_ID = {p.id: p for p in PASSES}
