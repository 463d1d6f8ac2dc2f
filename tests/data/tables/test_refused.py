"""Tables that cannot be read, or not without doubt: the error names the place and what to do."""

import dataclasses

import numpy as np
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.readers import read_parts

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")

FORECAST = {"mode": "forecast"}
DAYS = [f"2024-01-0{i}" for i in range(1, 9)]
INTEGERS = [f"{i % 3},{i * i},{i * 7}\n" for i in range(40)]
RUNS = [f"{i // 10},{i / 7},{'ab'[i % 2]}\n" for i in range(40)]
ROWS = "".join(f"{i},1,{i},2,{'ab'[i % 2]}\n" for i in range(6))
CLOCK = "".join(f"2024-01-31 10:0{i}:00,{i}.5,{'ab'[i % 2]}\n" for i in range(1, 9))
VALUES = "".join(f"{i},{i / 4}\n" for i in range(8))
STEPS = {f"v_{t}_{c}": [t, c] for t in range(6) for c in range(2)}
NOTES = {"time": [0, 1, 2, 3], "a": [1, 2, 3, 4], "note": [*"wxyz"], "label": [*"aabb"]}
SLASHES = {"date": ["01/02/2024", "03/01/2024", "02/04/2024"], "a": [1, 2, 3], "label": [*"aab"]}
MIDNIGHT = ["23:59:58", "23:59:59", "00:00:00", "00:00:01"]
HALF_HOURS = {f"{h:02d}:{m:02d}": [h + m, 1] for h in range(3) for m in (0, 30)}
SENSORS = (
    "id,time,ax,surface,age,sex,label\n"
    "1,0,0.5,grass,30,f,up\n1,1,0.7,sand,30,f,up\n"
    "2,0,0.1,sand,41,m,down\n2,1,0.2,,41,m,down\n"
)
AGES = "id,time,ax,age,label\n1,0,0.5,30,up\n1,1,0.7,31,up\n2,0,1,,down\n2,1,1,,down\n"
WORDS = "id,time,ax,word,label\n" + "".join(
    f"1,{i},{i / 7},w{i},{'ab'[i % 2]}\n" for i in range(51)
)
BREAK = "time,a\n0.1,1.5\n0.2,2.5\n{}\n" + "".join(f"{i / 2},{i % 3 / 4}\n" for i in range(1, 9))
UNNAMED = "\n".join(f"{i / 50},{i % 3 / 4}" for i in range(9))
INFLUX = (
    "#datatype,string,long,dateTime:RFC3339,double,string\n,result,table,_time,_value,room\n"
    + "".join(f",,0,2024-03-01T00:{m:02d}:00Z,{m / 8},a\n" for m in range(4))
)
M, TWO = pa.table, {"id": [1, 1], "v": [1, 2], "y": [1, 1]}
LISTS = {"v": [[1, 2], [3, 4]], "label": ["a", "b"]}
TABLES = [
    # The text of the file.
    ("", {}, ["mine.csv", "without a line"]),
    ("label,v0,v1\n", {}, ["rows", "0"]),
    (b"PK\x03\x04\0\0\0\0", {}, ["zero bytes"]),
    ("label,v0,v1\nup,1,2\ndown,3\n", {}, ["#3", "Expected 3 columns, got 2", "row"]),
    ('label,v0\n"up,1\n', {}, ["#2"]),
    ("Device,A7\nRate,50\n\ntime,a\n" + VALUES, FORECAST,
     ["first line; got 'time,a' in line 4; remove the"]),
    (BREAK.format("ERR,ERR").replace("time", "b"), FORECAST,
     ["mine.csv below the first must hold values; got 'ERR,ERR' in line 4; correct or remove"]),
    ("a,-0.5,2.5,0,ERR\n" + "".join(f"{'ab'[i % 2]},{i},{-i},{i / 2},{i}\n" for i in range(9)), {},
     ["first line", "'ERR' among numbers in line 1; correct"]),
    # One cell that decides what a column is.
    ("".join([*INTEGERS[:20], "1.5,3,4\n", *INTEGERS]), {}, ["column '1'", "1.5 in row 21"]),
    ("".join([*INTEGERS[:20], ",3,4\n", *INTEGERS]), {}, ["target column '1'", "row 21"]),
    ("run,a,state\n" + "".join([*RUNS[:20], "1.5,1,a\n", *RUNS[20:]]), {"mode": "windows"},
     ["column 'run'", "1.5 in row 22", "--id-column"]),
    # Cells that are no numbers.
    (BREAK.format("0.4,ERR"), FORECAST, ["'ERR' in row 4, column 'a' (1 such cells); correct or"]),
    (BREAK.replace(",", ";").replace(".", ",").format("0,4;ERR"), FORECAST, ["'ERR' in row 4"]),
    ("label,v0,v1\nup,1,2\ndown,3,oops\n", {}, ["'oops'", "row 3", "'v1'"]),
    ('label,v0,v1\nup,"1,5",1\ndown,"2",1\nup,3,1', {}, ["'1,5'", "a point"]),
    *(("time,a,b\n" + "".join(f'{i},"{cell.format(i)}",1\n' for i in range(8)), FORECAST,
       ["in row 2, column 'a'; write numbers with a point and"])
      for cell in ("{},5", "1,20{}.5", "1 20{}")),
    *((f"time,x,label\n2024-01-31 10:00:00,ERR,{label}\n{CLOCK}", {}, ["ERR"]) for label in "a-"),
    ("a,t,label\n1,0,x\n#N/A,1,x\n2,2,y\n", {}, ["'#N/A' in row 3, column 'a'"]),
    ("label,v0,v1\nup,1,2\ndown,,\n", {}, ["row 3", "values"]),
    # Which column is what.
    *(("Zeit [s],a\n" + "".join(f"{i / 5},{i % 7}\n" for i in [*range(30), late, *range(31, 50)]),
       FORECAST, ["'Zeit [s]' not above the row before in row 32 (1 such", "--time-column none"])
      for late in (29, 3)),
    ("label,v0,v0\nup,1,2\n", {}, ["'v0'", "twice"]),
    ("label\nup\ndown\n", {}, ["value columns"]),
    ("v0,v1,v2\n1,2.5,3\n4,5,6\n", {}, ["'v0', 'v1' and 'v2'", "--target-column"]),
    ("kind,town,v0,v1\na,b,1,1\nc,d,2,2\n", {}, ["'kind' and 'town'", "--target-column"]),
    ("kind,town,v0,v1\na,b,1,1\nc,b,2,2\n", {}, ["--target-column 'kind'"]),
    ("label,kind,v0,v1\na,b,1,1\nc,d,2,2\n", {}, ["'b'", "row 2", "'kind'"]),
    (NOTES, {}, ["--ignore 'note'"]),
    (NOTES, {"ignore": ("nota",)}, ["did you mean 'note'"]),
    (NOTES, {"target": "lable"}, ["mine.csv", "'lable'", "did you mean 'label'"]),
    (NOTES, {"id": "case"}, ["id_column in mine.csv", "'case'"]),
    ({"label": [*"aab"], "class": [*"aba"], "v0": [1, 2, 3], "v1": [1, 2, 3]}, {},
     ["mine.csv", "'label', 'class'", "--target-column"]),
    (UNNAMED, {**FORECAST, "layout": "long"}, ["must be clear; got numbers", "--time-column 1"]),
    # Exports of Influx with other columns.
    (INFLUX + "\n" + INFLUX.replace("room", "floor"), FORECAST,
     ["must all have the columns ", "floor' in line 9"]),
    # Targets and ids.
    ("label,v0,v1\nup,1,2\n,3,4\n", {}, ["'label'", "row 3"]),
    ("id,v,label\n1,1,up\n,2,up\n1,2,up", {}, ["id column 'id'", "row 3"]),
    ("id,time,v,label\n1,0,1,a\n1,1,2,a\n2,0,3,a\n2,1,4,b\n", {"labels": "sequence"},
     ["a and b (row 5, id 2)"]),
    *(({"label": [0.5, gap, 1.5], "v0": [1, 2, 3], "v1": [4, 5, 6]}, {}, ["target"])
      for gap in ("", "NaN", "NA", "?")),
    # Steps.
    ({"label": ["a", "b"], "v0": [1, 2]}, {"layout": "wide"}, ["more steps than one"]),
    ({"id": [1, 2, 3], "time": [0, 1, 2], "v": [1, 2, 3], "label": [*"aba"]}, {"layout": "long"},
     ["more steps than one"]),
    ({"label": [*"ab"], **STEPS}, {}, ["6 channels of 2 steps", "write the step last"]),
    *(("t0_x,t0_y,t1_x,t1_y,label\n" + ROWS, {"layout": layout}, ["must end in the step", "in x_0"])
      for layout in ("auto", "wide")),
    ({"day": ["2024-01-01", "2024-01-02"], **HALF_HOURS}, FORECAST,
     ["numbered columns '00:00', ", "--layout"]),
    # Times.
    ({"date": [*range(20240101, 20240131), 20240230], "a": range(31)}, FORECAST,
     ["got 20240230 in row 32, column 'date'"]),
    ({"time": [*(f"08:{i:02d}" for i in range(30)), "80:30"], "a": range(31)}, FORECAST,
     ["got '80:30' in row 32, column 'time'"]),
    ({"year": [2024] * 31, "month": [1] * 30 + [13], "day": range(1, 32), "a": range(31)}, FORECAST,
     ["column 'month'", "got 13 in row 32"]),
    ({"date": ["1", *DAYS], "a": range(9)}, FORECAST, ["got '1' in row 2, column 'date'"]),
    *(({"date": [*DAYS, f"2024-01-31 10:00:00{zone}"], "a": range(9)}, FORECAST,
       [f"'2024-01-31 10:00:00{zone}' in row 10, 1 of 9 with a time zone"])
      for zone in ("Z", "+01")),
    ({"date": [*DAYS, "31.01.2024"], "a": range(9)}, FORECAST, ["'31.01.2024' in row 10, col"]),
    ({"date": [f"01/{10 + i}/2024" for i in range(8)] + ["13/01/2024"], "a": range(9)}, FORECAST,
     ["'13/01/2024' in row 10, column"]),
    ({"Datum": [f"{10 + i}.01.2024" for i in range(8)] + ["24:00"], "a": range(9)}, FORECAST,
     ["got '24:00' in row 10, column 'Datum'"]),
    (SLASHES, {"date_format": "%Y"}, ["'%Y'", "'01/02/2024' in row 2"]),
    ({"time": MIDNIGHT, "a": [1, 2, 3, 4], "label": [*"abab"]}, {},
     ["must not pass midnight; got ", " row 4 ", "--time-column n"]),
    ({"time": [2355, 0, 5], "a": [1, 2, 3]}, {**FORECAST, "date_format": "%H%M"},
     ["must not pass midnight"]),
    # Static and categorical columns.
    (SENSORS, {"static": ("agee",)}, ["did you mean 'age'"]),
    (SENSORS, {"categorical": ("ax",)}, ["text or whole numbers; got 0.5 in column 'ax'"]),
    (SENSORS, {"static": ("label",), "target": "label"}, ["name it once"]),
    (SENSORS, {"static": ("age",), "ignore": ("age",)}, ["static column of mine.csv must be one"]),
    (SENSORS, {"static": ("sex",)},
     ["a channel with --categorical 'surface', leave it out"]),
    ("id,time,sensor,v,label\n" + "".join(f"{i},{t},{s},{t / 7},{'ud'[i % 2]}\n"
     for i in range(4) for t in range(3) for s in "ab"), {}, ["channels, make each a column"]),
    ("id,time,ax,machine,label\n" + "".join(f"{i},{t},{i / 7},{'AB'[i // 2]},{'ud'[i % 2]}\n"
     for i in range(4) for t in range(2)), {}, ["one part only, say --group-column 'machine'"]),
    (AGES, {"static": ("age",)}, ["static column 'age' ", "must not change", "recording 1"]),
    (WORDS.replace(",label", ",y"), {"categorical": ("word",)},
     ["between 1 and 50; got 51 in column 'word'"]),
    (WORDS, {}, ["'w0' in row 2, column 'word'; leave it out"]),
    # Frames in memory.
    (M(TWO | {"t": [0, 0]}), {}, ["0.0 twice", "row 2", "id_column"]),
    (M(TWO | {"t": [0, None]}), {}, ["time column 't'", "row 2"]),
    (M(TWO | {"t": ["01/02/24", "x"]}), {}, ["'x'", "row 2", "dates"]),
    (M(TWO | {"y": [None, None]}), {}, ["'y'", "row 1, id 1"]),
    (M(TWO | {"group": ["a", "b"]}), {}, ["a and b", "'group'"]),
    (M(TWO | {"id": [1.5, 1.5]}), {}, ["id column", "double"]),
    (M({"quarter": ["first", "second", "third"], "a": [1, 2, 3], "b": [4, 5, 6]}), {},
     ["'quarter'", "time_column"]),
    (pd.DataFrame([[1, 2, "a"]], columns=["v", "v", "label"]), {}, ["'v'", "twice"]),
    (pd.DataFrame({"v": [1, "x"], "label": ["a", "b"]}), {}, ["column v", "'x'"]),
    (pd.DataFrame({("a", "b"): [1]}), {}, ["levels"]),
    (pd.DataFrame({"v": [1 + 2j], "label": ["a"]}), {}, ["convert this column"]),
    (M(LISTS | {"v": [[1, 2], []]}), {}, ["without a step"]),
    (M(LISTS | {"v": [[[1, 2]], [[1]]]}), {}, ["row 2", "of 2"]),
    (M(LISTS | {"v": [["a"], ["b"]]}), {}, ["row 1", "numbers"]),
    (M(LISTS | {"w": [[1], [2]]}), {}, ["2 and 1", "row 1"]),
    (M({"v": [[1, 2]], "y": [[1]]}), {}, ["'y'", "row 1", "2 entries"]),
    (M(TWO | {"v": ["1.5", "1_000"]}), {}, ["must be numbers; got '1_000' in row 2, column 'v'"]),
]  # fmt: skip


