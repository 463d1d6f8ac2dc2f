"""Times that are written in several columns: a date and a clock, or year, month and day."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic.data.names import CALENDAR, calendar_part, is_time, may_be_time
from anharmonic.data.tables.cells import Table, is_numeric, may_be_dates, numbers, times

_PARTS = tuple(CALENDAR)
_LIMITS = {"month": (1, 12), "quarter": (1, 4), "day": (1, 31), "hour": (0, 24)}
_LIMITS |= {"minute": (0, 59), "second": (0, 60)}


def with_joined_times(table: Table) -> Table:
    """The table with one column of times where they are written in several.

    The new column has their names, with blanks between, and comes in their place.

    Args:
        table: The table.
    """
    for columns in (_date_and_clock(table), _date_and_hour(table), _parts(table)):
        if columns:
            stamps = _joined(table, columns)
            if stamps is not None:
                name = " ".join(columns)
                made = table.without(columns)
                arrow = made.arrow.add_column(0, name, pa.array(stamps))
                return replace(made, arrow=arrow)
    return table


def _date_and_clock(table: Table) -> list[str]:
    """A column of dates without hours, and one of times of day."""
    named = [name for name in table.names if is_time(name) or may_be_time(name)]
    kinds = {name: may_be_dates(table, name) for name in named}
    clocks = [name for name, kind in kinds.items() if kind == "clock"]
    dates = [name for name, kind in kinds.items() if kind == "date"]
    if not dates:  # of eight digits
        dates = [name for name in named if is_numeric(table.column(name)) and _is_day(table, name)]
    return [dates[0], clocks[0]] if len(dates) == len(clocks) == 1 else []


def _date_and_hour(table: Table) -> list[str]:
    """A column of dates that come again, and one of whole hours."""
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
    """Columns of a year and of parts of it, none left out between."""
    found: dict[str, str] = {}
    for name in table.names:
        part = calendar_part(name)
        if part in _PARTS and is_numeric(table.column(name)):
            if part in found:
                return []
            found[part] = name
    if "year" not in found or any(may_be_dates(table, name) == "date" for name in table.names):
        return []
    if "quarter" in found and "month" not in found:
        return [found["year"], found["quarter"]]
    columns = [found["year"]]
    for part in ("month", "day", "hour", "minute", "second"):
        if part not in found:
            break
        columns.append(found[part])
    return columns if len(columns) > 1 else []


def _joined(table: Table, columns: list[str]) -> NDArray[Any] | None:
    if calendar_part(columns[0]) != "year" or not is_numeric(table.column(columns[0])):
        try:
            days, clock = times(table, columns[0]), times(table, columns[1])
        except ValueError:
            return None
        if days.dtype.kind != "M" or clock.dtype.kind != "f":
            return None
        whole = (days == days.astype("M8[D]")).all()
        if calendar_part(columns[1]) == "hour" and is_numeric(table.column(columns[1])):
            whole = whole and bool((clock % 1 == 0).all()) and clock.max() <= 24
            clock = 3600 * clock
        if not whole or (clock < 0).any() or (clock > 86400).any():
            return None
        joined: NDArray[Any] = days + np.round(clock * 1e9).astype("m8[ns]")
        return joined
    values: list[NDArray[np.int64]] = []
    for name in columns:
        column = numbers(table, name)
        low, high = _LIMITS.get(calendar_part(name) or "", (1500, 2200))
        fits = np.isfinite(column) & (column == np.round(column)) & (column >= low)
        if not (fits & (column <= high)).all():
            return None
        values.append(column.astype(np.int64))
    year, month, *rest = values
    if calendar_part(columns[1]) == "quarter":
        month = 3 * month - 2
    dates = (12 * (year - 1970) + month - 1).astype("M8[M]")
    stamps = dates.astype("M8[ns]")
    for unit, value in zip(("D", "h", "m", "s"), rest, strict=False):
        stamps = stamps + (value - (unit == "D")).astype(f"m8[{unit}]")
    if rest and (stamps.astype("M8[M]") != dates).any() and rest[0].max() > 28:
        return None  # a day that the month does not have
    return stamps
