"""Conversion of a column's cells to numbers, labels, keys or times."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from anharmonic._checks import listed, message, require
from anharmonic.data.columns import are_few, calendar_part, plain
from anharmonic.data.tables.dates import (
    MixedZonesError,
    TwoMeaningsError,
    digit_dates,
    doubtful_form,
    in_nanoseconds,
    not_a_date,
    padded,
    parse_clock,
    parse_dates,
)

# Notations of missing values in text files.
MISSING = ("", "?", ".", "NA", "N/A", "NaN", "nan", "-nan", "null", "NULL", "None", "none")
# The same among numeric targets; "none" is the class of steps without an annotation.
_GAPS = frozenset(MISSING) - {"none"}
# Number of cells that decide whether a column holds dates.
_LOOKED_AT = 1000
_DATE_WORDS = frozenset("date datum fecha data dato дата 日期 日付 날짜 tarih".split())
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})")


@dataclass(frozen=True)
class Table:
    """An Arrow table with information to name places in messages.

    Attributes:
        arrow: The table, with unique column names.
        where: The file or frame.
        first_row: Number of the first row of cells, as users count.
        header: Whether the column names come from the file.
        date_format: Format of dates, as in `datetime.strptime`; None to detect it.
        starts: For several files in one table, the first row of each.
        sources: For several files, the name and `first_row` of each.
    """

    arrow: Any
    where: str
    first_row: int = 1
    header: bool = True
    date_format: str | None = None
    starts: tuple[int, ...] = ()
    sources: tuple[tuple[str, int], ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return list(self.arrow.column_names)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def place(self, row: int) -> str:
        """Describe a row for messages."""
        if self.starts:
            file = int(np.searchsorted(self.starts, row, side="right")) - 1
            name, first_row = self.sources[file]
            return f"row {row - self.starts[file] + first_row} of {name}"
        return f"row {row + self.first_row}"

    def column(self, name: str) -> Any:
        """Return a column as one Arrow array, with categories and views resolved, text trimmed."""
        column = self.arrow.column(name).combine_chunks()
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        if pa.types.is_dictionary(column.type):
            words = column.dictionary
            words = words.cast(pa.string()) if _is_text(words.type) else words
            column = pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            try:
                column = column.cast(pa.int64())
            except pa.ArrowInvalid:  # beyond 64 bits
                column = column.cast(pa.float64())
        text = _is_text(column.type)  # spaces around a name make no other name
        return compute.utf8_trim_whitespace(column.cast(pa.string())) if text else column

    def without(self, names: Collection[str]) -> Table:
        """Return the table without these columns."""
        return replace(self, arrow=self.arrow.drop_columns(list(names))) if names else self


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_list(kind: Any) -> bool:
    """Whether cells are lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_numeric(column: Any) -> bool:
    """Whether cells are numbers by their type, or all are missing."""
    kind, types = column.type, pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


_LARGEST_PARTS = {"year": 2200, "quarter": 4, "month": 12, "day": 31, "hour": 24, "cycle": 366}


def is_calendar(table: Table, name: str) -> bool:
    """Whether a numeric column holds parts of dates, judged by name and values."""
    part = calendar_part(name)
    if part is None:
        return False
    cells = numbers(table, name)
    cells = cells[np.isfinite(cells)]
    return bool((cells % 1 == 0).all() and (cells <= _LARGEST_PARTS.get(part, 60)).all())


def numbers(table: Table, name: str) -> NDArray[np.float64]:
    """Return a numeric column, with NaN for missing cells; refuse others by row and column."""
    column = table.column(name)
    if is_numeric(column):
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        floats = column.cast(pa.float64(), safe=False)
        made: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False)
        return made
    came, advice = str(column.type), "correct the cell, or say what the column is with "
    advice += "--target-column, --id-column, --time-column or --group-column"
    if _is_text(column.type):
        cells = column.to_pylist()
        values = list(map(_number, cells))
        if None not in values:
            return np.array(values, np.float64)
        row = values.index(None)
        came = f"{cells[row]!r} in {table.place(row)}"
        if re.fullmatch(r"[+-]?\d+,\d+", cells[row].strip()):
            advice = "write numbers with a point"
    expected = f"values in {table.where} must be numbers"
    raise ValueError(message(expected, f"{came}, column {name!r}", advice))


