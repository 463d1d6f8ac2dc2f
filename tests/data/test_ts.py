import numpy as np
import pytest

from anharmonic.data.ts import read_ts

ROWS = """
1,2,3:4,5,6:cat
# another comment
7,?:NaN,-1e2:dog
"""
CLASSES = f"""# A comment
@problemName Small
@timeStamps false
@missing true
@univariate false
@dimensions 2
@equalLength false
@classLabel true cat dog

@data{ROWS}"""
BARE = "@univariate true\n@classLabel false\n@data\n"
TARGETS = """@problemname r
@univariate true
@targetlabel true
@data
1,2:0.5
3:-2
"""


@pytest.fixture
def read(tmp_path):
    def _read(text):
        (tmp_path / "a.ts").write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_ts(tmp_path / "a.ts")

    return _read


def test_classes_ragged_and_missing(read):
    part, nan = read(CLASSES), np.nan
    np.testing.assert_array_equal(part.x, [[1, 4], [2, 5], [3, 6], [7, nan], [nan, -100]])
    assert part.x.dtype == np.float32 and part.offsets.tolist() == [0, 3, 5]
    assert part.y.tolist() == ["cat", "dog"]
    odd = CLASSES.replace("\n", "\r\n")[:-1], CLASSES.encode("utf-8-sig")
    assert all(np.array_equal(read(text).x, part.x, equal_nan=True) for text in odd)


def test_targets_and_names_in_latin_1(read):
    text = "@univariate true\n@classLabel true gr\xfcn gr\xf6n\n@data\n1,2:gr\xfcn\n3,4:gr\xf6n\n"
    assert read(text.encode("latin-1")).y.tolist() == ["gr\xfcn", "gr\xf6n"]
    part = read(TARGETS)
    assert part.y.tolist() == [0.5, -2.0] and part.y.dtype == np.float64
    assert part.x.tolist() == [[1], [2], [3]]
    bare = read(BARE + "1,2\n3,4\n")
    assert bare.y is None and len(bare) == 2


HEAD = "@timestamps true\n@classLabel true a b\n@data\n"
DAMAGED = [
    ("4,5,6:", "", r"dimensions in line 11 of a.ts must be 2, .*; got 1; check"),
    ("4,5,6", "4,5", r"lengths of the dimensions in line 11 .* equal; got \[3, 2\]; cut"),
    (":dog", ":bird", r"the class in line 13 of a.ts must be one of cat, dog; got 'bird'"),
    ("1,2", "1,x", r"line 11 of a.ts must hold numbers .* could not convert .*; correct it"),
    ("1,2,3", "1,2,", r"line 11 of a.ts must hold numbers separated by commas"),
    ("problemName", "problem", r"tag in line 2 of a.ts must be one of .*; got 'problem'"),
    ("Stamps false", "Stamps true",
     r"must hold pairs \(time,value\), as @timestamps says; got 1,2,3; cor"),
    ("te false", "te no", r"value in line 5 of a.ts must be one of 'true', 'false'; got 'no'"),
    ("dimensions 2", "dimensions two", r"line 6 of a.ts must be one whole number; got 'two'"),
    ("@data", "data", r"line 10 of a.ts must be a tag .*before @data; got 'data'"),
    (f"@data{ROWS}", "", r"a.ts must be followed by a line @data; got ..problemname"),
    (ROWS, "\n", r"sizes in a.ts .* at least one; got .*sequences': 0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((CLASSES.replace(old, new), said) for old, new, said in DAMAGED),
        (CLASSES.replace("@dimensions 2\n", "").replace("7,?:", ""),
         "dimensions in line 12 of a.ts must be 2, as in the first case; got 1"),
        (TARGETS.replace("1,2:", "1,2:3,4:"), "dimensions in line 5 of a.ts must be 1, .*; got 2"),
        *((TARGETS.replace("-2", bad), "the target in line 6 of a.ts must be a finite number; ")
          for bad in ("x", "nan", "inf", "")),
        (bytes(range(1, 256)), "line 1 of a.ts must be a tag"),
        (CLASSES.encode("utf-16"), "line 1 of a.ts must be a tag"),
        (f"@dimensions 2\n{BARE}1,2\n", "@dimensions 2"),
        *((f"{BARE}{row}\n", "must hold numbers")
          for row in ("1_000,2", "0x10,2", "1,\0", ",", "," * 2_000_000)),
        (BARE.replace("false", "true a b") + ":a\n", "must hold numbers"),
        (f"@\n{BARE}1,2\n", "must be one of .*; got ''"),
        ("", "must be followed by a line @data"),
        # Times of samples.
        (HEAD + "1,2:a", r"must hold pairs \(time,value\).*; got 1,2"),
        (HEAD + "(0,1),(1,2):(0,1),(2,2):a", "must have equal times"),
        (HEAD + "(1,1),(0,2):a", "must rise"),
        (HEAD + "(now,1),(then,2):a", "numbers or dates"),
        (HEAD + "(0,x):a", "numbers separated by commas"),
    ],
    ids=range(34),
)  # fmt: skip
def test_what_does_not_fit_is_refused(read, text, said):
    with pytest.raises(ValueError, match=said):
        read(text)


def test_times_of_samples(read):
    part = read(HEAD + "(0,1),(0.5,2),(2,?):(0,4),(0.5,5),(2,6):a\n(1,7):(1,8):b")
    assert part.y.tolist() == ["a", "b"]
    assert part.lengths.tolist() == [3, 1] and part.x[0].tolist() == [1, 4]
    assert part.elapsed.tolist() == [0, 0.5, 1.5, 0] and part.times.tolist() == [0, 1]
    even = read(HEAD + "(2024-01-01 00:00:00, 1),(2024-01-01 00:10:00, 2):a")
    assert even.elapsed is None and even.interval == 600
