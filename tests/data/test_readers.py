"""Files of sequences by their ending: .ts, .tsf, .mat, pairs, arrays named like keys."""

import hashlib

import numpy as np
import pytest

from anharmonic.data import FileTask
from anharmonic.data.columns import Columns
from anharmonic.data.readers import file_digest, read_parts
from anharmonic.data.windows import future_times


@pytest.fixture
def read(write):
    """Reads a file of this content; a .tsf has no targets."""

    def read_it(name, content, targets=True):
        return read_parts(write(name, content), targets=targets and name != "a.tsf")["all"]

    return read_it


# The classification archive's .ts.
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
LATIN = "@univariate true\n@classLabel true gr\xfcn gr\xf6n\n@data\n1,2:gr\xfcn\n3,4:gr\xf6n\n"
TARGETS = "@problemname r\n@univariate true\n@targetlabel true\n@data\n1,2:0.5\n3:-2\n"
TIMED = "@timestamps true\n@classLabel true a b\n@data\n"


def test_classes_ragged_and_missing(read):
    part, nan = read("a.ts", CLASSES), np.nan
    np.testing.assert_array_equal(part.x, [[1, 4], [2, 5], [3, 6], [7, nan], [nan, -100]])
    assert part.x.dtype == np.float32 and part.offsets.tolist() == [0, 3, 5]
    assert part.y.tolist() == ["cat", "dog"]
    odd = CLASSES.replace("\n", "\r\n")[:-1], CLASSES.encode("utf-8-sig")
    assert all(np.array_equal(read("a.ts", text).x, part.x, equal_nan=True) for text in odd)


def test_targets_and_names_in_latin_1(read):
    assert read("a.ts", LATIN.encode("latin-1")).y.tolist() == ["gr\xfcn", "gr\xf6n"]
    part = read("a.ts", TARGETS)
    assert part.y.tolist() == [0.5, -2.0] and part.y.dtype == np.float64
    assert part.x.tolist() == [[1], [2], [3]]
    bare = read("a.ts", BARE + "1,2\n3,4\n", targets=False)
    assert bare.y is None and len(bare) == 2


def test_times_of_samples(read):
    part = read("a.ts", TIMED + "(0,1),(0.5,2),(2,?):(0,4),(0.5,5),(2,6):a\n(1,7):(1,8):b")
    assert part.y.tolist() == ["a", "b"]
    assert part.lengths.tolist() == [3, 1] and part.x[0].tolist() == [1, 4]
    assert part.elapsed.tolist() == [0, 0.5, 1.5, 0] and part.times.tolist() == [0, 1]
    even = read("a.ts", TIMED + "(2024-01-01 00:00:00, 1),(2024-01-01 00:10:00, 2):a")
    assert even.elapsed is None and even.interval == 600


# The Monash archive's .tsf.
HEAD = (
    "# Tourism\n@relation tourism\n@attribute series_name string\n"
    "@attribute start_timestamp date\n@frequency monthly\n@horizon 3\n@missing true\n"
    "@equallength false\n@data\n"
)
SERIES = "T1:1979-01-31 00-00-00:1,2,?,4\nT2:1980-06-01 12-30-00:5,6.5\n"


def test_series_names_dates_and_gaps(read):
    part = read("a.tsf", HEAD + SERIES)
    assert part.ids.tolist() == ["T1", "T2"] and part.lengths.tolist() == [4, 2]
    assert np.isnan(part.x[2, 0]) and part.x[4:, 0].tolist() == [5, 6.5]
    times = ["1979-01-31T00:00:00", "1980-06-01T12:30:00"]
    assert part.times.astype("M8[s]").astype(str).tolist() == times and part.interval == 2629746
    for word, seconds in (
        ("10_minutes", 600),
        ("half_hourly", 1800),
        ("daily", 86400),
        ("?", None),
    ):
        assert read("a.tsf", HEAD.replace("monthly", word) + SERIES).interval == seconds


@pytest.mark.parametrize(
    ("word", "dates"),
    [
        ("monthly", ["1987-04-30", "1987-05-31", "1988-10-01", "1988-11-01"]),
        ("quarterly", ["2003-10-31", "2004-01-31", "2005-06-01", "2005-09-01"]),
        ("yearly", ["2078-01-31", "2079-01-31", "2080-06-01", "2081-06-01"]),
    ],
)
def test_dates_of_forecasts_count_months(read, word, dates):
    values = ",".join(map(str, range(100)))
    rows = f"T1:1979-01-31 00-00-00:{values[:-3]}\nT2:1980-06-01 12-30-00:{values}\n"
    found = future_times(read("a.tsf", HEAD.replace("monthly", word) + rows), 2)
    assert found.astype("M8[D]").astype(str).reshape(-1).tolist() == dates
    assert str(found[1, 0])[11:16] == "12:30"


