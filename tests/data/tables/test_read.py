"""Tables of text and in memory: what is understood, and what is said of it."""

import contextlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from anharmonic.data import FileTask
from anharmonic.data.arrays import sequences_from
from anharmonic.data.columns import Columns
from anharmonic.data.own import read_inputs
from anharmonic.data.readers import read_parts

pd = pytest.importorskip("pandas")
WIDE = "label,0,1,2\nup,1,2,3\ndown,4,5,6\n"
CSV, TSV, TXT = "a.csv", {"name": "a.tsv"}, {"name": "a.txt"}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (WIDE, CSV),
        (WIDE.replace(",", ";"), CSV),
        (WIDE.replace(",", "\t"), "a.tsv"),
        (WIDE.replace(",", "  "), "a.txt"),
        (WIDE.replace(",", "|"), "a.txt"),
        (WIDE.replace("\n", "\r\n"), CSV),
        (WIDE.replace("\n", "\r"), CSV),
        ("\n" + WIDE + "\n\n", CSV),
        (WIDE + ",,,\n,,,\n", CSV),
        (b"\xef\xbb\xbf" + WIDE.encode(), CSV),
        (WIDE.encode("utf-16"), CSV),
        ("t0,t1,t2,species\n1,2,3,up\n4,5,6,down\n", CSV),
        ("up,1,2,3\ndown,4,5,6\nup,1,2,3\n", CSV),
        (",label,v0,v1,v2\n0,up,1,2,3\n1,down,4,5,6\n", CSV),
        ('label,"0",1,2\n"up",1," 2",3\ndown,4,5.0,6e0\n', CSV),
        ("label;0;1;2\nup;1,0;2;3\ndown;4;5,0;6\n", CSV),
        ("label,0.5,1.0,1.5\nup,1,2,3\ndown,4,5,6\n", CSV),
    ],
)
def test_a_row_per_sequence_however_it_is_written(check, content, name):
    part = check(content, {"layout": "wide"}, name=name)
    assert part.x[:6, 0].tolist() == [1, 2, 3, 4, 5, 6] and part.y.tolist()[:2] == ["up", "down"]
    assert set(part.lengths) == {3}


