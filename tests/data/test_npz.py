"""Archives of arrays: what they hold, and which are refused before memory is taken."""

import io
import struct
import zipfile

import numpy as np
import pytest

from anharmonic.data.archive import load_archive
from anharmonic.data.npz import read_npz


@pytest.fixture
def read(write):
    """Reads an archive of these arrays."""
    return lambda **arrays: read_npz(write("mine.npz", arrays))["all"]


def test_forms_of_x(read, tmp_path):
    y, x = np.array([1.0, 2.0]), np.arange(12.0).reshape(2, 3, 2)
    dense = read(x=x, y=y)
    assert dense.x.tolist() == x.reshape(6, 2).tolist() and dense.x.dtype == np.float32
    assert dense.offsets.tolist() == [0, 3, 6]
    one = read(x=x[:, :, 0].astype(int), y=y)
    assert one.x.tolist() == [[0], [2], [4], [6], [8], [10]]
    for same in (x.astype("f2"), x.astype(">f8"), np.asfortranarray(x)):
        assert np.array_equal(read(x=same, y=y).x, dense.x)
    np.savez_compressed(tmp_path / "mine.npz", x=x, y=["ü", "bc"])
    assert read_npz(tmp_path / "mine.npz")["all"].y.tolist() == ["ü", "bc"]
    x[0, 2] = np.nan  # behind the end of its sequence
    padded = read(x=x, y=y, lengths=[2, 3])
    assert padded.x.tolist() == [[0, 1], [2, 3], [6, 7], [8, 9], [10, 11]]
    assert padded.offsets.tolist() == [0, 2, 5]
    flat = read(x=padded.x, y=y, offsets=[0, 2, 5])
    assert flat.x.tolist() == padded.x.tolist()
    assert read(x=np.arange(5.0), y=y, offsets=[0, 2, 5]).x.shape == (5, 1)


def test_targets_per_step(read):
    x, y = np.zeros((2, 3)), np.arange(6.0).reshape(2, 3, 1)
    padded = read(x=x, y=y, lengths=[3, 1])
    assert padded.per_step and padded.y.tolist() == [[0], [1], [2], [3]]
    flat = read(x=np.zeros(4), y=np.arange(4.0), offsets=[0, 3, 4])
    assert flat.per_step and flat.y.shape == (4, 1)
    assert not read(x=x, y=np.zeros((2, 3))).per_step


def test_parts_and_files_without_targets(write):
    given = {"x_train": np.zeros((3, 2)), "y_train": [0, 1, 0]}
    given |= {"x_test": np.zeros((1, 2)), "y_test": [1]}
    sizes = {name: len(part) for name, part in read_npz(write("mine.npz", given)).items()}
    assert sizes == {"train": 3, "test": 1}
    given |= {"x_valid": np.zeros(5), "y_valid": [1, 0], "offsets_valid": [0, 1, 5]}
    given |= {"channels": ["speed"], "groups_valid": ["ann", "bob"]}
    parts = read_npz(write("mine.npz", given))
    assert [part.channels for part in parts.values()] == [("speed",)] * 3
    assert list(parts) == ["train", "valid", "test"]
    assert parts["valid"].groups.tolist() == ["ann", "bob"]
    assert read_npz(write("mine.npz", {"x": X}), targets=False)["all"].y is None


