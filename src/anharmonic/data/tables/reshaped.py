"""Reshape forecasting tables with months as columns or with names in several columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from anharmonic.data.columns import FULL_MONTHS, calendar_part, plain
from anharmonic.data.tables.cells import Table, holds_text, is_numeric, may_be_dates, numbers
from anharmonic.data.tables.wide import step_columns

VALUE = "value"
"""The name of the channel of a table whose columns were months."""


def months_as_rows(table: Table) -> Table:
    """Return a table with one row per month from a table with one row per year.

    Each of the 12 months is a column of the input. Empty months at the end of the last year are
    dropped. A table without this layout is returned as it is.
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
    values = np.stack([numbers(table, name) for name in columns], axis=1).reshape(-1)
    stamps = np.repeat(year.astype(np.int64) - 1970, 12) * 12 + np.tile(np.arange(12), len(year))
    kept = ~(np.isnan(values) & (np.repeat(year, 12) == year.max()))
    rows = np.repeat(np.arange(len(table)), 12)[kept]
    dates = stamps.astype("M8[M]").astype("M8[ns]")[kept]
    made = {
        f"{years[0]} {columns[0]}-{columns[-1]}": pa.array(dates),
        VALUE: pa.array(values[kept]),
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