ONES, FORECAST, WINDOWS = [1, 1, 2, 2], {"mode": "forecast"}, {"mode": "windows"}
PATH, NUMBERS = {**FORECAST, **TXT}, "".join(f"{i},{i}.5\n" for i in range(9))
NINE = [i + 0.5 for i in range(9)]
COMMAS = "Zeit;Wert\n" + "".join(f"0,0{i};{i},5\n" for i in range(9))
SENSORS = "".join(f"Sensor {1 + i // 5}\t{i % 5}\t{i}.5\n" for i in range(10))
CAMPBELL = (
    '"TOA5","CR1000","CR1000","1234","Std.31","CPU:a.CR1","55","Table1"\n'
    '"TIMESTAMP","AirTC_Avg","RH"\n"TS","Deg C","%"\n"","Avg","Smp"\n'
) + "".join(f'"2024-01-01 00:0{i}:00",{i}.5,{"NAN" if i == 3 else i}\n' for i in range(9))
GERMAN = "Datum\tUhrzeit\tT\n" + "".join(
    f"{13 + i // 6}.02.2024\t{i % 6 * 4:02d}:00:00\t{(i + 1) % 5},5\n" for i in range(9)
)  # T: a temperature
ZEROS = "".join(f"{'01 1'.split()[i // 3]};{i % 3};{i},5;0{i // 3 + 1}\n" for i in range(6))
HASHES = "id,t,a,label\np1,0,1,x\np1,1,2,x\n#2,0,3,y\n#2,1,4,y\n# a remark\n"
LINES = '"time\n[s]",force,"label\n(class)"\n0,1,"a\n# b"\n1,2,"a\n# b"\n2,3,c\n'
UNITS = "sep=,\nUnix_CAL,Accel_X,Accel_Y,\nms,m/s2,m/s2,\n" + "".join(
    f"{20 * i},{i * i}.5,{i}.5,\n" for i in range(5)
)
LONG_ROW = ",".join(f"{i}.{0:02200d}" for i in range(500))  # a megabyte is the size of a block
TEXTS = [
    # Classes and values stay as they are. Empty cells at the end end the sequence.
    ("2\t0.5\t1.5\tNaN\n-1\t2.5\t3.5\t4.5\n", TSV,
     {"x": [0.5, 1.5, 2.5, 3.5, 4.5], "lengths": [2, 3], "y": [2, -1]}),
    ("  2.0000000e+00  5.0e-1 1.5\n  1.0000000e+00 2.5 3.5\n", TXT,
     {"x": [0.5, 1.5, 2.5, 3.5], "y": [2, 1]}),
    ("0.5,1.5,0\n2.5,3.5,1\n", {}, {"x": [0.5, 1.5, 2.5, 3.5], "y": [0, 1]}),
    ("y;v0;v1\n1,125;1,5;1\n2,125;2;2\n", {}, {"x": [1.5, 1, 2, 2], "y": [1.125, 2.125]}),
    ("label,v0,v1\n1.0,1,1\n3,2,2\n", {}, {"x": ONES, "y": [1, 3]}),
    ("state,v0,v1\n1.0,1,1\n3,2,2\n", {}, {"x": ONES, "y": [1, 3]}),  # one 1.0 makes no values
    ("label,v0,v1\n1.0,1,1\n3.0,2,2\n", {}, {"x": ONES, "y": [1.0, 3.0]}),
    ("label,v0,v1\n01,1,1\n1,2,2\n", {}, {"x": ONES, "y": ["01", "1"]}),
    ('label,v0,v1\n"a, b",1,1\nTrue,2,2\n"q""uote",3,3\n', {}, {"y": ["a, b", "True", 'q"uote']}),
    ("label,v0,v1\nNA,1,1\nGünther,2,2\n".encode("cp1252"), {}, {"y": ["NA", "Günther"]}),
    ("id;t;v;label\n" + ZEROS, {}, {"ids": ["01", "1"], "y": ["01", "02"]}),
    *((LINES.replace("\n", end), {}, {"time": "time [s]", "target": "label (class)",
                                      "x": [1, 2, 3], "y": [["a # b"], ["a # b"], ["c"]]})
      for end in ("\n", "\r\n")),
    # Gaps between numbers are no class.
    *((f"time,a,label\n0,0,1\n1,1,2\n2,2,{gap}\n3,3,2\n", {},
       {"kind": "i", "known_y": [[1], [2], [2]]}) for gap in ("", "NaN", "NA", "?")),
    *((f"time,a,y\n0,0,0.5\n1,1,{gap}\n2,2,2\n", {}, {"kind": "f", "known_y": [[0.5], [2]]})
      for gap in ("", "NaN", "NA", "?")),
    (HASHES.replace("#2", '"#2"'), {}, {"ids": ["p1", "#2"], "x": [1, 2, 3, 4]}),
    # Series.
    (COMMAS, PATH, {"time": "Zeit", "x": NINE}),
    (COMMAS + ";\n; \n\n", FORECAST, {"time": "Zeit", "x": NINE}),
    ("t u v\n" + "".join(f"0,{i} {i},5 2,0\n" for i in range(9)), PATH, {"time": "t", "x": NINE}),
    ("sensor name\ttime\tv\n" + SENSORS, FORECAST | TSV,
     {"time": "time", "x": [*NINE, 9.5], "ids": ["Sensor 1", "Sensor 2"]}),
    ('time,pipe,a\n0,5",1\n# 6"\n1,5",2\n', FORECAST, {"time": "time", "x": [1, 2]}),
    (CAMPBELL, FORECAST | {"name": "a.dat.csv"}, {"time": "TIMESTAMP", "x": [
        [a, np.nan if a == 3.5 else a - 0.5] for a in NINE], "channels": ("AirTC_Avg", "RH")}),
    (GERMAN, PATH, {"time": "Datum Uhrzeit", "x": [(i + 1) % 5 + 0.5 for i in range(9)]}),
    ("# Device,A7\ntime,a\n" + NUMBERS, FORECAST, {"time": "time", "x": NINE}),
    ("1706700000.00\n4.000000\n" + "".join(f"{i}.5\n" for i in range(9)), FORECAST,
     {"time": None, "x": NINE}),  # the start and the rate of Empatica
    (UNITS, FORECAST, {"channels": ("Unix_CAL", "Accel_X", "Accel_Y"),
                       "x": [[20 * i, i * i + 0.5, i + 0.5] for i in range(5)]}),
    # Numbers.
    ("label,v0,v1,v2\nup,,?,3\ndown,nan,5,NA\n", {}, {"x": [np.nan, np.nan, 3, np.nan, 5]}),
    ("label,v0,v1\nup,1e300,0\ndown,123456789012345678901234567890,0\n", {},
     {"x": [np.inf, 0, 1.2345678901234568e29, 0]}),
    (f"label,{','.join(f'v{i}' for i in range(500))}\nup,{LONG_ROW}\n", {}, {"lengths": [500]}),
    ({"label": [*"ab"], **{f"ch{t}_{c}": [t, c] for t in range(6) for c in range(2)}}, {},
     {"channels": tuple(f"ch{t}" for t in range(6)), "lengths": [2, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "how", "right"), TEXTS)
def test_texts(check, table, how, right):
    part = check(table, right, **how)
    if "y" in right:
        assert part.y.dtype.kind == np.array(right["y"]).dtype.kind


# Frames in memory, lists in cells included.
INDEX = pd.MultiIndex.from_tuples([(1, 0), (1, 1), (2, 0)], names=["id", "time"])
KIND = pd.Categorical(["x", "y", "x", "x"])
HALF = pa.array([0.5, 1, 2], pa.float16())
WORDS = pa.array(["a", "b"], pa.string_view())
M, FOUR = pa.table, {"v": [1, 2, 3, 4]}
ROWS = {"id": [*"babaa"], "t": [1, 5, 0, 4, 6], "v": [11, 25, 10, 24, 26.0]}
DATED = {"unique_id": ["p", "p", "q"], "ds": ["2024-01-01", "2024-01-02", "2024-01-01"]}
GOODS, HALVES = {"label": [0, 0, 1, 1]}, {"v": [1.5, 2.5, 3.5, 4.5]}
LISTS = {"audio": [[1, 2, None], [4]], "speed": [[[1, 2], [3, 4], [5, 6]], [[7, 8]]]}
LOST = [*range(30), *range(14), *range(15, 30)]
FRAMES = {
    "wide": (pd.DataFrame({0: [0.0, 3], 1: [1.0, 4], "label": pd.Categorical(["up", "down"])}), {},
             {"x": [0, 1, 3, 4], "y": ["up", "down"]}),
    "levels of the index that have names are columns": (
        pd.DataFrame({"a": [1, 2, 3], "b": [True, False, None], "y": [0.5, 0.5, 1]}, INDEX), {},
        {"x": [[1, 1], [2, 0], [3, np.nan]], "y": [0.5, 1]}),
    "a selection of rows is not mistaken for its index": (
        pd.DataFrame({"label": [*"aba"], "v0": [1, 2, 3], "v1": [4, 5, 6]})[1:], {},
        {"x": [2, 5, 3, 6], "y": ["b", "a"]}),
    "categories": (
        pd.DataFrame({"id": [1, 1, 2, 2], "ax": [1, 2, 3, 4], "kind": KIND, "label": [*"aabb"]}),
        {"categorical": ("kind",)}, {"x": [[1, 1, 0], [2, 0, 1], [3, 1, 0], [4, 1, 0]],
                                     "y": ["a", "b"]}),
    "lists in cells": (M({**LISTS, "file": ["a.wav", "b.wav"], "label": ["x", "y"]}), {},
                       {"channels": ("audio", "speed_0", "speed_1"), "lengths": [3, 1],
                        "layout": "nested", "y": ["x", "y"],
                        "x": [[1, 1, 2], [2, 3, 4], [np.nan, 5, 6], [4, 7, 8]]}),
    "a missing row makes no times of day of numbers": (
        M({"id": [1] * 30 + [2] * 29, "time": LOST, "v": [1.5] * 59,
           "label": [0] * 30 + [1] * 29}), {},
        {"elapsed": [0, *[1] * 29, 0, *[1] * 13, 2, *[1] * 14]}),
    "a list of targets is one per step": (
        M({"v": [[1, 2], [3]], "y": [[0.1, 0.2], [0.3]]}), {},
        {"x": [1, 2, 3], "y": [[0.1], [0.2], [0.3]]}),
    "databases write whole numbers as decimals": (
        M({"v": [[1, 2], [3]], "label": pa.array([3, 4], pa.decimal128(38, 0))}), {},
        {"x": [1, 2, 3], "y": [3, 4], "kind": "i"}),
    "extension types": (
        M({"v0": HALF, "v1": HALF, "label": pa.DictionaryArray.from_arrays([1, 0, 1], WORDS)}), {},
        {"x": [0.5, 0.5, 1, 1, 2, 2], "y": ["b", "a", "b"]}),
    "recordings in the order their ids come, sorted by time": (
        M({**ROWS, "subject": [*"pqpqq"], "label": [*"xyxyy"]}), {},
        {"lengths": [2, 3], "x": [10, 11, 24, 25, 26], "y": ["x", "y"], "per": "sequence",
         "elapsed": None, "interval": 1.0, "ids": ["b", "a"], "groups": ["p", "q"],
         "times": [0, 4], "channels": ("v",)}),
    "a target that changes is one per step": (
        M({"id": [1, 1, 2, 2], **FOUR, "label": [*"abaa"]}), {},
        {"y": [["a"], ["b"], ["a"], ["a"]], "per": "step", "x": FOUR["v"]}),
    "a target that is given once": (
        M({"id": [1, 1, 2, 2], **FOUR, "label": [None, "a", "b", None]}), {},
        {"y": ["a", "b"], "per": "sequence", "x": FOUR["v"]}),
    "labels to be cut": (M({**FOUR, "label": [*"xxxy"]}), WINDOWS,
                         {"y": [["x"], ["x"], ["x"], ["y"]], "per": "step"}),
    "without times none are repeated": (
        M({**FOUR, "y": [0.5, 1.5, 0.75, 1]}), {"layout": "long", "duplicates": "mean"},
        {"y": [[0.5], [1.5], [0.75], [1]], "per": "step", "x": FOUR["v"]}),
    "numbered columns are steps of whole rows even to be cut": (
        M({"v0": [1, 2], "v1": [3, 4], "v2": [5, 6], "label": ["x", "y"]}), WINDOWS,
        {"lengths": [3, 3]}),
    "what is forecast is no target by its name": (
        M({**DATED, "y": [1.5, 2.5, 3.5], "label": ["a", "a", "b"]}), FORECAST,
        {"channels": ("y",), "y": None, "x": [1.5, 2.5, 3.5]}),
    "a gap among labels makes them no channel of a forecast": (
        M({"ds": [1, 2, 3, 4], **HALVES, "anomaly": [0, 1, None, 0]}), FORECAST,
        {"channels": ("v",), "target": "anomaly"}),
    "blanks around a name make no other series or group": (
        M({"id": ["p", "p ", "q", "q"], "subject": ["s", "s", " s", "s"], **HALVES, **GOODS}), {},
        {"ids": ["p", "q"], "groups": ["s", "s"]}),
    "an id of something names the group beside an id": (
        M({"id": [1, 1, 2, 2], "ward_id": ["a", "a", "b", "b"], **HALVES, **GOODS}), {},
        {"groups": ["a", "b"], "group": "ward_id"}),
    "an id of something names the group of whole rows": (
        M({"site_id": [1, 1, 2], "s0": [1, 2, 3], "s1": [1, 2, 3], "s2": [1, 2, 3],
           "label": [0, 1, 0]}), {}, {"groups": [1, 1, 2], "lengths": [3, 3, 3]}),
}  # fmt: skip


@pytest.mark.parametrize(("table", "how", "right"), FRAMES.values(), ids=FRAMES)
def test_frames(check, table, how, right):
    check(table, right, **how)


@pytest.mark.parametrize("name", ["x.csv", "label=7/x.parquet"])
def test_what_pandas_writes_with_its_index_comes_back(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)  # whose name is no column
    frame = pd.DataFrame({"v0": [1.0, 2.0], "v1": [3.0, 4.0], "label": ["a", "b"]}, index=[3, 4])
    getattr(frame, f"to_{path.suffix[1:]}")(path)
    part = read_parts(path)["all"]
    assert part.x[:, 0].tolist() == [1, 3, 2, 4] and part.y.tolist() == ["a", "b"]


def test_a_hugging_face_data_set():
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features(x=datasets.Sequence(datasets.Value("float32")), label=names)
    data = datasets.Dataset.from_dict({"x": [[1, 2], [3]], "label": [1, 0]}, features=features)
    part = sequences_from(data)
    assert part.y.tolist() == ["yes", "no"] and part.x[:, 0].tolist() == [1, 2, 3]
    assert sequences_from(data.select([1])).y.tolist() == ["no"]
    with pytest.raises(ValueError, match=r"save_npz.*train"):
        sequences_from(datasets.DatasetDict({"train": data}))
    with pytest.raises(ValueError, match="split that is in memory"):
        sequences_from(data.to_iterable_dataset())


# New tables, read by the columns of training.
V6 = {f"v{i}": [i, i + 100] for i in range(6)}
TIMED = {"time": [0, 1, 2, 3], "a": [1, 2, 3, 4], "label": [*"xxyy"]}
NOTES = {**TIMED, "note": [*"wxyz"]}
CODES = {"time": [0, 1], "a": [1, 2], "code": ["01", "02"]}


@pytest.mark.parametrize(
    ("table", "how", "new", "x"),
    [
        # The target may lack; without names it is recognised by the width.
        (WIDE, {}, "0,1,2\n1,2,3\n4,5,6\n", [1, 2, 3, 4, 5, 6]),
        ("2\t0.5\t1.5\n1\t2.5\t3.5\n", TSV, "0.5\t1.5\n2.5\t3.5\n", [0.5, 1.5, 2.5, 3.5]),
        # Steps keep their names, and may be fewer.
        ({"label": [*"ab"], **V6}, {}, dict(reversed(V6.items())),
         [*range(6), *range(100, 106)]),
        ({"label": [*"ab"], **V6}, {}, {"v0": [0], "v1": [1], "v2": [2]}, [0, 1, 2]),
        ({"id": [1, 1], "a": [1, 2], "b": [3, 4], "label": [*"xx"]}, {},
         {"b": [30, 40], "extra": ["?", "?"], "a": [10, 20], "id": [1, 2]}, [[10, 30], [20, 40]]),
        # What was left out may have another name.
        (NOTES, {"ignore": ("note",)}, {**TIMED, "other": [*"wxyz"]}, [1, 2, 3, 4]),
        # Codes keep zeros in front.
        ({**TIMED, "code": ["01", "2A", "02", "01"]}, {"categorical": ("code",)}, CODES,
         [[1, 1, 0, 0], [2, 0, 1, 0]]),
        ({**TIMED, "code": ["01", "1", "2", "1"]}, {"categorical": ("code",)},
         {**CODES, "code": ["1", "01"]}, [[1, 0, 1, 0], [2, 1, 0, 0]]),
    ],
)  # fmt: skip
def test_new_tables(read, table, how, new, x):
    found, x = read(table, **how).columns, np.float32(x)
    part = read(new, "new", how.get("name", "mine.csv"), found)
    np.testing.assert_array_equal(part.x if x.ndim == 2 else part.x[:, 0], x)
    assert part.y is None


def test_what_is_left_out_or_chosen_is_kept_and_described(read):
    found = read(NOTES, ignore=("note",), duplicates="first").columns
    assert "left out 'note'" in found.describe() and found.ignore == ("note",)
    assert Columns.from_dict(found.to_dict()) == found
    old = {k: v for k, v in found.to_dict().items() if k not in ("duplicates", "labels")}
    assert Columns.from_dict(old) == replace(found, duplicates="refuse")
    with pytest.raises(ValueError, match="groop"):
        Columns.from_dict({"groop": "x"})
    assert "time column ''" in read(",a,label\n0,1,x\n2,2,x\n1,3,y\n").columns.describe()


ANNOTATIONS = "#group,false,false,true,false,false,true\n#datatype,string,long,dateTime:RFC3339,"
ANNOTATIONS += "dateTime:RFC3339,double,string\n#default,_result,,,,,\n"
INFLUX = ",result,table,_start,_time,_value,room\n"
DAY = "2024-03-01T00"
FIRST = "".join(f",,0,{DAY}:00:00Z,{DAY}:{m:02d}:00Z,{m / 8},a\n" for m in range(8))
SECOND = "".join(f",,1,{DAY}:00:00Z,{DAY}:{m:02d}:00Z,{1 + m / 8},b\n" for m in range(8))
ANNOTATED = f"{ANNOTATIONS}{INFLUX}{FIRST}\n{ANNOTATIONS}{INFLUX}{SECOND}"


@pytest.mark.parametrize("text", [ANNOTATED, INFLUX + FIRST + SECOND])
def test_influx_exports_are_read_without_their_bookkeeping(read, check, recwarn, text):
    x = [*np.arange(8) / 8, *(1 + np.arange(8) / 8)]
    right = {"channels": ("_value",), "ids": ["a", "b"], "x": x}
    check(text.replace("\n", "\r\n"), right, "forecast")
    assert not recwarn.list
    fields = text.replace("room", "_field")
    with pytest.raises(ValueError, match=r"2 fields in one column, '_value'; .* pivot\("):
        read(fields, "forecast")
    check(fields, right, "forecast", id="_field")


@pytest.mark.parametrize(
    ("name", "text", "came"),
    [
        ("a.csv", "Zeit;U;F;label\n0,1;990;0,5;a\n0,2;1.010;1,5;a\n0,3;1.020;2,5;b\n", "'1.010'"),
        ("a.tsv", "time\tU\tlabel\n0.1\t990\ta\n0.2\t1,010\ta\n0.3\t1,020\tb\n", "'1,010'"),
        ("c.csv", "Zeit;U;label\n1;990;a\n2;1.010;a\n3;1.020;b\n", "'1.010' beside '990'"),
    ],
)
def test_marks_that_may_separate_thousands_are_refused(read, name, text, came):
    with pytest.raises(ValueError, match=f"{came}.*thousands.*decimal points"):
        read(text, name=name)
    assert read(text.replace("1.0", "0.0").replace("1,0", "0,0"), name=name).x[1, 0] < 1


# Names and units again among the rows, and rows that begin as remarks do.
NAMES, EIGHTY = "time,v\ns,mV\n", [f"{i},{i / 4}\n" for i in range(80)]


@pytest.mark.parametrize(
    ("text", "how", "said", "x"),
    [
        *(("".join([NAMES, *EIGHTY[:at], NAMES, *EIGHTY[at:]]), FORECAST,
           rf"first in line {at + 3}\. .* left out \(2\)", np.arange(80) / 4) for at in (5, 70)),
        (HASHES, {}, "but 2 of them have as many cells .* in line 4", [1, 2]),
    ],
)  # fmt: skip
def test_rows_that_are_left_out_give_a_warning(read, text, how, said, x):
    with pytest.warns(UserWarning, match=said):
        part = read(text, **how)
    assert part.x[:, 0].tolist() == list(x) and len(part.channels) == 1


def test_times_that_go_back_as_after_a_restart_give_a_warning(read, recwarn):
    first, again = ("".join(f"{i}.{part},{i}\n" for i in range(30)) for part in (5, 25))
    read(f"time,a\n{first}{again}", "forecast")
    (said,) = recwarn
    assert "Times of mine.csv go back, first in row 32 (1 such rows)." in str(said.message)
    late = "".join(f"{i},1\n" for i in range(40, 80))
    falling = "\n".join(first.split()[::-1])
    for sorted_at_last in (late + first, f"{first}{late}20,1\n", falling):
        assert read(f"time,a\n{sorted_at_last}", "forecast").clock[-1] > 29
    assert len(recwarn) == 1


FIVES = {"id": np.repeat([1, 2, 3], 5), "v": np.arange(15) / 2, "label": [0] * 10 + [1] * 5}


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (range(0, 5000, 1000), "1 of 3 recordings .*usual 1: 1000 in the one from row 11"),
        ([0, 1030, 1960, 3020, 3970], "in the one from row 11"),  # milliseconds, shaken
        ([0, 9, 10, 50, 99], None),  # irregular, not of another rate
    ],
)
def test_a_recording_with_another_step_gives_a_warning(last, said):
    with pytest.warns(UserWarning, match=said) if said else contextlib.nullcontext():
        sequences_from(M({**FIVES, "time": [*range(5), *range(5), *last]}))


