from __future__ import annotations

import numpy as np
import pytest

from boardlift import Client, Variant
from boardlift.errors import InvalidInputError
from boardlift.models import InputFormat
from boardlift.testing import FakeServer

WORDS = ["type_train", "type_rt", "layout_train", "layout_rt", "norm_type", "space_and_range", "source"]
WRONG = {
    "INPUT_TYPE_PAIR: Input obs was trained as rgb .* Remedy: rgb is fed as nv12, ": {
        "type_train": "rgb",
        "type_rt": "gray",
    },
    "INPUT_TYPE_PAIR: Input obs was trained as rgb and can't be fed as featuremap": {"type_train": "rgb"},
    "SPACE_AND_RANGE_PAIR: ": {"type_train": "rgb", "type_rt": "rgb", "space_and_range": "bt601_video"},
    "INPUT_SOURCE_PAIR: .* pyramid gives nv12, gray": {"source": "pyramid"},
    "NORM_TYPE_INVALID: ": {"scale": (0.1,)},
    "NORM_VALUE: ": {"type_train": "rgb", "type_rt": "nv12", "scale": (0.0,)},
}


@pytest.mark.parametrize("field", WORDS)
def test_a_word_that_no_tool_takes_is_named_with_those_that_it_takes(model, field):
    form = Variant("int8", inputs=(InputFormat("obs", **{field: "nv21"}),))
    said = rf"{field} of input obs can't be 'nv21'\. Remedy: Use one of "
    with FakeServer() as server, Client(server.address) as client, pytest.raises(InvalidInputError, match=said):
        client.run(model, {"obs": np.ones((4, 3), np.float32)}, [form])


@pytest.mark.parametrize(("said", "fields"), WRONG.items())
def test_a_form_that_no_tool_takes_costs_no_job(model, said, fields):
    form = Variant("int8", inputs=(InputFormat("obs", **fields),))
    with FakeServer() as server, Client(server.address) as client:
        with pytest.raises(InvalidInputError, match=said):
            client.run(model, {"obs": np.ones((4, 3), np.float32)}, [form])
        assert "CreateJob" not in server.calls


def test_the_range_and_the_source_reach_the_compiler(model):
    from boardlift._requests import variant_spec
    from boardlift.cli.parse import parse_input_format

    form = parse_input_format("obs:type_train=bgr,type_rt=nv12,space_and_range=bt601_video,source=resizer")
    (sent,) = variant_spec(Variant("int8", inputs=(form,))).inputs
    assert (sent.type_rt, sent.space_and_range, sent.source) == ("nv12", "bt601_video", "resizer")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("images:foo=1", "'foo' is none of type_train, type_rt, "),
        ("images:type_train", "type_train has no value"),
        ("images:mean=a", "something else than numbers"),
        ("type_train=rgb", "it names no input"),
    ],
)
def test_a_form_that_cannot_be_read_is_told_by_its_part(text, said):
    from boardlift.cli.parse import parse_input_format

    with pytest.raises(InvalidInputError, match=said):
        parse_input_format(text)
