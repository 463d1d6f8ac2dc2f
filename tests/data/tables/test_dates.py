"""Dates and times of day in tables: how they are written, and which doubts are told."""

import numpy as np
import pyarrow as pa
import pytest

from anharmonic.data.tables.cells import Table
from anharmonic.data.tables.dates import TwoMeaningsError, parse_clock, parse_dates
from anharmonic.data.tables.reshaped import with_joined_times

ABC = {"a": [1, 2, 3]}
CLOCK = {"time": ["03:10", "03:25", "03:40"], **ABC}
SLASHES = ["01/02/2024", "03/01/2024", "02/04/2024"]
# Falling if months come first.
FEW = ["05/01/2024", "04/02/2024", "03/03/2024", "02/04/2024"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
MINUTES = [f"{day}/{month:02d}/2024 0:{minute:02d}" for month in range(1, 13)
           for day in range(1, 29) for minute in range(7)]  # fmt: skip
YEARS = [f"{day:02d}/{month:02d}/{year}" for _ in range(2) for year in range(19, 25)
         for month in range(1, 13) for day in range(1, 29)]  # fmt: skip


@pytest.mark.parametrize(
    "cells",
    [FEW, [f"24/01/{day}" for day in range(20, 30)], [f"{day}-Jan" for day in range(10, 30)]],
)
def test_dates_of_two_meanings(cells):
    with pytest.raises(TwoMeaningsError):
        parse_dates(cells)


@pytest.mark.parametrize(
    ("cells", "place", "date"),
    [
        ([*FEW, "01/05/2024"], 1, "2024-02-04"),
        (["24/01/29", "24/01/30", "24/01/31", "24/02/01", "24/02/02"], 2, "2024-01-31"),
        (["29/01/24", "30/01/24", "31/01/24", "01/02/24", "02/02/24"], 2, "2024-01-31"),
        ([f"{year}-{month}" for year in (10, 11) for month in MONTHS], 1, "2010-02-01"),
        (["97-Jan", "97-Feb"], 1, "1997-02-01"),
        (MINUTES, 7 * 27, "2024-01-28T00:00:00.000000000"),  # of many, some are read first
        (YEARS, 30, "2019-02-03"),
        # A day that no month has is no date.
        (["31/02/2024 0:00"], 0, ""),
        ([*MINUTES, "31/02/2024 0:00"], 0, ""),
    ],
)
def test_dates_are_read(cells, place, date):
    found = parse_dates(cells)
    assert (found is None) == (date == "")
    assert found is None or str(found[place])[: len(date)] == date


def test_parts_of_dates_in_columns_make_a_day_that_the_month_has():
    no_date = {"year": [2024, 2024], "month": [2, 2], "day": [28, 31]}  # not the second of March
    assert with_joined_times(Table(pa.table(no_date), "here")).names == list(no_date)
    table = with_joined_times(Table(pa.table(no_date | {"day": [28, 29]}), "here"))
    assert str(table.arrow.columns[0].to_numpy()[1])[:10] == "2024-02-29"
    # The hours of a day may be 1 to 24.
    hours = {"year": [2024] * 2, "month": [1] * 2, "day": [31] * 2, "hour": [23, 24]}
    table = with_joined_times(Table(pa.table(hours), "here"))
    assert str(table.arrow.columns[0].to_numpy()[1])[:16] == "2024-02-01T00:00"


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["0:00.5", "0:01", "1:00:00"], [0.5, 1.0, 3600.0]),
        (["10:30", "9:05"], [37800.0, 32700.0]),
        (["24:00", "0:30"], [86400.0, 1800.0]),
        (["24:59", "0:30"], [1499.0, 30.0]),  # no clock shows 24:59
    ],
)
def test_all_times_of_a_stopwatch_have_one_unit(cells, seconds):
    assert parse_clock(cells).tolist() == seconds


def test_hours_and_minutes_that_may_be_minutes_and_seconds_are_warned_of(read):
    with pytest.warns(UserWarning, match=r"'03:40' in column 'time' .*--date-format '%M:%S'"):
        part = read(CLOCK, "forecast")
    assert part.interval == read(CLOCK, "new", columns=part.columns).interval == 900