@pytest.mark.parametrize("table, given, texts", TABLES)
def test_a_table_is_refused(read, table, given, texts):
    with pytest.raises(ValueError) as error:
        read(table, **given)
    said = str(error.value)
    assert "; got " in said and not [text for text in texts if text not in said], said


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 99 + b"PAR1", b"a,b\n1,2\n"])
def test_a_damaged_parquet_file_is_refused(read, content):
    with pytest.raises(ValueError, match=r"x\.parquet must be a sound Parquet file"):
        read(content, name="x.parquet")


def test_a_small_file_of_huge_tables_is_refused(tmp_path):
    path, zeros = tmp_path / "bomb.parquet", pa.array(np.zeros(40_000_000, np.int8))
    parquet.write_table(pa.table({"a": zeros}), path, compression="zstd")
    with pytest.raises(ValueError, match="320000000 bytes of arrays in a file of"):
        read_parts(path)


def test_columns_of_other_kinds_are_refused_or_ignored(tmp_path):
    path, made = tmp_path / "a.parquet", LISTS | {"w": [{"a": 1}, {"a": 2}]}
    parquet.write_table(pa.table(made), path)
    with pytest.raises(ValueError, match=r"struct<a: int64> in column 'w'.*--ignore 'w'"):
        read_parts(path)
    assert read_parts(path, columns=Columns(ignore=("w",)))["all"].y.tolist() == ["a", "b"]


