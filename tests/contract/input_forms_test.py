"""What the client refuses of an input's form before a job exists, the compiler would refuse by the same code."""

import itertools

from boardlift import Variant
from boardlift._check_forms import SOURCE_TYPES, TYPE_PAIRS, check_forms
from boardlift._requests import variant_spec
from boardlift.errors import InvalidInputError
from boardlift.models import InputFormat
from boardlift_compiler import spec
from boardlift_compiler.convert import input_from_wire
from boardlift_compiler.preflight import check_settings

FED = ("", "featuremap", "rgb", "bgr", "yuv444", "nv12", "gray")
SCALES: tuple[tuple[float, ...], ...] = ((), (0.004,), (0.0,), (float("inf"),))


def test_the_tables_are_equal() -> None:
    assert dict(spec.TYPE_PAIRS) == TYPE_PAIRS
    assert dict(spec.SOURCE_TYPES) == SOURCE_TYPES


def code_of_client(item: InputFormat) -> str:
    try:
        check_forms([Variant("int8", inputs=(item,))])
    except InvalidInputError as error:
        return error.reason
    return ""


def test_every_form_ends_the_same_on_both_sides() -> None:
    ends = set()
    for train, fed, space, source, scale in itertools.product(
        ("", *TYPE_PAIRS), FED, ("", "regular", "bt601_video"), ("", *SOURCE_TYPES), SCALES
    ):
        item = InputFormat("x", train, fed, space_and_range=space, source=source, scale=scale)
        (wire,) = variant_spec(Variant("int8", inputs=(item,))).inputs
        codes = [f.code for f in check_settings(spec.CompileSpec(inputs=(input_from_wire(wire),)))]
        said = code_of_client(item)
        assert said in codes if said else codes == [], (item, said, codes)
        ends.add(said)
    assert ends == {
        "",
        "INPUT_TYPE_PAIR",
        "SPACE_AND_RANGE_PAIR",
        "INPUT_SOURCE_PAIR",
        "NORM_TYPE_INVALID",
        "NORM_VALUE",
    }
