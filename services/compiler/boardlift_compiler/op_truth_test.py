import pytest

from boardlift_compiler.op_truth import INT8_ONLY, INT16_FORMS, int16_form, stays_int8
from boardlift_compiler.read_model import ModelSummary, Node

EMPTY = ModelSummary(8, {}, "g", (), (), (), {})


@pytest.mark.parametrize("operator", sorted(INT8_ONLY))
def test_what_stays_int8_names_the_pass_that_has_another_form(operator: str) -> None:
    reason = stays_int8(Node("n", operator, "", ("a", "b"), ("c",)), EMPTY)
    assert operator in reason
    pass_id, which = INT16_FORMS[operator]
    assert pass_id in int16_form(reason) and which in int16_form(reason)


def test_products_of_computed_tensors_and_dilation_have_one_too() -> None:
    product = Node("n", "MatMul", "", ("a", "b"), ("c",))
    assert "matmul-to-products" in int16_form(stays_int8(product, EMPTY))
    dilated = Node("n", "Conv", "", ("a", "b"), ("c",), {"dilations": (2, 2)})
    assert "undilate-conv" in int16_form(stays_int8(dilated, EMPTY))
    assert int16_form("its result leaves the BPU directly") == ""
