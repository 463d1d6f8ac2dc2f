"""Tables that were once read wrong without a word: each kind has its own test."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from anharmonic.data.columns import Columns
from anharmonic.data.own import FileTask
from anharmonic.data.readers import read_parts
from anharmonic.data.tables.cells import Table, numbers
from anharmonic.data.tables.dates import TwoMeaningsError, parse_clock, parse_dates
from anharmonic.data.tables.reshaped import with_joined_times


@pytest.fixture
def read(tmp_path):
    def _read(text, name="mine.csv", targets=True, columns=None, **given):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_parts(path, targets=targets, columns=columns or Columns(**given))["all"]

    return _read


FORECAST = {"targets": False, "windows": True, "forecast": True}


def table(**columns):
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_sequences_of_one_step_are_refused(read):
    with pytest.raises(ValueError, match="more steps than one"):
        read(table(label=["a", "b"], v0=[1, 2]), layout="wide")
    with pytest.raises(ValueError, match="more steps than one"):
        read(table(id=[1, 2, 3], time=[0, 1, 2], v=[1, 2, 3], label=[*"aba"]), layout="long")


def test_constant_and_counting_channels_are_named(tmp_path):
    days = np.arange("2020-01-01", "2020-04-10", dtype="M8[D]")
    text = table(
        date=days, load=np.sqrt(np.arange(100)), flat=np.full(100, 7), total=np.arange(100) * 3
    )
    (tmp_path / "mine.csv").write_text(text)
    summary = FileTask(tmp_path / "mine.csv", horizon=2).summary()
    (tmp_path / "gaps.csv").write_text(text.replace(",7,", ",-999,", 9).replace("-999,", "7,", 4))
    gaps = FileTask(tmp_path / "gaps.csv", horizon=2).summary()
    assert "if it means missing, leave it empty: flat (-999)" in gaps
    assert "leave it empty" not in summary
    assert "constant: flat" in summary and "rising by the same at every step: total" in summary


def test_columns_of_new_tables_are_matched_or_refused(read):
    wide = {f"v{i}": [i, i + 100] for i in range(6)}
    found = read(table(label=[*"ab"], **wide)).columns
    turned = dict(reversed(wide.items()))
    part = read(table(**turned), targets=False, columns=found)
    assert part.x[:6, 0].tolist() == [0, 1, 2, 3, 4, 5]
    shorter = {name: wide[name] for name in ("v0", "v1", "v2")}
    assert read(table(**shorter), targets=False, columns=found).lengths.tolist() == [3, 3]
    for other in (
        {name.replace("v", "w"): values for name, values in wide.items()},
        {f"v{i + 3}": values for i, values in enumerate(wide.values())},
        {"id": [1, 1], "time": [0, 1], "a": [1, 2], "b": [3, 4]},
    ):
        with pytest.raises(ValueError, match="as in training"):
            read(table(**other), targets=False, columns=found)
    named = read(table(a=[1, 2], b=[3, 4], label=[*"xy"]), layout="wide").columns
    part = read(table(b=[3, 4], a=[1, 2]), targets=False, columns=named)
    assert part.x[:, 0].tolist() == [1, 3, 2, 4]


def test_steps_and_channels_in_the_wrong_order_are_refused(read):
    text = table(label=[*"ab"], **{f"v_{t}_{c}": [t, c] for t in range(6) for c in range(2)})
    with pytest.raises(ValueError, match=r"6 channels of 2 steps.*write the step last"):
        read(text)
    assert read(text.replace("v_", "ch")).x.shape == (4, 6)


def test_columns_of_other_kinds_are_refused(tmp_path):
    made = pa.table({"label": [1, 2], "v": [{"a": 1}, {"a": 2}], "x": [[1, 2], [3, 4]]})
    parquet.write_table(made, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"struct<a: int64> in column 'v'.*--ignore 'v'"):
        read_parts(tmp_path / "a.parquet")
    found = read_parts(tmp_path / "a.parquet", columns=Columns(ignore=("v",)))["all"]
    assert found.y.tolist() == [1, 2]


def test_a_time_column_without_a_name_is_described(read):
    found = read(",a,label\n0,1,x\n2,2,x\n1,3,y\n").columns
    assert "time column ''" in found.describe()


def test_tables_without_names_have_the_width_of_training(read):
    found = read("1,0.5,1.5,2.5\n2,3.5,4.5,5.5\n").columns
    for columns in (found, dataclasses.replace(found, target="4")):
        for other in ("1,0.5\n2,3.5\n", "1,0.5,1.5,2.5,3.5\n2,3.5,4.5,5.5,6.5\n"):
            with pytest.raises(ValueError, match=r"must be 4, as in training; got [25]"):
                read(other, targets=False, columns=columns)
    bare = "0.5,1.5,2.5\n3.5,4.5,5.5\n"
    assert read(bare, targets=False, columns=found).lengths.tolist() == [3, 3]
    with pytest.raises(ValueError, match="keep the column of the target"):
        read(bare, targets=False, columns=dataclasses.replace(found, id="2"))
    assert read("1,0.5,1.5\n2,3.5,4.5\n", columns=found).lengths.tolist() == [2, 2]


def test_years_in_columns_go_on_in_a_newer_table(read):
    text = "Country Name,1960,1961,1962\nPeru,1,2,3\nChad,4,5,6\n"
    found = read(text, **FORECAST).columns
    newer = text.replace("1962", "1963").replace("1961", "1962").replace("1960", "1961")
    part = read(newer, targets=False, columns=found)
    assert part.x[:, 0].tolist() == [1, 2, 3, 4, 5, 6] and part.ids.tolist() == ["Peru", "Chad"]


def test_a_label_that_contradicts_the_others_of_its_id_is_refused(read):
    text = "id,time,v,label\n1,0,1,a\n1,1,2,a\n2,0,3,a\n2,1,4,b\n"
    with pytest.raises(ValueError, match=r"a and b \(row 5, id 2\)"):
        read(text, labels="sequence")


def test_columns_are_left_out(read):
    text = table(time=[0, 1, 2, 3], a=[1, 2, 3, 4], note=[*"wxyz"], label=[*"aabb"])
    with pytest.raises(ValueError, match="--ignore 'note'"):
        read(text)
    part = read(text, ignore=("note",))
    assert part.channels == ("a",) and part.columns.ignore == ("note",)
    assert "left out 'note'" in part.columns.describe()
    again = read(text.replace("note", "other"), targets=False, columns=part.columns)
    assert again.x.tolist() == part.x.tolist()
    with pytest.raises(ValueError, match="did you mean 'note'"):
        read(text, ignore=("nota",))


def test_how_dates_are_written_may_be_said(read):
    text = table(date=["01/02/2024", "03/01/2024", "02/04/2024"], a=[1, 2, 3], label=[*"aab"])
    assert read(text, date_format="%d/%m/%Y").x[:, 0].tolist() == [2, 1, 3]
    assert read(text, date_format="%m/%d/%Y").x[:, 0].tolist() == [1, 3, 2]
    with pytest.raises(ValueError, match=r"'%Y'.*'01/02/2024' in row 2"):
        read(text, date_format="%Y")


def test_an_hour_of_local_time_that_may_be_repeated_is_refused(read):
    quarters = ["2024-10-27 02:00", "2024-10-27 02:45", "2024-10-27 02:15", "2024-10-27 03:00"]
    with pytest.raises(ValueError, match="write UTC or an offset"):
        read(table(time=quarters, a=[1, 2, 3, 4]), **FORECAST)


def test_what_was_found_survives_json(read):
    found = read(table(time=[0, 1, 2], a=[1, 2, 3], label=[*"aab"]), duplicates="first").columns
    assert Columns.from_dict(found.to_dict()) == found
    old = {k: v for k, v in found.to_dict().items() if k not in ("ignore", "duplicates", "labels")}
    assert Columns.from_dict(old) == dataclasses.replace(found, duplicates="refuse")


def test_numbers_with_marks_between_their_digits_are_words():
    with pytest.raises(ValueError, match=r"must be numbers; got '1_000' in row 2"):
        numbers(Table(pa.table({"a": ["1.5", "1_000"]}), "here"), "a")


def test_few_dates_do_not_tell_the_day_from_the_month():
    falling_if_months_come_first = ["05/01/2024", "04/02/2024", "03/03/2024", "02/04/2024"]
    with pytest.raises(TwoMeaningsError):
        parse_dates(falling_if_months_come_first)
    days = parse_dates([*falling_if_months_come_first, "01/05/2024"])
    assert days.astype("M8[M]").astype(str).tolist() == [f"2024-0{k}" for k in range(1, 6)]


def test_many_dates_are_read_as_few_are():
    days = [f"{day}/{month:02d}/2024 0:{minute:02d}" for month in range(1, 13)
            for day in range(1, 29) for minute in range(7)]  # fmt: skip
    assert len(days) > 2000
    assert str(parse_dates(days)[7 * 27]) == "2024-01-28T00:00:00.000000000"
    assert parse_dates([*days, "31/02/2024 0:00"]) is parse_dates(["31/02/2024 0:00"]) is None
    several = [f"{day:02d}/{month:02d}/{year}" for _ in range(2) for year in range(19, 25)
               for month in range(1, 13) for day in range(1, 29)]  # fmt: skip
    for dates in (parse_dates(several), parse_dates(several[:500])):
        assert str(dates[30])[:10] == "2019-02-03"


def test_short_years_may_come_first():
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    for daily in (
        [f"24/01/{day}" for day in range(20, 30)],
        [f"{day}-Jan" for day in range(10, 30)],
    ):
        with pytest.raises(TwoMeaningsError):
            parse_dates(daily)
    for days in (
        ["24/01/29", "24/01/30", "24/01/31", "24/02/01", "24/02/02"],
        ["29/01/24", "30/01/24", "31/01/24", "01/02/24", "02/02/24"],
        ["29.01.24", "30.01.24", "31.01.24"],
    ):
        assert str(parse_dates(days)[2])[:10] == "2024-01-31"
    monthly = [f"{year}-{month}" for year in (10, 11) for month in months]
    assert str(parse_dates(monthly)[1])[:10] == "2010-02-01"
    assert str(parse_dates(["97-Jan", "97-Feb"])[1])[:10] == "1997-02-01"


@pytest.mark.parametrize(
    ("parts", "dates"),
    [
        ({"year": [2024, 2024], "month": [2, 2], "day": [28, 29]}, ["2024-02-28", "2024-02-29"]),
        ({"year": [2023, 2024], "quarter": [4, 1]}, ["2023-10-01", "2024-01-01"]),
    ],
)
def test_parts_of_dates_in_columns(parts, dates):
    (column,) = with_joined_times(Table(pa.table(parts), "here")).arrow.columns
    assert column.to_numpy().astype("M8[D]").astype(str).tolist() == dates


def test_parts_that_are_no_date_stay_apart():
    no_date = {"year": [2024, 2024], "month": [2, 2], "day": [28, 31]}  # not the third of March
    assert with_joined_times(Table(pa.table(no_date), "here")).names == list(no_date)


def test_all_times_of_a_stopwatch_have_one_unit():
    assert parse_clock(["0:00.5", "0:01", "1:00:00"]).tolist() == [0.5, 1.0, 3600.0]
    assert parse_clock(["10:30", "9:05"]).tolist() == [37800.0, 32700.0]
    assert parse_clock(["59:59", "1:00:00"]) is None  # the first may be hours and minutes
    assert parse_clock(["24:00", "0:30"]).tolist() == [86400.0, 1800.0]
    assert parse_clock(["24:59", "0:30"]).tolist() == [1499.0, 30.0]  # no clock shows 24:59


def test_times_of_day_that_pass_midnight_are_refused(read):
    day = {"a": [1, 2, 3, 4], "label": [*"abab"]}
    with pytest.raises(ValueError, match=r"must not pass midnight; got .* row 4 .*--time-column n"):
        read(table(time=["23:59:58", "23:59:59", "00:00:00", "00:00:01"], **day))
    mixed = ["00:00:02", "23:00:00", "00:00:01", "00:00:00"]
    assert read(table(time=mixed, **day)).x[:, 0].tolist() == [4, 3, 1, 2]


@pytest.mark.parametrize("gap", ["", "NaN", "NA", "?"])
def test_gaps_between_numeric_targets_are_no_class(read, gap):
    part = read(table(time=range(6), a=range(6), label=[1, 2, gap, 2, 1, 1]))
    assert part.y[part.known, 0].tolist() == [1, 2, 2, 1, 1] and part.y.dtype.kind == "i"
    assert read(table(time=range(4), a=range(4), y=[0.5, gap, 2, 3])).y.dtype.kind == "f"
    with pytest.raises(ValueError, match="target"):
        read(table(label=[0.5, gap, 1.5], v0=[1, 2, 3], v1=[4, 5, 6]))


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
        read(text, name)
    assert read(text.replace("1.0", "0.0").replace("1,0", "0,0"), name).x[1, 0] < 1


@pytest.mark.parametrize(
    ("name", "cells", "form", "first"),
    [
        ("date", [30012024, 31012024, 1022024, 2022024], "%d%m%Y", "2024-01-30"),
        ("Datum", [240130, 240131, 240201], "%y%m%d", "2024-01-30"),
        ("time", [850, 855, 900, 905, 910], "%H%M", "1900-01-01"),
        ("time", [95930, 95945, 100000, 100015, 100030], "%H%M%S", "1900-01-01"),
    ],
)
def test_numbers_that_may_be_dates_or_times_of_day_are_refused(read, name, cells, form, first):
    text = table(**{name: cells, "a": range(len(cells))})
    with pytest.raises(ValueError, match=f"written as '{form}'.*--date-format '{form}'"):
        read(text, **FORECAST)
    part = read(text, **FORECAST, date_format=form)
    assert part.x[:, 0].tolist() == list(range(len(cells))) and part.elapsed is None
    assert str(part.times[0])[:10] == first


def test_numbers_that_count_stay_numbers(read):
    for cells in (range(100, 112), range(850, 950, 5), [738000, 738001, 738002]):
        part = read(table(date=cells, a=range(len(cells))), **FORECAST)
        assert part.times.dtype.kind == "f" and part.elapsed is None
    assert read(table(date=[2024366, 2025001], a=[1, 2]), **FORECAST).interval == 86400


def test_times_of_day_in_a_given_form_do_not_pass_midnight(read):
    with pytest.raises(ValueError, match="must not pass midnight"):
        read(table(time=[2355, 0, 5], a=[1, 2, 3]), **FORECAST, date_format="%H%M")


def test_rows_that_begin_with_a_hash_are_named_or_errors_of_cells(read):
    text = "id,t,a,label\np1,0,1,x\np1,1,2,x\n#2,0,3,y\n#2,1,4,y\n# a remark\n"
    with pytest.warns(UserWarning, match=r"but 2 of them have as many cells .* in line 4"):
        assert len(read(text)) == 1
    assert read(text.replace("#2", '"#2"')).ids.tolist() == ["p1", "#2"]
    with pytest.raises(ValueError, match="'#N/A' in row 3, column 'a'"):
        read("a,t,label\n1,0,x\n#N/A,1,x\n2,2,y\n")


def test_codes_of_categories_keep_zeros_in_front_in_new_tables(read):
    codes = {"code": ["01", "2A", "02", "01"], "label": [*"xxyy"]}
    found = read(table(time=[0, 1, 2, 3], a=[1, 2, 3, 4], **codes), categorical=("code",)).columns
    part = read(table(time=[0, 1], a=[1, 2], code=["01", "02"]), targets=False, columns=found)
    assert part.channels == ("a", "code=01", "code=02", "code=2A")
    assert part.x[:, 1:].tolist() == [[1, 0, 0], [0, 1, 0]]
    codes = {"code": ["01", "1", "2", "1"], "label": [*"xxyy"]}
    part = read(table(time=[0, 1, 2, 3], a=[1, 2, 3, 4], **codes), categorical=("code",))
    assert part.channels == ("a", "code=01", "code=1", "code=2")


def test_hours_and_minutes_that_may_be_minutes_and_seconds_are_warned_of(read, recwarn):
    cells = {"time": ["03:10", "03:25", "03:40"], "v": [1, 2, 3]}
    with pytest.warns(UserWarning, match=r"'03:40' in column 'time' .*--date-format '%M:%S'"):
        part = read(table(**cells), **FORECAST)
    recwarn.clear()
    assert part.interval == read(table(**cells), targets=False, columns=part.columns).interval
    assert part.interval == 900
    assert read(table(**cells), date_format="%M:%S", **FORECAST).interval == 15
    assert read(table(**cells | {"time": ["24:10", "24:25", "24:40"]}), **FORECAST).interval == 15
    date = ["2024-01-01"] * 3
    assert read(table(date=date, **cells), **FORECAST).interval == 900
    assert not recwarn.list


@pytest.mark.parametrize("step", [0.02, 20])
def test_a_rising_first_column_without_a_name_is_refused_in_files_and_folders(tmp_path, step, read):
    text = "\n".join(f"{step * i},{i % 3 / 4}" for i in range(9))
    for kind in "ab":
        (tmp_path / "all" / kind).mkdir(parents=True)
        for name in ("1.csv", "2.csv"):
            (tmp_path / "all" / kind / name).write_text(text)
    with pytest.raises(ValueError, match=r"must be clear; got numbers .*--time-column 1"):
        read_parts(tmp_path / "all")
    with pytest.raises(ValueError, match=r"must be clear; got numbers .*--time-column 1"):
        read(text, layout="long", **FORECAST)
    part = read_parts(tmp_path / "all", columns=Columns(time="1"))["all"]
    assert part.channels == ("2",) and part.interval == pytest.approx(step)
    assert read_parts(tmp_path / "all", columns=Columns(time="none"))["all"].x.shape == (36, 2)


def test_columns_named_by_times_of_day_are_steps(read):
    half_hours = {f"{h:02d}:{m:02d}": [h + m, 1] for h in range(3) for m in (0, 30)}
    part = read(table(label=[*"ab"], **half_hours))
    assert part.columns.layout == "wide" and part.x[:6, 0].tolist() == [0, 30, 1, 31, 2, 32]
    days = table(day=["2024-01-01", "2024-01-02"], **half_hours)
    with pytest.raises(ValueError, match=r"numbered columns '00:00', .*--layout"):
        read(days, **FORECAST)


def test_classes_that_differ_in_their_case_are_told(tmp_path):
    values = {f"v{i}": np.arange(12) % (i + 2) for i in range(4)}
    (tmp_path / "mine.csv").write_text(table(label=[*"aAb"] * 4, **values))
    assert "'A' and 'a' in mine.csv differ" in FileTask(tmp_path / "mine.csv").hint
