from pathlib import Path

import numpy as np
import pytest

from anharmonic.data.ts import read_ts

CLASSES = """# A comment
@problemName Small
@timeStamps false
@missing true
@univariate false
@dimensions 2
@equalLength false
@classLabel true cat dog

@data
1,2,3:4,5,6:cat
# another comment
7,?:NaN,-1e2:dog
"""
TARGETS = """@problemname r
@univariate true
@targetlabel true
@data
1,2:0.5
3:-2
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.ts"
    path.write_text(text)
    return path


def test_classes_ragged_and_missing(tmp_path: Path) -> None:
    part = read_ts(write(tmp_path, CLASSES))
    nan = np.nan
    np.testing.assert_array_equal(part.x, [[1, 4], [2, 5], [3, 6], [7, nan], [nan, -100]])
    assert part.x.dtype == np.float32
    assert part.offsets.tolist() == [0, 3, 5]
    assert part.y is not None
    assert part.y.tolist() == ["cat", "dog"]


def test_targets(tmp_path: Path) -> None:
    part = read_ts(write(tmp_path, TARGETS))
    assert part.y is not None
    assert part.y.tolist() == [0.5, -2.0]
    assert part.y.dtype == np.float64
    assert part.x.tolist() == [[1], [2], [3]]


def test_without_labels(tmp_path: Path) -> None:
    part = read_ts(write(tmp_path, "@univariate true\n@classLabel false\n@data\n1,2\n3,4\n"))
    assert part.y is None
    assert len(part) == 2


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (r"dimensions in line 11 of a.ts must be 2, .*; got 1; check", "4,5,6:", ""),
        (r"lengths of the dimensions in line 11 .* equal; got \[3, 2\]; cut", "4,5,6", "4,5"),
        (r"the class in line 13 of a.ts must be one of cat, dog; got 'bird'", ":dog", ":bird"),
        (r"line 11 of a.ts must hold numbers .* could not convert .*; correct it", "1,2", "1,x"),
        (r"line 11 of a.ts must hold numbers separated by commas", "1,2,3", "1,2,"),
        (r"tag in line 2 of a.ts must be one of .*; got 'problem'", "problemName", "problem"),
        (
            r"@timestamps in line 3 of a.ts must be false; got True; store",
            "Stamps false",
            "Stamps true",
        ),
        (r"value in line 5 of a.ts must be one of 'true', 'false'; got 'no'", "te false", "te no"),
        (
            r"value in line 6 of a.ts must be one whole number; got 'two'",
            "dimensions 2",
            "dimensions two",
        ),
        (r"line 10 of a.ts must be a tag .*before @data; got 'data'", "@data", "data"),
        (
            r"a.ts must be followed by a line @data; got ..problemname",
            CLASSES[CLASSES.index("@data") :],
            "",
        ),
        (
            r"sizes in a.ts .* at least one; got .*sequences': 0",
            CLASSES[CLASSES.index("1,2,3") :],
            "",
        ),
    ],
)
def test_errors(tmp_path: Path, text: str, old: str, new: str) -> None:
    assert old in CLASSES
    with pytest.raises(ValueError, match=text):
        read_ts(write(tmp_path, CLASSES.replace(old, new)))


def test_cases_of_different_dimensions_when_the_header_is_silent(tmp_path: Path) -> None:
    text = CLASSES.replace("@dimensions 2\n", "").replace("7,?:", "")
    with pytest.raises(
        ValueError, match=r"dimensions in line 12 of a.ts must be 2, as in the first case; got 1"
    ):
        read_ts(write(tmp_path, text))


def test_univariate_with_more_than_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"dimensions in line 5 of a.ts must be 1, .*; got 2"):
        read_ts(write(tmp_path, TARGETS.replace("1,2:", "1,2:3,4:")))


@pytest.mark.parametrize("bad", ["x", "nan", "inf", ""])
def test_bad_target(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match=r"the target in line 6 of a.ts must be a finite number; "):
        read_ts(write(tmp_path, TARGETS.replace(":-2", f":{bad}")))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must be an existing file"):
        read_ts(tmp_path / "none.ts")


def test_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(bytes(range(1, 256)))
    with pytest.raises(ValueError, match=r"line 1 of a.ts must be a tag"):
        read_ts(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@dimensions 2\n@univariate true\n@classLabel false\n@data\n1,2\n", "@dimensions 2"),
        ("@univariate true\n@classLabel false\n@data\n1_000,2\n", "1_000"),
    ],
)
def test_contradictions_and_numbers_of_python_are_refused(tmp_path, text, words):
    (tmp_path / "a.ts").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_ts(tmp_path / "a.ts")


def test_names_in_latin_1_stay_apart(tmp_path):
    path = tmp_path / "a.ts"
    text = "@univariate true\n@classLabel true gr\xfcn gr\xf6n\n@data\n1,2:gr\xfcn\n3,4:gr\xf6n\n"
    path.write_bytes(text.encode("latin-1"))
    assert read_ts(path).y.tolist() == ["gr\xfcn", "gr\xf6n"]