# Static and categorical columns as inputs.
LONG = (
    "id,time,ax,surface,age,sex,label\n"
    "1,0,0.5,grass,30,f,up\n1,1,0.75,sand,30,f,up\n"
    "2,0,0.125,sand,41,m,down\n2,1,0.25,,41,m,down\n"
)
SITED = "label,age,sex,site,v0,v1\na,20,f,0,0,1\nb,21,m,1,1,2\na,22,f,2,2,3\n"
ONCE = "id,time,ax,age,label\n1,0,0.5,30,up\n1,1,0.7,,up\n2,0,1,,down\n2,1,1,,down\n"
BESIDE = ("age", "sex=f", "sex=m", "surface=grass", "surface=sand")
INPUTS = {"static": ("age", "sex"), "categorical": ("surface",)}
SITES = {"static": ("age", "sex"), "categorical": ("site",), "layout": "wide"}


@pytest.mark.parametrize(
    ("table", "given", "right"),
    [
        (LONG, INPUTS, {"channels": ("ax", *BESIDE), "target": "label", "x": [
            [0.5, 30, 1, 0, 1, 0], [0.75, 30, 1, 0, 0, 1],
            [0.125, 41, 0, 1, 0, 1], [0.25, 41, 0, 1, 0, 0]]}),
        (SITED, SITES, {
            "channels": ("value", "age", "sex=f", "sex=m", "site=0", "site=1", "site=2"),
            "x": [[i + k, 20 + i, (i + 1) % 2, i % 2, i == 0, i == 1, i == 2]
                  for i in range(3) for k in range(2)]}),
        # One value is given once or in every row.
        (ONCE, {"static": ("age",)}, {"channels": ("ax", "age"),
                                      "x": [[0.5, 30], [0.7, 30], [1, np.nan], [1, np.nan]]}),
    ],
)  # fmt: skip
def test_values_beside_the_steps(check, table, given, right):
    check(table, right, **given)


