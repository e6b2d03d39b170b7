import io
import zipfile

import numpy as np
import pytest

from boardlift import npz
from boardlift.npz import NpzError, NpzTooLargeError, read_npz

RNG = np.random.default_rng(0)


def header(text):
    data = text.encode()
    data += b" " * (64 - (len(data) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data


def archive(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_what_numpy_saves(tmp_path, compressed):
    arrays = {
        "a": RNG.standard_normal((5, 3, 2)).astype(np.float32),
        "fortran": np.asfortranarray(RNG.integers(0, 9, (5, 4))),
        "flags": np.array([True, False, True]),
        "scalar": np.float64(3.0),
        "empty": np.zeros((0, 3), np.int8),
        "big_endian": np.arange(5, dtype=">i4"),
    }
    path = tmp_path / "x.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    found = read_npz(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(found[name], array)
    first = read_npz(path, samples=2)
    assert [first[name].shape for name in ("a", "fortran", "scalar", "empty")] == [(2, 3, 2), (2, 4), (), (0, 3)]
    np.testing.assert_array_equal(first["fortran"], arrays["fortran"][:2])


def test_members_that_are_no_arrays_are_allowed_by_name_and_size(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros(3))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("dataset.json", "{}")
    assert list(read_npz(path)) == list(read_npz(path, also={"dataset.json": 2})) == ["a"]
    with pytest.raises(NpzTooLargeError, match=r"dataset\.json is larger than 1 bytes"):
        read_npz(path, also={"dataset.json": 1})
    with pytest.raises(NpzError, match="unknown member"):
        read_npz(path, also={})


def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path):
    huge = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }")
    with pytest.raises(NpzError, match="shorter than its header says"):
        read_npz(archive(tmp_path / "x.npz", {"a.npy": huge + b"\0" * 64}))


def test_limits_hold_before_anything_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(100_000))
    monkeypatch.setattr(npz, "MAX_BYTES", 100_000)
    with pytest.raises(NpzTooLargeError, match="unpacks to 800"):
        read_npz(path)
    monkeypatch.undo()
    with pytest.raises(NpzTooLargeError, match="300 members"):
        read_npz(archive(tmp_path / "many.npz", {f"{i}.npy": b"" for i in range(300)}))


def test_what_is_no_plain_array_is_refused(tmp_path):
    objects = io.BytesIO()
    np.lib.format.write_array(objects, np.array([{}], dtype=object), allow_pickle=True)
    cases = {
        "objects": archive(tmp_path / "o.npz", {"a.npy": objects.getvalue()}),
        "version": archive(tmp_path / "v.npz", {"a.npy": b"\x93NUMPY\x09\x00" + b"\0" * 64}),
        "no array": archive(tmp_path / "n.npz", {"a.npy": b"hello"}),
        "no archive": tmp_path / "plain.npz",
        "absent": tmp_path / "absent.npz",
    }
    cases["no archive"].write_bytes(b"PK nonsense")
    for name, path in cases.items():
        with pytest.raises(NpzError):
            read_npz(path)
            pytest.fail(name)


def test_a_damaged_file_is_an_error_never_other_numbers(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(1000))
    data = bytearray(path.read_bytes())
    data[3000] ^= 255
    path.write_bytes(data)
    with pytest.raises(NpzError, match="CRC"):
        read_npz(path)