def test_series_are_forecast(write):
    values = ",".join(str(i % 7) for i in range(60))
    path = write("a.tsf", HEAD + f"T1:1979-01-31 00-00-00:{values}\n")
    with pytest.raises(ValueError, match=r"must be forecast; got no horizon; .*--horizon"):
        read_parts(path)
    assert FileTask(path, horizon=2).forecast_channels == ("value",)


# MATLAB's .mat.
X = np.random.default_rng(0).random((6, 5, 2))


def cells(*content):
    made = np.empty(len(content), object)
    made[:] = content
    return made


CODES, RAGGED = np.array([1, 2, 1, 2, 1, 2]), cells(X[0], X[1][:3])
STEPS = cells(np.arange(5.0), np.arange(3.0) + 0.5)


@pytest.mark.parametrize(
    ("arrays", "lengths", "y"),
    [
        ({"x": X, "y": CODES, "fs": 100.0}, [5] * 6, [1, 2] * 3),
        ({"data": X, "labels": CODES}, [5] * 6, [1, 2] * 3),
        ({"signals": X, "target": ["up ", "down"] * 3}, [5] * 6, ["up", "down"] * 3),
        ({"x": RAGGED, "y": cells("up", "down")}, [5, 3], ["up", "down"]),
        ({"x": RAGGED, "y": STEPS}, [5, 3], [[0], [1], [2], [3], [4], [0.5], [1.5], [2.5]]),
        ({"x": RAGGED, "y": np.array([0.5, 1.25], object)}, [5, 3], [0.5, 1.25]),
    ],
)
def test_arrays_vectors_and_cells_of_matlab(read, arrays, lengths, y):
    part = read("a.mat", arrays)
    x = X[: len(lengths)][np.arange(5) < np.array(lengths)[:, None]]
    assert np.allclose(part.x, x) and part.lengths.tolist() == lengths
    assert part.y.tolist() == y and part.per_step == (y[0] == [0])
    assert len(read("a.mat", {"x": X}, targets=False)) == 6
    for signal in (np.arange(50.0), np.arange(50.0)[:, None]):  # a row and a column
        assert read("a.mat", {"x": signal}, targets=False).lengths.tolist() == [50]


# What is no file of its kind.
MATLAB_73 = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM\x89HDF\r\n\x1a\n"
CUT = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM\x0e\0\0\0\xff\0\0\0"
REFUSED = {
    "a.ts": [
        *((CLASSES.replace(old, new), said) for old, new, said in (
            ("4,5,6:", "", r"dimensions in line 11 of a.ts must be 2, .*; got 1; check"),
            ("4,5,6", "4,5", r"lengths of the dimensions in line 11 .* equal; got \[3, 2\]; cut"),
            (":dog", ":bird", r"the class in line 13 of a.ts must be one of cat, dog; got 'bird'"),
            ("1,2", "1,x", r"line 11 of a.ts must hold numbers .* could not convert .*; corr"),
            ("problemName", "problem", r"tag in line 2 of a.ts must be one of .*; got 'problem'"),
            ("Stamps false", "Stamps true", r"pairs \(time,value\), as @timestamps says; got 1,2"),
            ("te false", "te no", "value in line 5 of a.ts must be .* 'true', 'false'; got 'no'"),
            ("dimensions 2", "dimensions two", "line 6 of a.ts must be one whole number; got 'two"),
            ("@data", "data", r"line 10 of a.ts must be a tag .*before @data; got 'data'"),
            (f"@data{ROWS}", "", r"a.ts must be followed by a line @data; got ..problemname"),
            (ROWS, "\n", r"sizes in a.ts .* at least one; got .*sequences': 0"),
        )),
        (CLASSES.replace("@dimensions 2\n", "").replace("7,?:", ""),
         "dimensions in line 12 of a.ts must be 2, as in the first case; got 1"),
        *((TARGETS.replace("-2", bad), "the target in line 6 of a.ts must be a finite number; ")
          for bad in ("x", "nan", "inf", "")),
        (CLASSES.encode("utf-16"), "line 1 of a.ts must be a tag"),
        (f"@dimensions 2\n{BARE}1,2\n", "@dimensions 2"),
        *((f"{BARE}{row}\n", "must hold numbers")
          for row in ("1_000,2", "0x10,2", "1,\0", ",", "," * 2_000_000)),
        (f"@\n{BARE}1,2\n", "must be one of .*; got ''"),
        # Times of samples.
        (TIMED + "1,2:a", r"must hold pairs \(time,value\).*; got 1,2"),
        (TIMED + "(0,1),(1,2):(0,1),(2,2):a", "must have equal times"),
        (TIMED + "(1,1),(0,2):a", "must rise"),
        (TIMED + "(now,1),(then,2):a", "numbers or dates"),
        (TIMED + "(0,x):a", "numbers separated by commas"),
    ],
    "a.tsf": [
        (HEAD + "T1:1,2\n", r"line 10 of a.tsf must be 2 attributes .*; got '2 parts'"),
        (HEAD + "T1:1979:1,b\n", r"must hold numbers"),
        (HEAD + "T1:soon:1,2\n", r"date in line 10 of a.tsf must be like"),
        (HEAD.replace("@data\n", ""), "no line @data"),
        ("@oddity\n" + HEAD, "the tag in line 1"),
        (HEAD.replace(" date", " day"), "the kind in line 4"),
        (HEAD, "at least one"),
    ],
    "a.mat": [
        (MATLAB_73 + bytes(400), r"version 7 or older; got version 7.3; .*-v7'"),
        *((raw, r"a.mat must be a sound .mat file") for raw in (b"", b"text", CUT)),
        ({"ecg": X}, r"must hold .*variable x.*; got ecg \[6, 5, 2\]"),
        ({"x": cells(X[0], X[1].T), "y": cells("up", "down")}, r"must hold sequences \[T, F\]"),
        ({"x": X}, r"x and y"),
    ],
    "a.xls": [("x", "must be one of '.npz', .*'.xls'")],
    "a.arff": [("@relation x", "; got .+; ")],
}  # fmt: skip
NO_FILES = [(name, *row) for name, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("name", "content", "said"), NO_FILES, ids=range(len(NO_FILES)))
def test_what_is_no_such_file_is_refused(read, name, content, said):
    with pytest.raises(ValueError, match=said):
        read(name, content)


