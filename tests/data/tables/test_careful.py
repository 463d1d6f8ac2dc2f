"""Tables that were once read wrong without a word: each kind has its own test."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.own import FileTask
from anharmonic.data.readers import read_parts
from anharmonic.data.tables.cells import Table, numbers
from anharmonic.data.tables.dates import TwoMeaningsError, parse_dates
from anharmonic.data.tables.read import with_joined_times

pytest.importorskip("pyarrow")


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


def noise(count, seed=0):
    return np.random.default_rng(seed).normal(size=count).round(4)


def test_a_recording_of_noise_is_no_set_of_sequences(read):
    names = ["Time [s]", "ax", "ay", "label"]
    columns = [np.arange(1200) / 100, noise(1200), noise(1200, 1), np.repeat([*"abcd"], 300)]
    part = read(table(**dict(zip(names, columns, strict=True))))
    assert part.lengths.tolist() == [1200] and part.per_step and part.channels == ("ax", "ay")
    assert part.columns.layout == "long" and part.columns.time == "Time [s]"


def test_rows_without_an_order_are_refused_with_the_flags_that_decide(read):
    text = table(ax=noise(40), ay=noise(40, 1), label=np.repeat([*"ab"], 20))
    with pytest.raises(ValueError, match=r"--layout long.*--layout wide.*--time-column.*--id-col"):
        read(text)
    assert read(text, layout="long").lengths.tolist() == [40]


def test_sequences_of_one_step_are_refused(read):
    with pytest.raises(ValueError, match="more steps than one"):
        read(table(label=["a", "b"], v0=[1, 2]), layout="wide")
    with pytest.raises(ValueError, match="more steps than one"):
        read(table(id=[1, 2, 3], time=[0, 1, 2], v=[1, 2, 3], label=[*"aba"]), layout="long")


def test_firms_are_no_recording(read):
    text = table(
        firm=np.repeat(["GM", "US Steel", "IBM"], 20),
        year=np.tile(np.arange(1935, 1955), 3),
        invest=noise(60),
    )
    part = read(text, **FORECAST)
    assert part.lengths.tolist() == [20, 20, 20] and part.ids.tolist() == ["GM", "US Steel", "IBM"]
    assert part.channels == ("invest",)


def test_dates_in_any_order_are_sorted(read):
    months = np.arange("2010-01", "2015-01", dtype="M8[M]").astype(str)
    values = np.arange(60.0)
    order = np.random.default_rng(3).permutation(60)
    part = read(table(Month=months[order], passengers=values[order]), **FORECAST)
    assert part.x[:, 0].tolist() == values.tolist()


def test_years_quarters_and_marks_are_not_forecast(read):
    text = table(
        year=np.repeat(np.arange(1990, 2000), 4),
        quarter=np.tile([1, 2, 3, 4], 10),
        Obs=np.arange(1, 41),
        is_anomaly=np.tile([0, 0, 0, 1], 10),
        gdp=noise(40),
    )
    part = read(text, **FORECAST)
    assert part.channels == ("gdp",) and part.columns.time == "year quarter"
    assert part.columns.target == "is_anomaly" and part.columns.ignore == ("Obs",)
    assert "left out 'Obs'" in part.columns.describe()


def test_constant_and_counting_channels_are_named(tmp_path):
    days = np.arange("2020-01-01", "2020-04-10", dtype="M8[D]")
    text = table(date=days, load=noise(100), flat=np.full(100, 7), total=np.arange(100) * 3)
    (tmp_path / "mine.csv").write_text(text)
    summary = FileTask(tmp_path / "mine.csv", horizon=2).summary()
    assert "constant: flat" in summary and "rising by the same at every step: total" in summary


def test_dates_of_eight_digits_are_dates(read):
    weeks = np.arange("2020-01-04", "2021-01-01", 7, dtype="M8[D]").astype(str)
    digits = [week.replace("-", "") for week in weeks]
    part = read(table(date=digits, v=noise(len(digits))), **FORECAST)
    assert part.elapsed is None and part.interval == 7 * 86400.0


def test_steps_are_ordered_by_their_numbers(read):
    numbers = sorted(range(11), key=str)
    part = read(table(label=[*"ab"], **{f"v{i}": [i, i] for i in numbers}))
    assert part.x[:11, 0].tolist() == list(range(11))
    two = read(table(label=[*"ab"], a_0=[0, 0], a_1=[1, 1], a_2=[2, 2], b_0=[5, 5], b_2=[7, 7],
                     b_1=[6, 6]))  # fmt: skip
    assert two.x[:3].tolist() == [[0, 5], [1, 6], [2, 7]]


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


def test_years_in_columns_go_on_in_a_newer_table(read):
    text = "Country Name,1960,1961,1962\nPeru,1,2,3\nChad,4,5,6\n"
    found = read(text, **FORECAST).columns
    newer = text.replace("1962", "1963").replace("1961", "1962").replace("1960", "1961")
    part = read(newer, targets=False, columns=found)
    assert part.x[:, 0].tolist() == [1, 2, 3, 4, 5, 6] and part.ids.tolist() == ["Peru", "Chad"]


def test_labels_of_twenty_digits_stay_apart(read):
    part = read(table(label=["12345678901234567890", "12345678901234567891"], v0=[1, 2], v1=[3, 4]))
    assert part.y.tolist() == ["12345678901234567890", "12345678901234567891"]


def test_a_label_that_contradicts_the_others_of_its_id_is_refused(read):
    text = table(
        id=np.repeat([1, 2, 3, 4], 3),
        time=np.tile([0, 1, 2], 4),
        v=noise(12),
        label=[*"aaabbbaabbbb"],
    )
    with pytest.raises(ValueError, match=r"a and b .*id 3\) in 1 of 4.*--labels step"):
        read(text)
    with pytest.raises(ValueError, match=r"a and b \(row 10, id 3\)"):
        read(text, labels="sequence")
    assert read(text, labels="step").per_step


def test_columns_are_left_out(read):
    text = table(time=[0, 1, 2, 3], a=[1, 2, 3, 4], note=[*"wxyz"], label=[*"aabb"])
    with pytest.raises(ValueError, match="--ignore 'note'"):
        read(text)
    part = read(text, ignore=("note",))
    assert part.channels == ("a",) and part.columns.ignore == ("note",)
    again = read(text.replace("note", "other"), targets=False, columns=part.columns)
    assert again.x.tolist() == part.x.tolist()
    with pytest.raises(ValueError, match="did you mean 'note'"):
        read(text, ignore=("nota",))


def test_no_column_is_the_time(read):
    text = table(time=[0, 0, 5, 3], a=[1, 2, 3, 4], label=[*"aabb"])
    with pytest.raises(ValueError, match=r"0\.0 twice.*--duplicates.*--time-column none"):
        read(text)
    part = read(text, time="none", layout="long", ignore=("time",))
    assert part.x[:, 0].tolist() == [1, 2, 3, 4] and part.times is None


def test_how_dates_are_written_may_be_said(read):
    text = table(date=["01/02/2024", "03/01/2024", "02/04/2024"], a=[1, 2, 3], label=[*"aab"])
    with pytest.raises(ValueError, match=r"--date-format '%d/%m/%Y'"):
        read(text)
    assert read(text, date_format="%d/%m/%Y").x[:, 0].tolist() == [2, 1, 3]
    assert read(text, date_format="%m/%d/%Y").x[:, 0].tolist() == [1, 3, 2]
    with pytest.raises(ValueError, match=r"'%Y'.*'01/02/2024' in row 2"):
        read(text, date_format="%Y")


def test_rows_that_repeat_a_time_are_joined_as_said(read):
    text = table(id=[1, 1, 1, 2, 2], time=[0, 1, 1, 0, 1], a=[1, 2, 4, 5, 6], target=[0.5] * 5)
    assert read(text, duplicates="first").x[:, 0].tolist() == [1, 2, 5, 6]
    assert read(text, duplicates="mean").x[:, 0].tolist() == [1, 3, 5, 6]
    assert read(text, duplicates="mean").lengths.tolist() == [2, 2]


def test_a_repeated_hour_of_local_time_is_refused(read):
    hours = ["2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 02:00", "2024-10-27 03:00"]
    with pytest.raises(ValueError, match="write UTC or an offset"):
        read(table(time=hours, a=[1, 2, 3, 4]), **FORECAST)
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
    days, _ = parse_dates([*falling_if_months_come_first, "01/05/2024"])
    assert days.astype("M8[M]").astype(str).tolist() == [f"2024-0{k}" for k in range(1, 6)]


@pytest.mark.parametrize(
    ("parts", "dates"),
    [
        ({"year": [2024, 2024], "month": [2, 2], "day": [28, 29]}, ["2024-02-28", "2024-02-29"]),
        ({"year": [2024, 2024], "month": [2, 2], "day": [28, 31]}, None),  # no third of March
        ({"year": [2023, 2024], "quarter": [4, 1]}, ["2023-10-01", "2024-01-01"]),
    ],
)
def test_parts_of_dates_in_columns(parts, dates):
    joined = with_joined_times(Table(pa.table(parts), "here"))
    if dates is None:
        assert joined.names == list(parts)
        return
    (column,) = joined.arrow.columns
    assert column.to_numpy().astype("M8[D]").astype(str).tolist() == dates
