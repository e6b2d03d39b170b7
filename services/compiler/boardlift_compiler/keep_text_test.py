from concurrent.futures import ThreadPoolExecutor

from boardlift_compiler.keep_text import keep_text


def test_a_file_is_replaced_as_a_whole_also_by_many_at_once(tmp_path):
    path = tmp_path / "made" / "x.json"
    texts = [str(number) * 10_000 for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(lambda text: keep_text(path, text), texts * 20))
    assert path.read_text() in texts and list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_is_no_failure(tmp_path):
    (tmp_path / "file").touch()
    assert not keep_text(tmp_path / "file" / "x.json", "x")
    (tmp_path / "taken").mkdir()
    assert not keep_text(tmp_path / "taken", "x")
    assert {p.name for p in tmp_path.iterdir()} == {"file", "taken"}