def test_a_rising_first_column_without_a_name_is_refused_in_folders_too(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.csv").write_text(UNNAMED)
    with pytest.raises(ValueError, match=r"must be clear; got numbers .*--time-column 1"):
        read_parts(tmp_path)
    part = read_parts(tmp_path, columns=Columns(time="1"))["all"]
    assert part.channels == ("2",) and part.interval == pytest.approx(0.02)
    assert read_parts(tmp_path, columns=Columns(time="none"))["all"].x.shape == (18, 2)


V6 = {f"v{i}": [i, i + 100] for i in range(6)}
AB = {"id": [1, 1], "time": [0, 1], "a": [1, 2], "b": [3, 4]}
BARE, LESS = "1,0.5,1.5,2.5\n2,3.5,4.5,5.5\n", "0.5,1.5,2.5\n3.5,4.5,5.5\n"
WIDTH = r"must be 4, as in training; got [25]"


@pytest.mark.parametrize(
    ("table", "other", "changed", "said"),
    [
        ({"label": [*"ab"], **V6}, {f"w{i}": V6[f"v{i}"] for i in range(6)}, {}, "as in training"),
        ({"label": [*"ab"], **V6}, {f"v{i + 3}": V6[f"v{i}"] for i in range(6)}, {}, "as in trai"),
        ({"label": [*"ab"], **V6}, AB, {}, "as in training"),
        ({**AB, "label": [*"xx"]}, {"id": [1, 2], "time": [0, 1], "a": [1, 2]}, {},
         r"'a' and 'b'.* as in training"),
        # Without names the width is that of training, with or without the target.
        *((BARE, other, changed, WIDTH) for changed in ({}, {"target": "4"})
          for other in ("1,0.5\n2,3.5\n", "1,0.5,1.5,2.5,3.5\n2,3.5,4.5,5.5,6.5\n")),
        (BARE, LESS, {"id": "2"}, "keep the column of the target"),
    ],
)  # fmt: skip
def test_columns_unlike_those_of_training_are_refused(read, table, other, changed, said):
    found = dataclasses.replace(read(table).columns, **changed)
    with pytest.raises(ValueError, match=said):
        read(other, "new", columns=found)


def test_tables_without_names_may_be_shorter_than_in_training(read):
    found = read(BARE).columns
    assert read(LESS, "new", columns=found).lengths.tolist() == [3, 3]
    assert read("1,0.5,1.5\n2,3.5,4.5\n", columns=found).lengths.tolist() == [2, 2]