def test_parts_by_the_ending(write, tmp_path):
    write("mine.npz", {"x": np.zeros((3, 2)), "y": [0, 1, 0]}).rename(tmp_path / "mine.NPZ")
    assert len(read_parts(tmp_path / "mine.NPZ")["all"]) == 3
    content = (tmp_path / "mine.NPZ").read_bytes()
    assert file_digest(tmp_path / "mine.NPZ") == hashlib.sha256(content).hexdigest()
    train = write("Small_TRAIN.tsv", "1\t0.5\t1.5\n2\t3\t4\n")
    test = write("Small_TEST.tsv", "2\t5\t6\n")  # read as the other part
    for path in (train, test):
        parts = read_parts(path)
        assert {name: len(part) for name, part in parts.items()} == {"train": 2, "test": 1}
        assert parts["test"].x[:, 0].tolist() == [5, 6]
    assert list(read_parts(test, targets=False)) == ["all"]
    with pytest.raises(ValueError, match=r"a.ts .*none: .ts has none.*id_column"):
        read_parts(write("a.ts", CLASSES), columns=Columns(id="a"))


def test_arrays_with_the_names_of_keys(tmp_path):
    x, y = np.random.default_rng(0).random((6, 5)), np.arange(6) % 2
    np.save(tmp_path / "X.npy", x)
    with pytest.raises(ValueError, match=r"targets of X.npy must lie beside it; got none; save"):
        read_parts(tmp_path / "X.npy")
    alone = file_digest(tmp_path / "X.npy")
    np.save(tmp_path / "y.npy", y)
    assert file_digest(tmp_path / "X.npy") != alone
    for path in (tmp_path, tmp_path / "X.npy"):
        part = read_parts(path)["all"]
        assert part.y is not None and part.y.tolist() == y.tolist()
        assert part.lengths.tolist() == [5] * 6
    own = tmp_path / "own"
    own.mkdir()
    for name in ("train", "test"):
        np.save(own / f"x_{name}.npy", x)
        np.save(own / f"y_{name}.npy", y)
    for path in (own, own / "x_train.npy"):
        assert sorted(read_parts(path)) == ["test", "train"]
    np.save(tmp_path / "series.npy", np.arange(40.0))
    assert read_parts(tmp_path / "series.npy", targets=False)["all"].lengths.tolist() == [40]


def test_shards_are_refused_by_their_name(write, tmp_path):
    for path in (tmp_path, write("shards.json", "{}")):
        with pytest.raises(ValueError, match="got shards, which only train reads"):
            read_parts(path, targets=False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "a", "id": "a"},
        {"id": 3},
        {"layout": "tall"},
        {"windows": "yes"},
        {"header": "no"},
        {"width": "3"},
        {"width": -1},
        {"values": (1, 2)},
        {"label_pattern": "("},
        {"target": "y", "forecast": True},
    ],
)
def test_what_is_no_setting_of_columns_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){next(iter(wrong))}.*; got .+; .+"):
        Columns(**wrong)