def _number(cell: str | None) -> float | None:
    """Return a number from text, NaN for a missing cell, None for anything else."""
    if cell is None or cell.strip() in MISSING:
        return np.nan
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def labels(table: Table, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a target column as integers, numbers or text, and the mask of known ones."""
    column = table.column(name)
    known = ~column.is_null().to_numpy(zero_copy_only=False)
    if _is_text(column.type):
        cells = [(cell or "").strip() for cell in column.to_pylist()]
        given = [cell for cell in cells if cell not in _GAPS]
        if given and all(_number(cell) is not None for cell in given):
            cells = ["" if cell in _GAPS else cell for cell in cells]
        known = known & np.array([cell != "" for cell in cells], dtype=bool)
        return _typed(cells, known), known
    types, kind = pa.types, column.type
    if types.is_boolean(kind):
        return column.fill_null(False).to_numpy(zero_copy_only=False), known
    if types.is_integer(kind):
        return column.fill_null(0).to_numpy(zero_copy_only=False), known
    came, advice = f"{kind} in column {name!r}", "name another column with target_column"
    numeric = is_numeric(column)
    require(numeric, f"targets in {table.where}", came, "numbers or text", advice)
    values = numbers(table, name)
    return values, known & ~np.isnan(values)


def _typed(cells: list[str], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Convert text to integers or numbers if all known cells allow it; "01" stays text."""
    given = [cell for cell, there in zip(cells, known, strict=True) if there]
    whole = sum(_WHOLE.fullmatch(cell) is not None for cell in given)
    if given and whole == len(given):
        return np.array([int(cell or 0) for cell in cells], dtype=np.int64)
    values = [_number(cell) for cell in cells]
    numeric = [value is not None and value == value for value in compress(values, known)]
    # Long digit strings could become equal as numbers.
    names = any(re.match(r"[+-]?0\d|[+-]?\d{16,}$", cell) for cell in given)
    if given and all(numeric) and not names:
        made = np.array([np.nan if value is None else value for value in values])
        # Columns of 1.0 and 2.0 are decimal. Beside cells such as 1, unless few, 1.0 is whole.
        if not are_few(whole, len(given)) and (np.abs(made[known]) < 2**53).all():
            if (made[known] % 1 == 0).all():
                return np.where(known, made, 0.0).astype(np.int64)
        return made
    return np.array(cells, dtype=np.str_)


def known_labels(table: Table, name: str) -> NDArray[Any]:
    """Return a target column without gaps."""
    values, known = labels(table, name)
    _all_known(table, name, "target", known)
    return values


def keys(table: Table, name: str, role: str) -> NDArray[Any]:
    """Return a column of sequence or group keys, without gaps, as int64 or text."""
    column = table.column(name)
    whole = pa.types.is_integer(column.type)
    if not whole and pa.types.is_floating(column.type):
        # Integers with gaps arrive as floats.
        values = numbers(table, name)
        _all_known(table, name, role, ~np.isnan(values))
        whole = bool((values == np.round(values)).all())
        column = column.cast(pa.int64(), safe=False) if whole else column
    fits = whole or _is_text(column.type) or pa.types.is_boolean(column.type)
    came, advice = f"{column.type} in column {name!r}", f"name another column with {role}_column"
    require(fits, f"{role} column in {table.where}", came, "whole numbers or text", advice)
    cells = column.to_pylist()
    known = np.array([cell is not None and cell != "" for cell in cells], dtype=bool)
    _all_known(table, name, role, known)
    # Numbers beyond signed 64 bits are treated as names.
    whole = whole and all(-(2**63) <= cell < 2**63 for cell in cells)
    return np.array(cells, dtype=np.int64) if whole else np.array([str(cell) for cell in cells])


def _all_known(table: Table, name: str, role: str, known: NDArray[np.bool_]) -> None:
    gaps = np.flatnonzero(~known)
    if len(gaps):
        came = f"an empty cell in {table.place(int(gaps[0]))} ({len(gaps)} such rows)"
        expected = f"{role} column {name!r} of {table.where} must be filled in every row"
        raise ValueError(message(expected, came, "fill or remove these rows"))


def times(table: Table, name: str) -> NDArray[Any]:
    """Return a time column as float64, or datetime64 in nanoseconds (UTC if it has a zone).

    Integers such as 20240131 are dates. Times of day become seconds. There are no gaps.
    """
    column, types = table.column(name), pa.types
    if kind := _temporal(column.type):
        _all_known(table, name, "time", ~column.is_null().to_numpy(zero_copy_only=False))
        if kind == "clock":
            ticks = column.cast(pa.time64("ns")).cast(pa.int64()).to_numpy()
            return np.asarray(ticks, np.float64) / 1e9
        stamps = column.to_numpy(zero_copy_only=False)
        return in_nanoseconds(np.asarray(stamps, "M8[D]" if types.is_date(column.type) else None))
    if _is_text(column.type):
        cells = column.to_pylist()
        _all_known(table, name, "time", np.array([bool(cell) for cell in cells], dtype=bool))
        few = cells[:_LOOKED_AT]
        if 2 * sum(_number(cell) is None for cell in few) > len(few) or table.date_format:
            return _dates(table, name, cells)
    elif not is_numeric(column):
        expected = f"times in {table.where} must be numbers or dates like 2024-01-31 12:30:00"
        came = f"{column.type} in column {name!r}"
        raise ValueError(message(expected, came, "write one of these"))
    values = numbers(table, name)
    _all_known(table, name, "time", np.isfinite(values))
    if table.date_format is not None:
        return _dates(table, name, padded(values, table.date_format))
    months = calendar_part(name) == "month" or plain(name) in ("date", "period", "yyyymm", "time")
    dates = digit_dates(values, months)
    if dates is None and (odd := not_a_date(values, months)) is not None:
        came = f"{values[odd]:.15g} in {table.place(odd)}, column {name!r}"
        expected = f"times in {table.where} must all be dates in digits, as almost all are"
        advice = "correct it or remove the row; if these are no dates, write --time-column none"
        raise ValueError(message(expected, came, advice))
    return values if dates is None else dates


def have_zone(table: Table, name: str) -> bool:
    """Whether the dates in a column have a time zone; `times` returns them in UTC."""
    column = table.column(name)
    if not _is_text(column.type):
        return pa.types.is_timestamp(column.type) and column.type.tz is not None
    first = str(column[0].as_py()).strip()
    return re.search(r"\d(Z|\s*(UTC|GMT)|:\d\d\S*[+-]\d\d(:?\d\d)?)$", first) is not None


def clear_times(table: Table, name: str, warn: bool = False) -> NDArray[Any]:
    """Return a column of times; refuse numbers that may be dates, such as 31012024 and 1005.

    `warn` says whether to warn of times such as 03:25, which may be minutes and seconds.
    """
    found = times(table, name)
    if warn and may_be_dates(table, name) == "clock" and table.date_format is None:
        cell = table.column(name)[int(found.argmax())].as_py()
        pair = re.fullmatch(r"\s*(\d+):(\d+)\s*", str(cell))
        if pair and found.max() == 3600 * int(pair[1]) + 60 * int(pair[2]):
            text = f"Times such as {cell!r} in column {name!r} of {table.where} are read as hours "
            text += "and minutes. If they are minutes and seconds, say --date-format '%M:%S'."
            warnings.warn(text, stacklevel=2)
    if found.dtype.kind != "f" or not is_numeric(table.column(name)):
        return found
    doubtful = doubtful_form(found, bool(_DATE_WORDS & set(plain(name).split())))
    if doubtful is not None:
        came = f"{found.max():.0f} in column {name!r}, which may be written as {doubtful!r}"
        advice = f"say so with --date-format '{doubtful}', or take the file's order with "
        advice += "--time-column none"
        raise ValueError(message(f"times in {table.where} must be clear", came, advice))
    return found


def _dates(table: Table, name: str, cells: Sequence[str]) -> NDArray[Any]:
    form = table.date_format
    found: NDArray[Any] | None
    try:
        found = parse_dates(cells, form)
    except MixedZonesError as error:
        advice = "write all with a time zone, or none"
        what = f"dates in column {name!r} of {table.where} must be all of one kind"
        came = f"{cells[error.row]!r} in {table.place(error.row)}, {error}"
        raise ValueError(message(what, came, advice)) from None
    except TwoMeaningsError as error:
        came = f"{str(error)!r} in column {name!r}, where day, month or year may come first"
        advice = "say how they are written with --date-format '%d/%m/%Y' (date_format=...)"
        what = f"dates of {table.where} must be clear"
        raise ValueError(message(what, came, advice)) from None
    if found is None and form is None:
        found = parse_clock(cells)
    if found is not None:
        return found
    row = next((row for row, cell in enumerate(cells) if not _are_dates([cell], form)), None)
    if row is None:  # each of them is a date
        row = _rarest([re.sub(r"\d+", "0", cell.strip()) for cell in cells])
    if row is None and all(re.fullmatch(r"\d+:\d+", cell.strip()) for cell in cells):
        # One 80:15 among times of day.
        row = max(range(len(cells)), key=lambda row: int(cells[row].partition(":")[0]))
    if row is None:  # the first that contradicts those above
        rows = range(len(cells) - 1)
        row = bisect_left(rows, True, key=lambda row: not _are_dates(cells[: row + 1], form))
    came = f"{cells[row]!r} in {table.place(row)}, column {name!r}"
    kind = "dates like 2024-01-31T12:30:00" if form is None else f"dates written as {form!r}"
    advice = "write all in one form, or say it with --date-format (date_format)"
    expected = f"times in {table.where} must be numbers or {kind}"
    raise ValueError(message(expected, came, advice))


def _rarest(kinds: Sequence[Any]) -> int | None:
    """Return the row of the first cell of the rarest kind; None if all are alike."""
    counts = Counter(kinds)
    return kinds.index(min(counts, key=lambda kind: counts[kind])) if len(counts) > 1 else None


def _are_dates(cells: Sequence[str], form: str | None) -> bool:
    try:
        if parse_dates(cells, form) is not None:
            return True
    except ValueError:  # at least one reading is a date
        return True
    return form is None and parse_clock(cells) is not None


def are_mostly_dates(table: Table, name: str) -> bool:
    """Whether most of the first different cells of a column are dates or times of day."""
    cells = [cell for cell in table.column(name).slice(0, _LOOKED_AT).unique().to_pylist() if cell]
    few = cells[:20]
    return 2 * sum(
        _number(cell) is None and _are_dates([cell], table.date_format) for cell in few
    ) > len(few)


def _temporal(kind: Any) -> str:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "clock" if pa.types.is_time(kind) else ""


def may_be_dates(table: Table, name: str) -> str:
    """Return the kind of times in a column of text or dates: "date", "clock" or ""."""
    column = table.column(name)
    if not _is_text(column.type):
        return _temporal(column.type)
    first = column.slice(0, _LOOKED_AT).drop_null().to_pylist()
    cells = [cell for cell in first if cell.strip()]
    try:
        if not cells or all(_number(cell) is not None for cell in cells[:100]):
            return ""
        if parse_dates(cells, table.date_format) is not None:
            return "date"
    except ValueError:  # at least one reading is a date
        return "date"
    return "" if parse_clock(cells) is None else "clock"


def holds_text(table: Table, name: str) -> bool:
    """Whether a column is text, and none of its first hundred known cells is a number."""
    column = table.column(name)
    if not _is_text(column.type):
        return False
    known = (cell for cell in column.to_pylist() if (cell or "").strip() not in MISSING)
    return all(_number(cell) is None for cell in islice(known, 100))


def quoted(names: Sequence[str], at_most: int = 12) -> str:
    """Format names for a message, shortened if there are many."""
    shown = [repr(name) for name in names]
    if len(shown) > at_most:
        shown = [*shown[: at_most - 2], "...", shown[-1]]
    return listed(shown)