def test_new_tables_are_coded_as_in_training(read):
    found = read(LONG, **INPUTS).columns
    assert found.beside == BESIDE and Columns.from_dict(found.to_dict()) == found
    said = found.describe()
    assert "one value per recording 'age'" in said and "categories 'f' and 'm' of 'sex'" in said
    new = "surface,id,time,ax,sex,age\nsand,9,0,1,m,20\nsnow,9,1,2,m,20\n"
    with pytest.warns(UserWarning, match=r"'surface' of mine.csv holds 'snow', which training did"):
        coded = read(new, "new", columns=found)
    assert coded.x.tolist() == [[1, 20, 0, 1, 0, 1], [2, 20, 0, 1, 0, 0]]
    with pytest.raises(ValueError, match=r"static column 'age', as in training; .*; add it"):
        read("surface,id,time,ax,sex\nsand,9,0,1,m\n", "new", columns=found)


def test_forecasts_leave_inputs_alone(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"2024-01-{i:02d},{s},{i},{'xy'[i % 2]},3" for s in "ab" for i in range(1, 26)]
    path.write_text("date,shop,sales,weather,size\n" + "\n".join(rows))
    task = FileTask(path, horizon=2, window=4, static=["size"], categorical=["weather"])
    assert task.forecast_channels == ("sales",) and (task.input_size, task.output_size) == (4, 2)
    inputs = read_inputs(path, task.preprocessing, task.columns)
    assert inputs.dataset.x.shape == (2, 4, 4)


