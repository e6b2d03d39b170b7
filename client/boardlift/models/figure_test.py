from __future__ import annotations

import pytest

from boardlift.models import Figure


@pytest.mark.parametrize(
    ("value", "text"), [(3085312000.0, "3085312000"), (0.998309123, "0.998309"), (0.0, "0"), (1e300, "1e+300")]
)
def test_whole_numbers_keep_their_digits_and_others_six(value, text):
    assert str(Figure("memory", value, "bytes", "measured")) == f"{text} bytes (measured)"
