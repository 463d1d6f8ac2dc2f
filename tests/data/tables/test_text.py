"""CSV, TSV and text with blanks: what is understood, and what is refused."""

import csv

import numpy as np
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.readers import read_parts

pytest.importorskip("pyarrow")


@pytest.fixture
def read(tmp_path):
    def _read(content, name="mine.csv", targets=True, **columns):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(content)
        return read_parts(tmp_path / name, targets=targets, columns=Columns(**columns))["all"]

    return _read


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
    part = read(content, name)
    assert of(part)[:2] == [[1, 2, 3], [4, 5, 6]]
    assert part.y.tolist()[:2] == ["up", "down"] and part.columns.layout == "wide"


def test_the_archives_form_has_the_class_first(read):
    part = read("2\t0.5\t1.5\tNaN\n-1\t2.5\t3.5\t4.5\n", "a.tsv")
    assert part.y.tolist() == [2, -1] and part.y.dtype == np.int64
    assert of(part) == [[0.5, 1.5], [2.5, 3.5, 4.5]]  # empty cells at the end end the sequence
    old = read("  2.0000000e+00  5.0e-1 1.5\n  1.0000000e+00 2.5 3.5\n", "a.txt")
    assert old.y.tolist() == [2, 1] and of(old) == [[0.5, 1.5], [2.5, 3.5]]
    last = read("0.5,1.5,0\n2.5,3.5,1\n")
    assert last.y.tolist() == [0, 1] and of(last) == [[0.5, 1.5], [2.5, 3.5]]


def test_names_of_classes_stay_as_they_are(read):
    assert read("label,v0,v1\n01,1,1\n1,2,2\n").y.tolist() == ["01", "1"]
    names = read("label,v0,v1\nNA,1,1\nGünther,2,2\n".encode("cp1252")).y.tolist()
    assert names == ["NA", "Günther"]
    assert read('label,v0,v1\n"a, b",1,1\nTrue,2,2\n').y.tolist() == ["a, b", "True"]
    assert read("label,v0,v1\n3,1,1\n4,2,2\n").y.dtype == np.int64
    assert read("y,v0,v1\n0.5,1,1\n4,2,2\n").y.tolist() == [0.5, 4.0]


