"""Tables put in another form before they are read: times, months and names in one column."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, takewhile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.data.columns import (
    CALENDAR,
    FULL_MONTHS,
    are_few,
    calendar_part,
    is_time,
    may_be_time,
    plain,
)
from anharmonic.data.tables.cells import (
    Table,
    holds_text,
    is_numeric,
    may_be_dates,
    numbers,
    times,
)
from anharmonic.data.tables.dates import in_nanoseconds
from anharmonic.data.tables.wide import step_columns

_LIMITS = {"month": (1, 12), "quarter": (1, 4), "day": (1, 31), "hour": (0, 24)}
_LIMITS |= {"minute": (0, 59), "second": (0, 60)}


def with_joined_times(table: Table) -> Table:
    """Return the table with times from several columns joined in one, named after all of them."""
    for columns in (_date_and_clock(table), _date_and_hour(table), _parts(table)):
        stamps = _joined(table, columns) if columns else None
        if stamps is not None:
            arrow = table.without(columns).arrow
            arrow = arrow.add_column(0, " ".join(columns), pa.array(stamps))
            return replace(table, arrow=arrow)
    return table


def _date_and_clock(table: Table) -> list[str]:
    """Join a column of dates without hours and one of times of day."""
    named = [name for name in table.names if is_time(name) or may_be_time(name)]
    kinds = {name: may_be_dates(table, name) for name in named}
    clocks = [name for name, kind in kinds.items() if kind == "clock"]
    dates = [name for name, kind in kinds.items() if kind == "date"]
    if not dates:  # with eight digits
        dates = [name for name in named if is_numeric(table.column(name)) and _is_day(table, name)]
    return [dates[0], clocks[0]] if len(dates) == len(clocks) == 1 else []


def _date_and_hour(table: Table) -> list[str]:
    """Join a column of repeated dates and one of whole hours."""
    dates = [name for name in table.names if may_be_dates(table, name) == "date"]
    hours = [
        name
        for name in table.names
        if calendar_part(name) == "hour" and is_numeric(table.column(name))
    ]
    if len(dates) != 1 or len(hours) != 1:
        return []
    cells = table.arrow.select([dates[0], hours[0]])
    once = cells.select([0]).group_by([dates[0]]).aggregate([]).num_rows
    pairs = cells.group_by([dates[0], hours[0]]).aggregate([]).num_rows
    return [dates[0], hours[0]] if once < pairs else []


def _is_day(table: Table, name: str) -> bool:
    try:
        return times(table, name).dtype.kind == "M"
    except ValueError:
        return False


def _parts(table: Table) -> list[str]:
    """Join columns of a year and consecutive parts of it."""
    found: dict[str, str] = {}
    for name in table.names:
        part = calendar_part(name)
        if part in CALENDAR and is_numeric(table.column(name)):
            if part in found:
                return []
            found[part] = name
    if "year" not in found or any(may_be_dates(table, name) == "date" for name in table.names):
        return []
    units = ["year", "month", "day", "hour", "minute", "second"]
    if "quarter" in found and "month" not in found:
        units = ["year", "quarter"]
    columns = [found[unit] for unit in takewhile(found.__contains__, units)]
    return columns if len(columns) > 1 else []


def _joined(table: Table, columns: list[str]) -> NDArray[Any] | None:
    if calendar_part(columns[0]) != "year" or not is_numeric(table.column(columns[0])):
        is_number = is_numeric(table.column(columns[1]))
        try:
            days = times(table, columns[0])
            clock = numbers(table, columns[1]) if is_number else times(table, columns[1])
        except ValueError:
            return None
        if days.dtype.kind != "M" or clock.dtype.kind != "f":
            return None
        whole = (days == days.astype("M8[D]")).all()
        if calendar_part(columns[1]) == "hour" and is_number:
            whole = whole and _are_parts(table, columns[1], clock)
            clock = 3600 * clock
        if not whole or (clock < 0).any() or (clock > 86400).any():
            return None
        joined: NDArray[Any] = days + np.round(clock * 1e9).astype("m8[ns]")
        return joined
    values: list[NDArray[np.int64]] = []
    for name in columns:
        column = numbers(table, name)
        if not _are_parts(table, name, column):
            return None
        values.append(column.astype(np.int64))
    year, month, *rest = values
    if calendar_part(columns[1]) == "quarter":
        month = 3 * month - 2
    dates = (12 * (year - 1970) + month - 1).astype("M8[M]")
    stamps = in_nanoseconds(dates)
    if rest:
        stamps = stamps + (rest[0] - 1).astype("m8[D]")
        if not _are_alike(table, columns[2], stamps.astype("M8[M]") == dates):
            return None  # an invalid day of the month
    for unit, value in zip("hms", rest[1:], strict=False):
        stamps = stamps + value.astype(f"m8[{unit}]")
    return stamps


def _are_parts(table: Table, name: str, values: NDArray[np.float64]) -> bool:
    """Whether a column holds parts of dates, as its name says."""
    low, high = _LIMITS.get(str(calendar_part(name)), (1500, 2200))
    return _are_alike(
        table, name, (values == np.round(values)) & (values >= low) & (values <= high)
    )


def _are_alike(table: Table, name: str, right: NDArray[np.bool_]) -> bool:
    """Whether all cells are right; a few wrong ones are refused."""
    wrong = np.flatnonzero(~right)
    if len(wrong) and are_few(len(wrong), len(right)):
        row = int(wrong[0])
        came = f"{table.column(name)[row].as_py()} in {table.place(row)} ({len(wrong)} such rows)"
        expected = (
            f"column {name!r} of {table.where} must hold parts of dates, as almost all rows do"
        )
        advice = f"correct it, or rename the column, or leave it out with --ignore {name!r}"
        raise ValueError(message(expected, came, advice))
    return not len(wrong)


def months_as_rows(table: Table) -> Table:
    """Return a table with one row per month from a table with one row per year.

    Each of the 12 months is a column of the input. Months after the last known one of the last year
    are dropped. A table without this layout is returned as it is.
    """
    months: dict[int, str] = {}
    for name in table.names:
        month = _month(name)
        if month is not None:
            months.setdefault(month, name)
    years = [n for n in table.names if calendar_part(n) == "year" and is_numeric(table.column(n))]
    if len(months) != 12 or len(years) != 1:
        return table
    columns = [months[month] for month in range(12)]
    if not all(is_numeric(table.column(name)) for name in columns):
        return table
    year = numbers(table, years[0])
    if not (np.isfinite(year) & (year == np.round(year)) & (year > 1500) & (year < 2300)).all():
        return table
    values = np.stack([numbers(table, name) for name in columns], axis=1)
    known = ~np.isnan(values[:, ::-1])
    ended = ~np.logical_or.accumulate(known, axis=1)[:, ::-1].reshape(-1)
    values = values.reshape(-1)
    stamps = np.repeat(year.astype(np.int64) - 1970, 12) * 12 + np.tile(np.arange(12), len(year))
    kept = ~(ended & (np.repeat(year, 12) == year.max()))
    rows = np.repeat(np.arange(len(table)), 12)[kept]
    dates = stamps.astype("M8[M]").astype("M8[ns]")[kept]
    made = {
        f"{years[0]} {columns[0]}-{columns[-1]}": pa.array(dates),
        "value": pa.array(values[kept]),
    }
    others = [name for name in table.names if name not in (years[0], *columns)]
    repeated = table.arrow.select(others).take(rows)
    made |= {name: repeated.column(name) for name in others}
    return replace(table, arrow=pa.table(made))


def _month(name: str) -> int | None:
    word = plain(name)
    known = [at for at, full in enumerate(FULL_MONTHS) if len(word) > 2 and full.startswith(word)]
    return known[0] if known else None


def names_in_one(table: Table, known: str | None = None) -> Table:
    """Add a column that names each series if only several columns together identify it.

    Its name joins the names of these columns with blanks; its cells join their cells with slashes.
    In a new table, `known` is its name in training.
    """
    text = [n for n in table.names if holds_text(table, n) and not may_be_dates(table, n)]
    text = [name for name in text if known is None or f" {name} " in f" {known} "]
    if not 1 < len(text) <= 10 or step_columns(table.names) is None:
        return table
    cells = {name: table.column(name).to_pylist() for name in text}
    tried = [*([name] for name in text), *map(list, combinations(text, 2)), text]
    for columns in tried:
        rows = zip(*(cells[name] for name in columns), strict=True)
        joined = ["/".join(filter(None, row)) for row in rows]
        name = " ".join(columns)
        if name == known or (known is None and len(set(joined)) == len(table)):
            if len(columns) == 1:  # one column is enough
                return table
            return replace(table, arrow=table.arrow.add_column(0, name, pa.array(joined)))
    return table