X, Y = np.zeros((2, 3)), np.array([0, 1])
XY, FLAT = {"x": X, "y": Y}, {"x": np.zeros(5), "y": Y}
RAGGED = np.array([np.zeros(2), np.zeros(3)], dtype=object)
WORDS = np.array(["a", "b"], dtype=object)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"x": X}, r"mine.npz must be x and y; got ..x..; add the targets"),
        ({"inputs": X, "y": Y}, r"key in mine.npz must be one of 'x', .*; got 'inputs'"),
        (XY | {"lenghts": Y}, r"got 'lenghts'; did you mean 'lengths'\?"),
        (XY | {"X": X}, r"with one meaning must be none; got .'x', 'X'.; keep one"),
        ({"y": Y}, r"must be either x, or x_train and x_test; got ..y..; name"),
        (XY | {"x_test": X}, r"either x, or x_train and x_test; got ..x., .x_t"),
        ({"x_train": X, "x_test": X, "y_train": Y}, r"must be x_test and y_test; got ..x_test"),
        (XY | {"x": X + 1j}, r"must be .* real numbers; got 'complex128"),
        (XY | {"x": X > 0}, r"must be .* real numbers; got 'bool"),
        (XY | {"x": np.zeros((2, 3), [("a", "f4")])}, r"must be .* real numbers; got .*'a'"),
        (XY | {"y": np.int64(3)}, r"y in mine.npz must .*; got .+; "),
        (XY | {"lengths": [3, 3], "offsets": [0, 1]}, r"lengths or offsets, not both; got"),
        (XY | {"x": np.zeros(4)}, r"x in mine.npz must be \[N, T\] or .*; got \[4\]; reshape"),
        (XY | {"x": np.zeros((1, 1, 1, 1))}, r"got \[1, 1, 1, 1\]; reshape it"),
        (XY | {"x": np.zeros((2, 3, 1)), "offsets": [0, 1, 2]}, r"with offsets; got \[2,"),
        (XY | {"lengths": [3]}, r"lengths in mine.npz must be 2 numbers .* got 1 len"),
        (XY | {"lengths": [3, 4]}, r"of at most 3, as x has; got 2 lengths, 4 at sequ"),
        (XY | {"lengths": np.full(2, 2**64 - 1, np.uint64)}, r"got 2 lengths, .* at sequence 0"),
        (XY | {"lengths": [0, 3]}, r"without a step .* got \[0\]; remove"),
        (XY | {"lengths": [1.0, 3.0]}, r"lengths in .* row of whole numbers; got 'float64"),
        (FLAT | {"offsets": [0, 2, 4]}, r"rise from 0 to 5.*from 0 to 4"),
        (FLAT | {"offsets": [0, 2**63 - 1, 5]}, r"rise from 0 to 5"),
        (FLAT | {"offsets": [[0, 5]]}, r"offsets in mine.npz must be a row"),
        (FLAT | {"y": [0, 1, 2], "offsets": [0, 4, 2, 5]}, r"falling after place 1"),
        (FLAT | {"offsets": np.array([], int)}, r"got 0 offsets"),
        (FLAT | {"offsets": [0, 0, 5]}, r"without a step .* got .0"),
        (XY | {"x": X[:, :0]}, r"without a step .* got \[0, 1\]"),
        ({"x": np.zeros((0, 3)), "y": []}, r"at least one; got .*sequences': 0"),
        (XY | {"x": np.zeros((2, 3, 0))}, r"at least one; got .*channels': 0"),
        (XY | {"y": [1, 2, 3]}, r"y in mine.npz must be of 2 rows, as x; got \[3"),
        (XY | {"y": np.zeros((2, 4, 1))}, r"y in mine.npz must be \[2, 3, O\].*got \[2, 4"),
        (XY | {"elapsed": np.zeros((2, 2))}, r"shape of elapsed in mine.npz must be \[2, 3\].*2\]"),
        (XY | {"elapsed": [[0, 1, 1], [0, -1, 1]]},
         "elapsed in mine.npz must be finite and >= 0; got -1.0 at sequence 1, step 1; give"),
        (XY | {"groups": [1, 2, 3]}, r"groups in mine.npz must be of shape \[2\].*\[3\]; give one"),
        (XY | {"elapsed": np.full((2, 3), "a")}, "elapsed in mine.npz must be real numbers; got"),
        (XY | {"groups": [0.5, 1.5]}, "groups in mine.npz must be whole numbers or strings; got"),
        (XY | {"times": [0.5, np.nan]}, "times in mine.npz must be known everywhere; got 'NaN'"),
        (XY | {"channels": ["a", "b"]}, "channels in mine.npz must be 1 names.*got 2; name"),
        # Pickled objects could run code; the message names the way out.
        (XY | {"x": RAGGED}, r"could run code; store .* offsets \[N \+ 1\], or padded"),
        (XY | {"y": WORDS}, r"y in mine.npz .*; store y.astype\(str\) for classes, "),
    ],
)  # fmt: skip
def test_errors(read, arrays, text):
    with pytest.raises(ValueError, match=text):
        read(**arrays)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"existing file; got .*, which does not exist"):
        read_npz(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError, match="a folder; check the path"):
        read_npz(tmp_path)


def test_what_is_known_of_sequences(read):
    given = {"x": np.zeros((2, 3, 2)), "y": [0, 1], "groups": [7, 8]}
    given |= {"elapsed": [[0, 2, 9], [0, 1, 3]], "channels": ["speed", "height"]}
    given |= {"times": np.array(["2020-01-02", "2020-01-01"], "datetime64[D]")}
    part = read(**given, lengths=[2, 3])
    assert part.elapsed.tolist() == [0, 2, 0, 1, 3]
    assert (part.groups.tolist(), part.channels) == ([7, 8], ("speed", "height"))
    assert part.times[1] < part.times[0]


# Archives are judged by their headers.


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
