"""Archives are judged by their headers: what does not fit is refused before memory is taken."""

import io
import zipfile

import numpy as np
import pytest

from anharmonic.data.archive import load_archive


def npy(array):
    text = io.BytesIO()
    np.save(text, array)
    return text.getvalue()


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return path


def header(shape):
    text = io.BytesIO()
    description = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(text, description)
    return text.getvalue()


def test_arrays_come_as_they_were_written(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.random((3, 4)),
        "f": np.asfortranarray(rng.random((3, 4), np.float32)),
        "b": rng.integers(0, 9, 5).astype(">i4"),
        "s": np.array(["ü", "bc"]),
        "e": np.empty((0, 2)),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = load_archive(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for name, value in arrays.items():
        assert found[name].dtype == value.dtype and np.array_equal(found[name], value)


@pytest.mark.parametrize(
    "content",
    [
        header((10**12, 5)),
        header((-1, 5)) + b"0" * 400,
        header((2, 3)) + b"0" * 25,  # one byte too many
        b"\x93NUMPY\x09\x00" + b"\0" * 50,
        b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16,
        b"no array",
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, content):
    path = archive(tmp_path / "a.npz", x__npy=content, y__npy=npy(np.zeros(3)))
    with pytest.raises(ValueError, match=r"a\.npz must be a sound .npz archive; got .*; write it"):
        load_archive(path)


def test_what_is_no_array_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"x is not a \.npy array"):
        load_archive(archive(tmp_path / "a.npz", x=npy(np.zeros(3))))
