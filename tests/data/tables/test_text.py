"""CSV, TSV and text with blanks: what is understood."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data.readers import read_parts

WIDE = "label,0,1,2\nup,1,2,3\ndown,4,5,6\n"


def of(part):
    """Sequences as lists."""
    return [x.tolist() for x in np.split(part.x.squeeze(1), part.offsets[1:-1])]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (WIDE, "a.csv"),
        (WIDE.replace(",", ";"), "a.csv"),
        (WIDE.replace(",", "\t"), "a.tsv"),
        (WIDE.replace(",", "  "), "a.txt"),
        (WIDE.replace(",", "|"), "a.txt"),
        (WIDE.replace("\n", "\r\n"), "a.csv"),
        (WIDE.replace("\n", "\r"), "a.csv"),
        ("\n" + WIDE + "\n\n", "a.csv"),
        (b"\xef\xbb\xbf" + WIDE.encode(), "a.csv"),
        (WIDE.encode("utf-16"), "a.csv"),
        ("t0,t1,t2,species\n1,2,3,up\n4,5,6,down\n", "a.csv"),
        ("up,1,2,3\ndown,4,5,6\nup,1,2,3\n", "a.csv"),
        (",label,v0,v1,v2\n0,up,1,2,3\n1,down,4,5,6\n", "a.csv"),
        ('label,"0",1,2\n"up",1," 2",3\ndown,4,5.0,6e0\n', "a.csv"),
        ("label;0;1;2\nup;1,0;2;3\ndown;4;5,0;6\n", "a.csv"),
        ("label,0.5,1.0,1.5\nup,1,2,3\ndown,4,5,6\n", "a.csv"),
    ],
)
def test_a_row_per_sequence_however_it_is_written(read, content, name):
    part = read(content, name=name)
    assert of(part)[:2] == [[1, 2, 3], [4, 5, 6]]
    assert part.y.tolist()[:2] == ["up", "down"] and part.columns.layout == "wide"


@pytest.mark.parametrize(
    ("content", "name", "x", "y"),
    [
        # Empty cells at the end end the sequence.
        ("2\t0.5\t1.5\tNaN\n-1\t2.5\t3.5\t4.5\n", "a.tsv", [[0.5, 1.5], [2.5, 3.5, 4.5]], [2, -1]),
        ("  2.0000000e+00  5.0e-1 1.5\n  1.0000000e+00 2.5 3.5\n", "a.txt",
         [[0.5, 1.5], [2.5, 3.5]], [2, 1]),
        ("0.5,1.5,0\n2.5,3.5,1\n", "a.csv", [[0.5, 1.5], [2.5, 3.5]], [0, 1]),
        ("label,v0,v1\n3,1,1\n4,2,2\n", "a.csv", [[1, 1], [2, 2]], [3, 4]),
        ("y,v0,v1\n0.5,1,1\n4,2,2\n", "a.csv", [[1, 1], [2, 2]], [0.5, 4.0]),
        ("y;v0;v1\n1,125;1,5;1\n2,125;2;2\n", "a.csv", [[1.5, 1], [2, 2]], [1.125, 2.125]),
        *((f"{name},v0,v1\n1.0,1,1\n3,2,2\n", "a.csv", [[1, 1], [2, 2]], [1, 3])
          for name in ("label", "state")),  # one 1.0 makes no values of classes
        ("label,v0,v1\n1.0,1,1\n3.0,2,2\n", "a.csv", [[1, 1], [2, 2]], [1.0, 3.0]),
        ("label,v0,v1\n01,1,1\n1,2,2\n", "a.csv", [[1, 1], [2, 2]], ["01", "1"]),
        ('label,v0,v1\n"a, b",1,1\nTrue,2,2\n', "a.csv", [[1, 1], [2, 2]], ["a, b", "True"]),
        ("label,v0,v1\nNA,1,1\nGünther,2,2\n".encode("cp1252"), "a.csv", [[1, 1], [2, 2]],
         ["NA", "Günther"]),
    ],
)  # fmt: skip
def test_classes_and_values_stay_as_they_are(read, content, name, x, y):
    part = read(content, name=name)
    assert of(part) == x and part.y.tolist() == y
    assert part.y.dtype.kind == ("U" if isinstance(y[0], str) else np.array(y).dtype.kind)


ROWS = [f"0,0{i};{i},5\n" for i in range(9)]
SENSORS = "".join(f"Sensor {1 + i // 5}\t{i % 5}\t{i}.5\n" for i in range(10))
CAMPBELL = (
    '"TOA5","CR1000","CR1000","1234","Std.31","CPU:a.CR1","55","Table1"\n'
    '"TIMESTAMP","AirTC_Avg","RH"\n"TS","Deg C","%"\n"","Avg","Smp"\n'
) + "".join(f'"2024-01-01 00:0{i}:00",{i}.5,{"NAN" if i == 3 else i}\n' for i in range(9))
GERMAN = "Datum\tUhrzeit\tT\n" + "".join(
    f"{13 + i // 6}.02.2024\t{i % 6 * 4:02d}:00:00\t{(i + 1) % 5},5\n" for i in range(9)
)
HALVES = [i + 0.5 for i in range(9)]


@pytest.mark.parametrize(
    ("text", "name", "time", "x"),
    [
        ("Zeit;Wert\n" + "".join(ROWS), "a.txt", "Zeit", HALVES),
        ("Zeit;Wert\n".replace(";", "\t") + "".join(ROWS).replace(";", "\t"), "a.txt", "Zeit",
         HALVES),
        ("t u v\n" + "".join(f"0,{i} {i},5 2,0\n" for i in range(9)), "a.txt", "t", HALVES),
        ("sensor name\ttime\tv\n" + SENSORS, "a.tsv", "time", [*HALVES, 9.5]),
        ("id,time,v\n" + "".join(f"{i // 3:02d},{i % 3},{i}.5\n" for i in range(9)), "a.csv",
         "time", HALVES),
        ('time,pipe,a\n0,5",1\n# 6"\n1,5",2\n', "a.csv", "time", [1, 2]),
        (CAMPBELL, "a.dat.csv", "TIMESTAMP", HALVES),
        (GERMAN, "a.txt", "Datum Uhrzeit", [(i + 1) % 5 + 0.5 for i in range(9)]),  # T: temperature
        ("# Device,A7\ntime,a\n" + "".join(f"{i},{i}.5\n" for i in range(9)), "a.csv", "time",
         HALVES),
        ("1706700000.00\n4.000000\n" + "".join(f"{i}.5\n" for i in range(9)), "a.csv", None,
         HALVES),  # the start and the rate of Empatica
    ],
)  # fmt: skip
def test_series(read, text, name, time, x):
    part = read(text, "forecast", name)
    assert part.columns.time == time and part.x[:, 0].tolist() == x
    again = read(text, "new", name, part.columns)
    assert np.array_equal(again.x, part.x, equal_nan=True) and again.interval == part.interval
    if text == CAMPBELL:
        assert part.channels == ("AirTC_Avg", "RH") and np.isnan(part.x[3, 1])
    if text == SENSORS:
        assert part.ids.tolist() == ["Sensor 1", "Sensor 2"]


def test_names_with_zeros_in_front_stay_as_they_are_beside_decimal_commas(read):
    rows = "".join(f"{'01 1'.split()[i // 3]};{i % 3};{i},5;0{i // 3 + 1}\n" for i in range(6))
    part = read("id;t;v;label\n" + rows)
    assert part.ids.tolist() == ["01", "1"] and part.y.tolist() == ["01", "02"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_cells_of_several_lines(read, end):
    text = '"time\n[s]",force,"label\n(class)"\n0,1,"a\n# b"\n1,2,"a\n# b"\n2,3,c\n'
    part = read(text.replace("\n", end))
    assert part.columns.time == "time [s]" and part.columns.target == "label (class)"
    assert part.x[:, 0].tolist() == [1, 2, 3] and part.y[:, 0].tolist() == ["a # b", "a # b", "c"]


def test_the_separator_a_spreadsheet_names_and_units_below_names_without_a_role(read):
    units = "sep=,\nUnix_CAL,Accel_X,Accel_Y,\nms,m/s2,m/s2,\n"
    part = read(units + "".join(f"{20 * i},{i * i}.5,{i}.5,\n" for i in range(5)), "forecast")
    assert part.channels == ("Unix_CAL", "Accel_X", "Accel_Y")
    assert part.x[1].tolist() == [20, 1.5, 1.5]


def test_gaps_and_numbers_beyond_the_type(read):
    x = read("label,v0,v1,v2\nup,,?,3\ndown,nan,5,NA\n").x.squeeze(1)
    np.testing.assert_array_equal(x, np.array([np.nan, np.nan, 3, np.nan, 5], np.float32))
    part = read("label,v0,v1\nup,1e300,0\ndown,123456789012345678901234567890,0\n")
    assert np.isinf(part.x[0, 0]) and part.x[2, 0] == np.float32(1.2345678901234568e29)


def test_columns_of_two_names_are_two_channels(read):
    part = read("label,a_0,a_1,b_0,b_1\nup,1,2,3,4\ndown,5,6,7,8\n")
    assert part.channels == ("a", "b") and part.x.tolist() == [[1, 3], [2, 4], [5, 7], [6, 8]]


@pytest.mark.parametrize(
    ("text", "bare", "name"),
    [
        (WIDE, "0,1,2\n1,2,3\n4,5,6\n", "a.csv"),
        ("2\t0.5\t1.5\n1\t2.5\t3.5\n", "0.5\t1.5\n2.5\t3.5\n", "a.tsv"),  # recognised by its width
    ],
)
def test_the_target_may_lack_where_only_inputs_are_wanted(read, text, bare, name):
    found = read(text, name=name)
    for one in (text, bare):
        part = read(one, "new", name, found.columns)
        assert part.y is None and of(part) == of(found)


def test_a_row_may_be_long(read):
    steps = 500  # more than a megabyte, the size of a block
    row = ",".join(f"{i}.{0:02200d}" for i in range(steps))
    part = read(f"label,{','.join(f'v{i}' for i in range(steps))}\nup,{row}\n")
    assert part.lengths.tolist() == [steps]


def test_a_pair_is_read_alike(tmp_path):
    for name, rows in (("G_TRAIN.tsv", "1\t0.5\t1.5\n2\t3\t4\n"), ("G_TEST.tsv", "2\t3\t4\n")):
        (tmp_path / name).write_text(rows)
    parts = read_parts(tmp_path / "G_TEST.tsv")
    assert list(parts) == ["train", "test"]
    assert parts["test"].y.tolist() == [2] and of(parts["test"]) == [[3, 4]]


def test_what_the_csv_module_writes_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 7)), rng.choice(["a", 'q"uote', "c;d", "e,f"], 30)
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"v{i}" for i in range(7)), "label"])
        writer.writerows([*row.tolist(), label] for row, label in zip(x, y, strict=True))
    part = read_parts(tmp_path / "x.csv")["all"]
    np.testing.assert_array_equal(part.x.reshape(30, 7), x.astype(np.float32))
    assert part.y.tolist() == y.tolist()


ANNOTATIONS = "#group,false,false,true,false,false,true\n#datatype,string,long,dateTime:RFC3339,"
ANNOTATIONS += "dateTime:RFC3339,double,string\n#default,_result,,,,,\n"
INFLUX = ",result,table,_start,_time,_value,room\n"
FIRST, SECOND = (
    "".join(
        f",,{table},2024-03-01T00:00:00Z,2024-03-01T00:{m:02d}:00Z,{table + m / 8},{room}\n"
        for m in range(8)
    )
    for table, room in enumerate("ab")
)


@pytest.mark.parametrize(
    "text",
    [
        f"{ANNOTATIONS}{INFLUX}{FIRST}\n{ANNOTATIONS}{INFLUX}{SECOND}",
        ANNOTATIONS + INFLUX + FIRST + SECOND,
        INFLUX + FIRST + SECOND,
    ],
)
def test_influx_exports_are_read_without_their_bookkeeping(read, recwarn, text):
    part = read(text.replace("\n", "\r\n"), "forecast")
    assert part.channels == ("_value",) and part.ids.tolist() == ["a", "b"]
    assert part.x[:, 0].tolist() == [*np.arange(8) / 8, *(1 + np.arange(8) / 8)]
    assert not recwarn.list
    fields = text.replace("room", "_field")
    with pytest.raises(ValueError, match=r"2 fields in one column, '_value'; .* pivot\("):
        read(fields, "forecast")
    assert read(fields, "forecast", id="_field").ids.tolist() == ["a", "b"]


def test_influx_exports_of_other_columns_are_refused(read):
    first, second = (f"{ANNOTATIONS}{INFLUX}{rows}" for rows in (FIRST, SECOND))
    with pytest.raises(ValueError, match=r"must all have the columns .*'.*floor' in line 17"):
        read(f"{first}\n{second.replace('room', 'floor')}", "forecast")


@pytest.mark.parametrize("at", [5, 70])
def test_repeated_names_and_units_are_left_out_with_a_warning(read, at):
    head, rows = "time,v\ns,mV\n", [f"{i},{i / 4}\n" for i in range(80)]
    with pytest.warns(UserWarning, match=rf"first in line {at + 3}\. .* left out \(2\)"):
        part = read(head + "".join(rows[:at]) + head + "".join(rows[at:]), "forecast")
    assert part.channels == ("v",) and part.x[:, 0].tolist() == list(np.arange(80) / 4)


def test_rows_that_begin_with_a_hash_are_named(read):
    text = "id,t,a,label\np1,0,1,x\np1,1,2,x\n#2,0,3,y\n#2,1,4,y\n# a remark\n"
    with pytest.warns(UserWarning, match=r"but 2 of them have as many cells .* in line 4"):
        assert len(read(text)) == 1
    assert read(text.replace("#2", '"#2"')).ids.tolist() == ["p1", "#2"]


@pytest.mark.parametrize(
    ("name", "text", "came"),
    [
        ("a.csv", "Zeit;U;F;label\n0,1;990;0,5;a\n0,2;1.010;1,5;a\n0,3;1.020;2,5;b\n", "'1.010'"),
        ("a.tsv", "time\tU\tlabel\n0.1\t990\ta\n0.2\t1,010\ta\n0.3\t1,020\tb\n", "'1,010'"),
        ("b.tsv", "time\tU\tlabel\n1\t1,009\ta\n2\t1,010\ta\n3\t1,020\tb\n", "'1,009'"),
        ("c.csv", "Zeit;U;label\n1;990;a\n2;1.010;a\n3;1.020;b\n", "'1.010' beside '990'"),
    ],
)
def test_marks_that_may_separate_thousands_are_refused(read, name, text, came):
    with pytest.raises(ValueError, match=f"{came}.*thousands.*decimal points"):
        read(text, name=name)
    assert read(text.replace("1.0", "0.0").replace("1,0", "0,0"), name=name).x[1, 0] < 1


def test_columns_are_left_out(read):
    table = {"time": [0, 1, 2, 3], "a": [1, 2, 3, 4], "note": [*"wxyz"], "label": [*"aabb"]}
    part = read(table, ignore=("note",))
    assert part.channels == ("a",) and part.columns.ignore == ("note",)
    assert "left out 'note'" in part.columns.describe()
    again = read({name.replace("note", "other"): v for name, v in table.items()}, "new",
                 columns=part.columns)  # fmt: skip
    assert again.x.tolist() == part.x.tolist()
    found = read(table, ignore=("note",), duplicates="first").columns
    assert type(found).from_dict(found.to_dict()) == found
    old = {k: v for k, v in found.to_dict().items() if k not in ("duplicates", "labels")}
    assert type(found).from_dict(old) == replace(found, duplicates="refuse")


def test_steps_keep_their_names_in_new_tables(read):
    wide = {f"v{i}": [i, i + 100] for i in range(6)}
    found = read({"label": [*"ab"], **wide}).columns
    turned = read(dict(reversed(wide.items())), "new", columns=found)
    assert turned.x[:6, 0].tolist() == [0, 1, 2, 3, 4, 5]
    shorter = {name: wide[name] for name in ("v0", "v1", "v2")}
    assert read(shorter, "new", columns=found).lengths.tolist() == [3, 3]
    named = read({"a": [1, 2], "b": [3, 4], "label": [*"xy"]}, layout="wide").columns
    part = read({"b": [3, 4], "a": [1, 2]}, "new", columns=named)
    assert part.x[:, 0].tolist() == [1, 3, 2, 4]
    flat = {f"ch{t}_{c}": [t, c] for t in range(6) for c in range(2)}
    assert read({"label": [*"ab"], **flat}).x.shape == (4, 6)


def test_codes_of_categories_keep_zeros_in_front_in_new_tables(read):
    rows = {"time": [0, 1, 2, 3], "a": [1, 2, 3, 4], "label": [*"xxyy"]}
    found = read({**rows, "code": ["01", "2A", "02", "01"]}, categorical=("code",)).columns
    part = read({"time": [0, 1], "a": [1, 2], "code": ["01", "02"]}, "new", columns=found)
    assert part.channels == ("a", "code=01", "code=02", "code=2A")
    assert part.x[:, 1:].tolist() == [[1, 0, 0], [0, 1, 0]]
    part = read({**rows, "code": ["01", "1", "2", "1"]}, categorical=("code",))
    assert part.channels == ("a", "code=01", "code=1", "code=2")


def test_empty_rows_at_the_end_are_left_out(read):
    rows = "Zeit;a\n" + "".join(f"{i},5;{i}\n" for i in range(9))
    assert read(rows + ";\n; \n\n", "forecast").clock[-1] == 8.5
    assert len(read("label,v0,v1\nup,1,2\ndown,3,4\n,,\n,,\n")) == 2
