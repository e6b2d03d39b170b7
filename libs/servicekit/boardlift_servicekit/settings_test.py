from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from boardlift.errors import InvalidInputError

from boardlift_servicekit.settings import from_environment


@dataclass(frozen=True)
class Example:
    name: str
    slots: int = field(default=2, metadata={"min": 1, "max": 8})
    grace: timedelta = timedelta(seconds=30)
    folder: Path | None = None
    debug: bool = False
    labels: tuple[str, ...] = ()


def test_reads_every_type():
    env = {
        "BOARDLIFT_NAME": "a",
        "BOARDLIFT_SLOTS": "3",
        "BOARDLIFT_GRACE": "1.5",
        "BOARDLIFT_FOLDER": "/x/y",
        "BOARDLIFT_DEBUG": "yes",
        "BOARDLIFT_LABELS": "a=1, b=2",
    }
    expected = Example("a", 3, timedelta(seconds=1.5), Path("/x/y"), True, ("a=1", "b=2"))
    assert from_environment(Example, env) == expected


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({}, "SETTING_MISSING"),
        ({"BOARDLIFT_NAME": "a", "BOARDLIFT_SLOTS": "9"}, "SETTING_INVALID"),
        ({"BOARDLIFT_NAME": "a", "BOARDLIFT_SLOTS": "x"}, "SETTING_INVALID"),
        ({"BOARDLIFT_NAME": "a", "BOARDLIFT_DEBUG": "perhaps"}, "SETTING_INVALID"),
    ],
)
def test_says_which_variable_is_wrong(env, reason):
    with pytest.raises(InvalidInputError) as caught:
        from_environment(Example, env)
    assert caught.value.reason == reason
    assert caught.value.metadata["variable"].startswith("BOARDLIFT_")
