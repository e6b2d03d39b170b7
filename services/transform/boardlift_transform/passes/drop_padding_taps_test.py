import numpy as np
import pytest

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.passes.drop_padding_taps import live_taps
from boardlift_transform.run_one_pass import PassRun, run_one_pass


def _run(kernel: list[int], size: tuple[int, int] = (8, 9), group: int = 1, **window: object) -> PassRun:
    b = GraphBuilder(11)
    x = b.input("x", [1, 4, *size])
    b.node("Conv", [x, b.weight(4, 4 // group, *kernel), b.weight(4)], "y", group=group, **window)
    b.output("y")
    return run_one_pass(b.model(), "drop-padding-taps")


def _kernel(run: PassRun) -> list[int]:
    (dims,) = (list(w.dims[2:]) for w in run.model.graph.initializer if len(w.dims) == 4)
    return dims


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(
    ("kernel", "window", "left"),
    [
        ([3, 3], {"dilations": [12, 12], "pads": [12] * 4}, [1, 1]),
        ([3, 3], {"dilations": [8, 2], "pads": [8, 2, 8, 2]}, [1, 3]),
        ([5, 5], {"dilations": [5, 9], "pads": [10, 18, 10, 18]}, [3, 1]),
        ([3, 3], {"dilations": [9, 9], "pads": [9, 9, 9, 9], "strides": [2, 2]}, [1, 1]),
        ([3, 1], {"dilations": [9, 1], "pads": [18, 0, 0, 0]}, [1, 1]),
        ([9, 1], {"pads": [12, 0, 0, 0], "strides": [6, 1]}, [3, 1]),
        ([2, 2], {"pads": [1, 1, 0, 0], "strides": [20, 20]}, [1, 1]),
    ],
)
def test_taps_that_read_padding_only_go(
    kernel: list[int], window: dict[str, object], left: list[int], group: int
) -> None:
    run = _run(kernel, group=group, **window)
    assert _kernel(run) == left and run.max_rel < 1e-6


@pytest.mark.parametrize(
    "window", [{"pads": [1] * 4}, {"dilations": [7, 8], "pads": [7, 8, 7, 8]}, {}, {"auto_pad": "SAME_UPPER"}]
)
def test_taps_that_read_something_stay(window: dict[str, object]) -> None:
    assert _kernel(_run([3, 3], **window)) == [3, 3]


def test_a_rest_that_would_need_a_crop_stays() -> None:
    assert _kernel(_run([3, 3], size=(8, 8), dilations=[12, 12], pads=[10, 10, 10, 10])) == [3, 3]


def test_live_taps_are_those_that_a_count_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size, taps, pad, step, rate = (int(rng.integers(1, n)) for n in (9, 6, 9, 4, 9))
        span = (taps - 1) * rate + 1
        made = (size + 2 * pad - span) // step + 1
        if made < 1:
            continue
        padded = np.pad(np.ones(size, int), pad)
        counts = [padded[t * rate : t * rate + (made - 1) * step + 1 : step].sum() for t in range(taps)]
        alive = np.nonzero(counts)[0]
        assert live_taps(size, made, taps, pad, step, rate) == ((alive[0], alive[-1]) if len(alive) else (0, taps - 1))