def test_names_with_zeros_in_front_stay_as_they_are_beside_decimal_commas(read):
    rows = "".join(f"{'01 1'.split()[i // 3]};{i % 3};{i},5;0{i // 3 + 1}\n" for i in range(6))
    part = read("id;t;v;label\n" + rows)
    assert part.ids.tolist() == ["01", "1"] and part.y.tolist() == ["01", "02"]
    assert read("y;v0;v1\n1,125;1,5;1\n2,125;2;2\n").y.tolist() == [1.125, 2.125]
    rows = "".join(f"{i // 3:02d},{i % 3},{i}.5\n" for i in range(6))
    ids = read("id,time,v\n" + rows, targets=False, forecast=True).ids
    assert ids.tolist() == ["00", "01"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_two_columns_of_decimal_commas(read, mark):
    text = "Zeit;Wert\n" + "".join(f"0,0{i};{i},5\n" for i in range(9))
    part = read(text.replace(";", mark), "a.txt", targets=False, forecast=True)
    assert part.columns.time == "Zeit" and part.x[:, 0].tolist() == [i + 0.5 for i in range(9)]


def test_blanks_separate_decimal_commas_but_not_names_between_tabs(read):
    rows = "".join(f"0,{i} {i},5 2,0 {'ab'[i % 2]}\n" for i in range(9))
    assert read("Zeit u v label\n" + rows, "a.txt").x[3].tolist() == [3.5, 2.0]
    rows = "".join(f"Sensor {1 + i // 5}\t{i % 5}\t{i}.5\n" for i in range(10))
    part = read("sensor name\ttime\tv\n" + rows, "a.tsv", targets=False, forecast=True)
    assert part.ids.tolist() == ["Sensor 1", "Sensor 2"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_cells_of_several_lines(read, end):
    text = '"time\n[s]",force,"label\n(class)"\n0,1,"a\n# b"\n1,2,"a\n# b"\n2,3,c\n'
    part = read(text.replace("\n", end))
    assert part.columns.time == "time [s]" and part.columns.target == "label (class)"
    assert part.x[:, 0].tolist() == [1, 2, 3] and part.y[:, 0].tolist() == ["a # b", "a # b", "c"]
    part = read('time,pipe,a\n0,5",1\n# 6"\n1,5",2\n', targets=False, forecast=True)
    assert part.x[:, 0].tolist() == [1, 2]


def test_the_separator_a_spreadsheet_names_and_units_below_names_without_a_role(read):
    units = "sep=,\nUnix_CAL,Accel_X,Accel_Y,\nms,m/s2,m/s2,\n"
    rows = "".join(f"{20 * i},{i * i}.5,{i}.5,\n" for i in range(5))
    part = read(units + rows, targets=False, forecast=True, windows=True)
    assert part.channels == ("Unix_CAL", "Accel_X", "Accel_Y") and part.x[1].tolist() == [
        20,
        1.5,
        1.5,
    ]


def test_gaps_are_missing_values(read):
    x = read("label,v0,v1,v2\nup,,?,3\ndown,nan,5,NA\n").x.squeeze(1)
    np.testing.assert_array_equal(x, np.array([np.nan, np.nan, 3, np.nan, 5], np.float32))


def test_numbers_beyond_the_type_are_infinite_and_refused_later(read):
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
    found = read(text, name)
    for one in (text, bare):
        part = read(one, name, targets=False, **vars(found.columns))
        assert part.y is None and of(part) == of(found)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("", ["mine.csv", "without a line"]),
        ("label,v0,v1\n", ["rows", "0"]),
        (b"PK\x03\x04\0\0\0\0", ["zero bytes"]),
        ("label,v0,v1\nup,1,2\ndown,3\n", ["#3", "Expected 3 columns, got 2", "row"]),
        ("label,v0,v1\nup,1,2,3\n", ["#2", "Expected 3 columns, got 4"]),
        ('label,v0\n"up,1\n', ["#2"]),
        ("label,v0,v1\nup,1,2\ndown,3,oops\n", ["'oops'", "row 3", "'v1'"]),
        ('label,v0,v1\nup,"1,5",1\ndown,"2",1\nup,3,1', ["'1,5'", "a point"]),
        ("label,v0,v1\nup,1,2\n,3,4\n", ["'label'", "row 3"]),
        ("label,v0,v1\nup,1,2\ndown,,\n", ["row 3", "values"]),
        ("label,v0,v0\nup,1,2\n", ["'v0'", "twice"]),
        ("v0,v1,v2\n1,2.5,3\n4,5,6\n", ["'v0', 'v1' and 'v2'", "--target-column"]),
        ("kind,town,v0,v1\na,b,1,1\nc,d,2,2\n", ["'kind' and 'town'", "--target-column"]),
        ("kind,town,v0,v1\na,b,1,1\nc,b,2,2\n", ["--target-column 'kind'"]),
        ("label,kind,v0,v1\na,b,1,1\nc,d,2,2\n", ["'b'", "row 2", "'kind'"]),
        ("label\nup\ndown\n", ["value columns"]),
        ("id,v,label\n1,1,up\n,2,up\n1,2,up", ["id column 'id'", "row 3"]),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(read, content, texts):
    with pytest.raises(ValueError) as error:
        read(content)
    for text in texts:
        assert text in str(error.value)


def test_a_word_in_the_first_row_of_values_is_no_unit(read):
    rows = "".join(f"2024-01-31 10:0{i}:00,{i}.5,{'ab'[i % 2]}\n" for i in range(1, 9))
    for first in ("2024-01-31 10:00:00,ERR,a\n", "2024-01-31 10:00:00,ERR,-\n"):
        with pytest.raises(ValueError, match="ERR"):
            read(f"time,x,label\n{first}{rows}")


def test_the_start_and_the_rate_of_empatica_are_no_samples(read, tmp_path):
    rows = "".join(f"{i}.25\n" for i in range(6))
    part = read("1706700000.00\n4.000000\n" + rows, targets=False, forecast=True)
    assert of(part) == [[0.25, 1.25, 2.25, 3.25, 4.25, 5.25]]
    again = read_parts(tmp_path / "mine.csv", targets=False, columns=part.columns)["all"]
    assert np.array_equal(again.x, part.x)


def test_columns_with_the_step_in_front_are_refused(read):
    rows = "".join(f"{i},1,{i},2,{'ab'[i % 2]}\n" for i in range(6))
    for layout in ("auto", "wide"):
        with pytest.raises(ValueError, match=r"must end in the step.* as in x_0"):
            read("t0_x,t0_y,t1_x,t1_y,label\n" + rows, layout=layout)


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


def test_date_and_clock_of_new_data_are_joined_as_in_training(tmp_path):
    rows = "".join(f"2025-02-01,09:00:0{t},s{n},{t}\n" for n in range(2) for t in range(3))
    path = tmp_path / "here.csv"
    path.write_text("date,time,subject,v\n" + rows)
    part = read_parts(path, columns=Columns(id="subject"), targets=False)["all"]
    assert part.columns.time == "date time"
    new = read_parts(path, columns=part.columns, targets=False)["all"]
    assert new.interval == 1 and (new.x == part.x).all()


ANNOTATIONS = "#group,false,false,true,false,false,true\n#datatype,string,long,dateTime:RFC3339,"
ANNOTATIONS += "dateTime:RFC3339,double,string\n#default,_result,,,,,\n"
INFLUX = ",result,table,_start,_time,_value,room\n"


def rows_of_influx(table, room):
    return "".join(
        f",,{table},2024-03-01T00:00:00Z,2024-03-01T00:{m:02d}:00Z,{table + m / 8},{room}\n"
        for m in range(8)
    )


FORECAST = {"targets": False, "windows": True, "forecast": True}


def test_influx_exports_are_read_without_their_bookkeeping(read, recwarn):
    first, second = rows_of_influx(0, "a"), rows_of_influx(1, "b")
    blocks = [ANNOTATIONS + INFLUX + rows for rows in (first, second)]
    for text in (
        "\n".join(blocks),
        ANNOTATIONS + INFLUX + first + second,
        INFLUX + first + second,
    ):
        part = read(text.replace("\n", "\r\n"), **FORECAST)
        assert part.channels == ("_value",) and part.ids.tolist() == ["a", "b"]
        assert part.x[:, 0].tolist() == [*np.arange(8) / 8, *(1 + np.arange(8) / 8)]
    assert not recwarn.list
    other = blocks[1].replace("_time,_value,room", "_time,_value,floor")
    with pytest.raises(ValueError, match=r"must all have the columns .*'.*floor' in line 17"):
        read("\n".join([blocks[0], other]), **FORECAST)


def test_fields_of_influx_in_one_column_are_refused(read):
    text = (INFLUX + rows_of_influx(0, "temp") + rows_of_influx(1, "hum")).replace("room", "_field")
    with pytest.raises(ValueError, match=r"2 fields in one column, '_value'; .* pivot\("):
        read(text, **FORECAST)
    assert read(text, id="_field", **FORECAST).ids.tolist() == ["temp", "hum"]


def test_repeated_names_and_units_are_left_out_with_a_warning(read):
    head, rows = "time,v\ns,mV\n", [f"{i},{i / 4}\n" for i in range(80)]
    for at in (5, 70):
        text = head + "".join(rows[:at]) + head + "".join(rows[at:])
        with pytest.warns(UserWarning, match=rf"first in line {at + 3}\. .* left out \(2\)"):
            part = read(text, **FORECAST)
        assert part.channels == ("v",) and part.x[:, 0].tolist() == list(np.arange(80) / 4)


def test_files_of_campbell_loggers(read):
    head = '"TOA5","CR1000","CR1000","1234","Std.31","CPU:a.CR1","55","Table1"\n'
    head += '"TIMESTAMP","AirTC_Avg","RH"\n"TS","Deg C","%"\n"","Avg","Smp"\n'
    rows = "".join(
        f'"2024-01-01 00:0{i}:00",{i / 4},{"""NAN""" if i == 3 else i}\n' for i in range(8)
    )
    part = read(head + rows, **FORECAST)
    assert part.channels == ("AirTC_Avg", "RH") and part.interval == 60
    assert part.x[:, 0].tolist() == list(np.arange(8) / 4) and np.isnan(part.x[3, 1])


def test_a_german_clock_joins_its_date(read):
    text = "Datum\tUhrzeit\tT\n" + "".join(
        f"{13 + i // 6}.02.2024\t{i % 6 * 4:02d}:00:00\t{i % 5},5\n" for i in range(12)
    )
    part = read(text, "a.txt", **FORECAST)
    assert part.columns.time == "Datum Uhrzeit" and part.interval == 4 * 3600
    assert part.channels == ("T",)  # a temperature


def test_quoted_decimal_commas_are_refused_with_advice(read):
    for cell in ("{},5", "1,20{}.5", "1 20{}"):
        text = "time,a,b\n" + "".join(f'{i},"{cell.format(i)}",1\n' for i in range(8))
        with pytest.raises(
            ValueError, match="in row 2, column 'a'; write numbers with a point and"
        ):
            read(text, **FORECAST)


def test_names_below_other_lines_of_as_many_cells_are_refused(read):
    rows = "".join(f"{i},{i / 4}\n" for i in range(8))
    with pytest.raises(ValueError, match="first line; got 'time,a' below other lines; remove the"):
        read("Device,A7\nRate,50\n\ntime,a\n" + rows, **FORECAST)
    assert read("# Device,A7\ntime,a\n" + rows, **FORECAST).channels == ("a",)
