"""Archives are judged by their headers: what does not fit is refused before memory is taken."""

import io
import struct
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


def header(shape, dtype="'<f4'"):
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def changed(position, offset, value):
    """Changes a byte of both headers of the first member."""

    def change(whole):
        data = bytearray(whole)
        data[data.find(b"PK\x01\x02") + offset] = data[position] = value
        return bytes(data)

    return change


@pytest.mark.parametrize(
    "content",
    [
        header("(1000000000000, 5)"),
        header("(1000000000, 2)"),
        header(f"({2**40}, {2**40})"),
        header("(-1, 5)") + b"0" * 400,
        header("(True, 5)"),
        header("(2, 3)") + b"0" * 25,  # one byte too many
        header("__import__('os').system('touch EVIL')"),
        header("(" * 3000),
        header("[" * 90),
        header("(20,)", "'<U1000000000'"),
        b"\x93NUMPY\x09\x00" + b"\0" * 50,
        b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16,
        b"no array",
    ],
    ids=str,
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, content):
    path = archive(tmp_path / "a.npz", x__npy=content, y__npy=npy(np.zeros(3)))
    with pytest.raises(ValueError, match=r"a\.npz must be a sound .npz archive; got .*; write it"):
        load_archive(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: b"hello", "must be an .npz archive; got 'no zip"),
        (lambda whole: b"", "must be an .npz archive; got 'no zip"),
        (lambda whole: whole[:-30], "no zip archive, or a cut one'; write it with numpy.s"),
        (lambda whole: whole.replace(bytes(20), b"x" * 20, 1), "got BadZipFile: Bad CRC-32"),
        (changed(6, 8, 1), "must be a sound .npz archive; got .*encrypted"),
        (changed(8, 10, 99), "must be a sound .npz archive; got .*compression"),
    ],
)
def test_a_damaged_archive_is_refused(tmp_path, change, said):
    path = archive(tmp_path / "a.npz", x__npy=npy(np.zeros(300)))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=rf"a\.npz .*{said}"):
        load_archive(path)


def test_what_is_no_array_or_of_objects_is_refused(tmp_path):
    for objects in (header("(2,)", "'O8'"), npy(np.array([[1, 2], [3]], object))):
        with pytest.raises(ValueError, match=r"x in a\.npz must be an array of numbers or strings"):
            load_archive(archive(tmp_path / "a.npz", x__npy=objects))
    with pytest.raises(ValueError, match=r"x is not a \.npy array"):
        load_archive(archive(tmp_path / "a.npz", x=npy(np.zeros(3))))