@pytest.mark.parametrize(
    ("name", "cells", "form", "first"),
    [
        ("date", [30012024, 31012024, 1022024, 2022024], "%d%m%Y", "2024-01-30"),
        ("Datum", [240130, 240131, 240201], "%y%m%d", "2024-01-30"),
        ("time", [850, 855, 900, 905, 910], "%H%M", "1900-01-01"),
    ],
)
def test_numbers_that_may_be_dates_or_times_of_day_are_refused(read, name, cells, form, first):
    table = {name: cells, "a": range(len(cells))}
    with pytest.raises(ValueError, match=f"written as '{form}'.*--date-format '{form}'"):
        read(table, "forecast")
    part = read(table, "forecast", date_format=form)
    assert part.x[:, 0].tolist() == list(range(len(cells))) and part.elapsed is None
    assert str(part.times[0])[:10] == first


FORECAST, HALF_HOURS = {"mode": "forecast"}, [f"{h:02d}:{m:02d}" for h in range(3) for m in (0, 30)]
MORNING = "".join(f"2025-02-01,09:00:0{t},s{n},{t}\n" for n in range(2) for t in range(3))
DAYS, GAP = ["2024-01-01", "2024-01-02", "2024-01-05"], {"v": [1, 2, 3], "y": [0.1, 0.2, 0.3]}
UNEVEN = {"id": [1, 1, 1, 2, 2], "t": [0.0, 1, 3, 7, 8], "v": range(5), "y": [1, 1, 1, 2, 2]}
READ = [
    ({"date": SLASHES, **ABC}, {"date_format": "%d/%m/%Y", **FORECAST}, {"x": [2, 1, 3]}),
    ({"date": SLASHES, **ABC}, {"date_format": "%m/%d/%Y", **FORECAST}, {"x": [1, 3, 2]}),
    ({"time": ["00:00:02", "23:00:00", "00:00:01", "00:00:00"], "a": range(4)}, FORECAST,
     {"x": [3, 2, 0, 1]}),
    ({"label": [*"ab"], **{time: [at, 9] for at, time in enumerate(HALF_HOURS)}}, {},
     {"layout": "wide", "x": [*range(6), *[9] * 6]}),
    ("date,time,subject,v\n" + MORNING, {"mode": "new", "id": "subject"},
     {"time": "date time", "interval": 1}),
    (CLOCK, {"date_format": "%M:%S", **FORECAST}, {"interval": 15}),
    # A given format decides also where days and months could be read otherwise.
    ("t,a\n2024-01-02,1\n2024-02-02,2\n2024-03-02,3\n", {"date_format": "%Y-%d-%m", **FORECAST},
     {"begins": "2024-02-01", "interval": 86400}),
    ({"t": [f"{day}/01/2024 12:30 UTC" for day in (13, 14)], "a": [1, 2]},
     {"date_format": "%d/%m/%Y %H:%M UTC", **FORECAST}, {"begins": "2024-01-13"}),
    ({"date": ["2024-01-01"] * 3, **CLOCK}, FORECAST, {"interval": 900}),
    # Numbers that count stay numbers.
    *(({"date": cells, "a": range(len(cells))}, FORECAST,
       {"times": [cells[0]], "begins": None, "elapsed": None})
      for cells in (range(100, 112), range(850, 950, 5), [738000, 738001, 738002])),
    ({"date": [2024366, 2025001], "a": [1, 2]}, FORECAST, {"interval": 86400}),
    # Dates are counted in seconds, numbers in the unit of their column.
    *((pa.table({"date": dates, **GAP}), {},
       {"elapsed": [0, 86400, 3 * 86400], "begins": "2024-01-01"}) for dates in (
          DAYS,
          ["2024-01-01T00:00:00Z", "2024-01-02T01:00+01:00", "2024-01-05T00:00:00+00:00"],
          np.array(DAYS, "M8[s]"),
          np.array(DAYS, "M8[D]"),
      )),
    (pa.table({"date": ["2024-01", "2024-02", "2024-03"], **GAP}), {},
     {"elapsed": [0, 31 * 86400, 29 * 86400]}),
    (UNEVEN, {}, {"elapsed": [0, 1, 2, 0, 1], "interval": 1.0}),
    # Steps that differ by less than a percent are even.
    ({"t": [0, 50, 100, 150.45], "v": [1, 2, 3, 4]}, FORECAST, {"elapsed": None}),
    ({"t": [0, 50, 100, 151], "v": [1, 2, 3, 4]}, FORECAST, {"elapsed": [0, 50, 50, 51]}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "how", "right"), READ)
def test_tables_of_times(check, table, how, right):
    check(table, right, **how)
