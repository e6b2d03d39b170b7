from pathlib import Path

import boardlift_transform.passes as passes
from boardlift_transform.passes import PASSES

FOLDER = Path(passes.__file__).parent


def _stems() -> set[str]:
    return {p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_") and not p.stem.endswith("_test")}


def test_every_file_is_in_the_list_under_its_own_name() -> None:
    assert {p.id.replace("-", "_") for p in PASSES} == _stems()
    assert len({p.id for p in PASSES}) == len(PASSES)


def test_every_pass_has_a_test_beside_it() -> None:
    assert {s for s in _stems() if not (FOLDER / f"{s}_test.py").exists()} == set()


def test_every_pass_says_what_why_and_how_exact() -> None:
    for stem in _stems():
        text = (FOLDER / f"{stem}.py").read_text().split('"""')[1]
        assert "Before -> After" in text and "Why:" in text and "Exactness:" in text, stem


def test_passes_stay_small() -> None:
    for stem in _stems():
        assert len((FOLDER / f"{stem}.py").read_text().splitlines()) <= 190, stem


def test_the_readme_lists_every_pass() -> None:
    text = (FOLDER.parents[1] / "README.md").read_text()
    assert [p.id for p in PASSES if f"| `{p.id}` |" not in text] == []