def test_inputs_beside_sounds(tmp_path):
    labels = tmp_path / "labels.csv"
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.arange(4.0))
    labels.write_text("file,label,age,sex\na,up,30,f\nb,down,41,m\n")
    part = read_parts(tmp_path, columns=Columns(static=("age", "sex")))["all"]
    assert part.channels == ("value", "age", "sex=f", "sex=m")
    assert part.x[4].tolist() == [0, 41, 0, 1] and part.y.tolist() == ["up", "down"]
    labels.write_text("file,sex,age\nb,x,41\na,f,30\n")
    with pytest.warns(UserWarning, match="'x'"):
        new = read_parts(tmp_path, targets=False, columns=part.columns)["all"]
    assert new.x[0].tolist() == [0, 30, 1, 0] and new.x[4].tolist() == [0, 41, 0, 0]
    labels.write_text("file,sex,age\nb,m,\na,f,\n")
    new = read_parts(tmp_path, targets=False, columns=part.columns)["all"]
    assert np.isnan(new.x[:, 1]).all() and new.x[4, [0, 2, 3]].tolist() == [0, 0, 1]
    labels.unlink()
    with pytest.raises(ValueError, match=r"labels.csv of .* must have the column 'age'"):
        read_parts(tmp_path, targets=False, columns=part.columns)
