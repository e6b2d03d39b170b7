import pytest
from hypothesis import given
from hypothesis import strategies as st

from boardlift_transform.refusal import Refusal
from boardlift_transform.split_dataset import split_samples


def _keys(count: int) -> list[bytes]:
    return [str(i).encode() for i in range(count)]


def test_defaults_take_64_and_the_rest() -> None:
    split = split_samples(_keys(400))
    assert (len(split.calibration), len(split.heldout)) == (64, 256)


def test_same_seed_same_draw_other_seed_another() -> None:
    assert split_samples(_keys(100), seed=3) == split_samples(_keys(100), seed=3)
    assert split_samples(_keys(100), seed=3) != split_samples(_keys(100), seed=4)


def test_the_makers_split_is_kept() -> None:
    split = split_samples(_keys(50), calibration=20, made=(30, 20))
    assert split.calibration == tuple(range(20))
    assert split.heldout == tuple(range(30, 50))


def test_one_sample_is_an_error_finding() -> None:
    split = split_samples([b"a"] * 9)
    assert split.calibration == split.heldout == (0,)
    assert split.findings[0].severity == "error"


@pytest.mark.parametrize(
    ("calibration", "heldout", "made", "said"),
    [
        (31, 0, (30, 20), "31 to calibrate, but the dataset was split into 30 \\+ 20"),
        (0, 21, (30, 20), "21 held out, but the dataset was split into 30 \\+ 20"),
        (40, 11, None, "40 to calibrate and 11 held out, but there are 50 different ones"),
        (50, 0, None, "50 to calibrate, but there are 50 different ones"),
    ],
)
def test_more_than_there_is_is_refused_not_shortened(calibration, heldout, made, said) -> None:
    with pytest.raises(Refusal, match=said) as caught:
        split_samples(_keys(50), calibration, heldout, made=made)
    assert caught.value.reason == "TOO_FEW_SAMPLES"


def test_what_is_asked_for_is_what_comes() -> None:
    for calibration, heldout in ((40, 10), (1, 49), (49, 1)):
        split = split_samples(_keys(50), calibration, heldout)
        assert (len(split.calibration), len(split.heldout)) == (calibration, heldout)
    short = split_samples(_keys(20))
    assert (len(short.calibration), len(short.heldout), short.findings[0].code) == (16, 4, "CALIBRATION_SHORT")


@given(st.lists(st.integers(0, 30), min_size=2, max_size=80), st.integers(0, 30), st.integers(0, 30))
def test_no_sample_is_on_both_sides(values: list[int], calibration: int, heldout: int) -> None:
    keys = [str(v).encode() for v in values]
    if len(set(keys)) > 1 and (calibration or 1) + (heldout or 1) > len(set(keys)):
        with pytest.raises(Refusal):
            split_samples(keys, calibration, heldout)
        return
    split = split_samples(keys, calibration, heldout)
    assert split.calibration and split.heldout
    if len(set(keys)) > 1:
        assert not {keys[i] for i in split.calibration} & {keys[i] for i in split.heldout}
