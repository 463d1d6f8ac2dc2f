"""Parsing of dates and times of day."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from anharmonic._checks import message
from anharmonic.data.columns import are_few

Dates = NDArray[np.datetime64]

_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %b %y", "%b %d %Y",
    "%b %d, %Y", "%d %B %Y", "%d. %B %Y", "%B %d, %Y", "%B %d %Y", "%A %d %B %Y", "%a %d %b %Y",
    "%A, %d %B %Y", "%A, %B %d, %Y", "%Y %b %d", "%Y %m %d", "%Y%m%d", "%y/%m/%d", "%y.%m.%d",
)  # fmt: skip
_MONTHS = (
    "%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y", "%b %Y", "%B %Y", "%b-%y", "%b-%Y", "%y-%b", "%Y-%b",
    "%Y %b", "%YM%m", "%b %y",
)  # fmt: skip
_CLOCKS = (
    "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%H.%M.%S", "%H.%M", "%Hh%M",
    "%H:%M:%S,%f",
)  # fmt: skip
_TIMES_OF_DAY = ("", *(gap + clock for clock in _CLOCKS for gap in (" ", "T")))
_FORMS = (*(day + clock for day in _DAYS for clock in _TIMES_OF_DAY), *_MONTHS)
_QUARTER = re.compile(
    r"(?P<y>\d{4})[ -]?Q(?P<q>[1-4])|Q(?P<q2>[1-4])[ -/]?(?P<y2>\d{4})", re.IGNORECASE
)
_SPAN = re.compile(r"([+-]?[\d.]+(?:e[+-]?\d+)?) (sec|min|hr)", re.IGNORECASE)
_SECONDS = {"sec": 1.0, "min": 60.0, "hr": 3600.0}
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,4}):(\d{1,2}(?:[.,]\d+)?)")
# From this number of cells on Arrow parses dates, ten times as fast.
_MANY = 2000
# Number of cells that determine the possible formats of a column.
_LOOKED_AT = 30


def in_nanoseconds(dates: NDArray[Any]) -> Dates:
    """Convert dates of any unit to nanoseconds, which cover 1678 to 2261.

    Example:
        >>> in_nanoseconds(np.array(["2024-01-31"], "M8[D]")).dtype
        dtype('<M8[ns]')
    """
    years = dates.astype("M8[Y]").astype(np.int64) + 1970
    outside = np.flatnonzero((years < 1678) | (years > 2261))
    if len(outside):
        first = str(dates[outside[0]].astype("M8[s]"))
        advice = "correct it, or number the steps in another column (--time-column)"
        raise ValueError(message("dates must lie between 1678 and 2261", first, advice))
    return np.asarray(dates.astype("M8[ns]"))


class TwoMeaningsError(ValueError):
    """Dates are ambiguous in the order of day, month and year."""


def parse_dates(cells: Sequence[str], form: str | None = None) -> Dates | None:
    """Parse dates to nanoseconds, in UTC if they have an offset; None if they are of no one form.

    Args:
        cells: All cells of a column, without empty ones.
        form: The format, as in `datetime.strptime`; None to detect it.

    Raises:
        TwoMeaningsError: If day, month and year cannot be told apart.

    Example:
        >>> parse_dates(["31.01.2024", "01.02.2024"]).astype("M8[D]").tolist()
        [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)]
        >>> parse_dates(["1990 Q2"]).astype("M8[M]").tolist()
        [datetime.date(1990, 4, 1)]
        >>> parse_dates(["up", "down"])
    """
    cells = [cell.strip() for cell in cells]
    if form is not None:
        dates = _stamps(cells, form)  # the format may end in a zone, too
        return _dated(cells, [form]) if dates is None else dates
    few = list(dict.fromkeys(cells[: 10 * _LOOKED_AT]))[:_LOOKED_AT]
    if not few or not all(re.search(r"\d", cell) and len(cell) < 60 for cell in few):
        return None
    if _of_iso(few) is not None:
        return _iso(cells)
    if all(_QUARTER.fullmatch(cell) for cell in few):
        return _quarters(cells)
    bare = [_without_zone(cell) for cell in few]
    forms = [form for form in _FORMS if _one(bare, form) is not None]
    if "%y-%b" in forms and _may_be_days(cells):
        raise TwoMeaningsError(cells[0])
    return _dated(cells, forms)


def _may_be_days(cells: Sequence[str]) -> bool:
    """Whether 10-Jan may be a day of January: not if days fall where months of years rise."""
    days = _one([f"{cell}-2000" for cell in cells], "%d-%b-%Y")
    return days is not None and (
        days == sorted(days)
        or cells != sorted(cells, key=lambda cell: datetime.strptime(cell, "%y-%b"))
    )


def _without_zone(cell: str) -> str:
    return re.sub(r"\s*(Z|UTC|GMT)$", "", cell)


@functools.cache
def _shape(form: str) -> re.Pattern[str]:
    """What cells of a form look like; it takes more than `strptime`, which is slow to refuse."""
    digits = {"Y": r"\d{4}", "f": r"\d{1,6}", **dict.fromkeys("mdHIMSy", r"\s?\d{1,2}")}
    pattern = re.sub(r"(\\\s)+", r"\\s+", re.escape(form))
    pattern = re.sub(r"%(.)", lambda found: digits.get(found[1], ".*"), pattern)
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _one(cells: Sequence[str], form: str) -> list[datetime] | None:
    if not all(map(_shape(form).fullmatch, cells)):
        return None
    try:
        return [datetime.strptime(cell, form) for cell in cells]
    except ValueError:
        return None


def _stamps(cells: Sequence[str], form: str) -> Dates | None:
    """Parse dates of one format; None if these are not."""
    if len(cells) >= _MANY and not re.search(r"%[fpbBaAz]", form):
        many = compute.strptime(pa.array(cells), format=form, unit="s", error_is_null=True)
        # Arrow takes 31/02 for the second of March, which is then written otherwise.
        texts = [
            compute.replace_substring_regex(text, r"\b0(\d)", r"\1")
            for text in (pa.array(cells), compute.strftime(many, form))
        ]
        if texts[0].equals(texts[1]):
            return in_nanoseconds(many.to_numpy(zero_copy_only=False))
    places = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    made = _one(list(places), form)
    if made is None:
        return None
    dates = in_nanoseconds(np.array([_in_utc(date) for date in made], "M8[us]"))
    return dates[[places[cell] for cell in cells]]


def _dated(cells: Sequence[str], forms: Sequence[str]) -> Dates | None:
    bare = [_without_zone(cell) for cell in cells]
    found: list[Dates] = []
    for form in forms:
        dates = _stamps(bare, form)
        if dates is None or any(np.array_equal(dates, other) for other in found):
            continue
        if form[:3] in ("%y/", "%y.") and any(_ways(one) <= _ways(dates) for one in found):
            continue  # short years seldom come first, unless days would be years apart
        found.append(dates)
    if len(found) < 2:
        return found[0] if found else None
    rising = [one for one in found if (np.diff(one) > np.timedelta64(0)).all()]
    if len(rising) == 1 and len(cells) > 4:  # the order of the file decides
        return rising[0]
    raise TwoMeaningsError(cells[0])


def _ways(dates: Dates) -> int:
    """Return the sum of all steps, forwards and backwards."""
    return int(np.abs(np.diff(dates.astype("M8[s]")).astype(np.int64)).sum())


def _of_iso(cells: Sequence[str]) -> list[datetime] | None:
    try:
        return [datetime.fromisoformat(re.sub(r"^\d{4}-\d{2}$", r"\g<0>-01", c)) for c in cells]
    except ValueError:
        return None


def _iso(cells: Sequence[str]) -> Dates | None:
    made = _of_iso(cells)
    if made is None:
        return None
    zoned = [date.tzinfo is not None for date in made]
    if any(zoned) and not all(zoned):
        error = MixedZonesError(f"{sum(zoned)} of {len(made)} with a time zone")
        error.row = zoned.index(2 * sum(zoned) < len(made))
        raise error
    return in_nanoseconds(np.array([_in_utc(date) for date in made], "M8[us]"))


def _in_utc(date: datetime) -> datetime:
    try:
        return date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # at the limits of the calendar
        return date.replace(tzinfo=None)


class MixedZonesError(ValueError):
    """Only some of the dates have a time zone; `row` is the first of the fewer."""

    row: int


def _quarters(cells: Sequence[str]) -> Dates | None:
    found = [_QUARTER.fullmatch(cell) for cell in cells]
    if not all(found):
        return None
    quarters = [(one["y"] or one["y2"], int(one["q"] or one["q2"])) for one in found if one]
    months = [f"{year}-{3 * quarter - 2:02d}" for year, quarter in quarters]
    return in_nanoseconds(np.array(months, "M8[M]"))


def parse_clock(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Parse times of day, of a stopwatch or of MATLAB: `10:30`, `0:00.250` or `0.25 sec`.

    Two numbers are hours and minutes, or minutes and seconds if a cell has a fraction of a second
    or the first number of a cell exceeds 24. None if these are not times, or not all of one form.

    Example:
        >>> parse_clock(["0:00.5", "0:01", "1:01.5"]).tolist(), parse_clock(["10.30.00"]).tolist()
        ([0.5, 1.0, 61.5], [37800.0])
        >>> parse_clock(["24:59", "25:00"]).tolist()
        [1499.0, 1500.0]
        >>> parse_clock(["0 sec", "0.25 sec"]).tolist()
        [0.0, 0.25]
        >>> parse_clock(["59:59", "1:00:00"])
    """
    spans = [_SPAN.fullmatch(cell.strip()) for cell in cells]
    if all(spans):
        return np.array([float(span[1]) * _SECONDS[span[2].lower()] for span in spans if span])
    made = np.empty(len(cells))
    pairs = []
    stopwatch = False
    for row, cell in enumerate(cells):
        parts = cell.strip()
        if re.fullmatch(r"\d{1,2}\.\d{2}\.\d{2}", parts):
            parts = parts.replace(".", ":")
        found = _CLOCK.fullmatch(parts)
        if found is None:
            return None
        hours, minutes, seconds = found[1], int(found[2]), float(found[3].replace(",", "."))
        if seconds >= 60 or (hours is not None and minutes >= 60):
            return None
        if hours is None:
            pairs.append(row)
            stopwatch = stopwatch or "." in found[3] or "," in found[3]
        made[row] = 3600 * int(hours or 0) + 60 * minutes + seconds
    if pairs and not stopwatch:
        if len(pairs) < len(cells):
            return None  # 59:59 beside 1:00:00 may be minutes and seconds
        if made.max() <= 24 * 60:
            made *= 60  # hours and minutes
        elif _is_far(made, 24 * 60):
            return None  # one 80:15 does not make minutes and seconds of 08:00
    return made


def _is_far(times: NDArray[np.float64], limit: float) -> bool:
    """Whether a few times exceed a limit and are far from the others."""
    known = np.unique(times)
    below = int((known <= limit).sum())
    few = 0 < below < len(known) and are_few(int((times > limit).sum()), len(times))
    return bool(few and known[below] - known[below - 1] > 10 * np.median(np.diff(known)))


def digit_dates(values: NDArray[np.float64], months: bool = False) -> Dates | None:
    """Parse integers such as 20240131, 2024031 or 20240131123000 as dates, or return None.

    `months` also allows six digits, such as 202401.

    Example:
        >>> digit_dates(np.array([20240131.0, 20240201.0])).astype("M8[D]").tolist()
        [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)]
        >>> digit_dates(np.array([20241301.0]))
    """
    if not len(values) or not (np.isfinite(values) & (values == np.round(values))).all():
        return None
    if values.min() < 0 or values.max() >= 1e15:
        return None
    cells = [str(int(value)) for value in values]
    size = len(cells[0])
    form = {6: "%Y%m" if months else None, 7: "%Y%j", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M",
            14: "%Y%m%d%H%M%S"}.get(size)  # fmt: skip
    if form is None or any(len(cell) != size for cell in cells):
        return None
    if not "1800" <= min(cells)[:4] <= max(cells)[:4] <= "2199":
        return None
    return _stamps(cells, form)


def not_a_date(values: NDArray[np.float64], months: bool = False) -> int | None:
    """Return the row of the first number that is no date where almost all are, or None.

    Example:
        >>> not_a_date(np.array([*range(20240101, 20240132), 20240132.0]))
        31
    """
    usual = np.sort(values)[len(values) // 2 :][:1]

    def wrong(few: NDArray[np.float64]) -> NDArray[np.bool_]:
        pairs = (np.append(usual, value) for value in few)  # of as many digits
        return np.array([digit_dates(pair, months) is None for pair in pairs])

    if len(values) < 20 or wrong(values[:: len(values) // 20]).mean() > 0.1:
        return None
    odd = np.flatnonzero(wrong(values))
    return int(odd[0]) if len(odd) and are_few(len(odd), len(values)) else None


def padded(values: NDArray[np.float64], form: str) -> list[str]:
    """Return integers as text of the width of a format, with zeros in front.

    Example:
        >>> padded(np.array([1022024.0]), "%d%m%Y")
        ['01022024']
    """
    width = len(datetime(2024, 12, 31, 23, 59, 59, 999999).strftime(form))
    return [f"{value:0{width}.0f}" for value in values]


def doubtful_form(values: NDArray[np.float64], dated: bool) -> str | None:
    """Return the format in which numbers may be dates or times of day; None if they hardly are.

    `dated` says that their name means dates, such as 31012024 and 240131. Times of day, such as 905
    and 1005, are equally spaced, unlike these numbers.

    Example:
        >>> doubtful_form(np.array([55.0, 100.0, 105.0, 110.0, 115.0]), dated=False)
        '%H%M'
        >>> doubtful_form(np.array([31012024.0, 1022024.0]), dated=True)
        '%d%m%Y'
    """
    if len(values) < 2 or (values % 1 != 0).any() or values.min() < 0 or values.max() >= 1e8:
        return None
    for form in ("%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y") if dated else ():
        cells = padded(values, form)
        days = _one(list(dict.fromkeys(cells)), form) if len({*map(len, cells)}) == 1 else None
        if days and values.max() >= 10101 and 1900 <= min(days).year <= max(days).year <= 2100:
            return form
    for form in ("%H%M", "%H%M%S"):
        known, places = np.unique(values, return_inverse=True)
        clock = _one(padded(known, form), form) if len(values) > 4 else None
        if clock is not None:
            seconds = np.array(
                [cell.hour * 3600 + cell.minute * 60 + cell.second for cell in clock]
            )
            if _is_even(seconds[places]) and not _is_even(values):
                return form
    return None


def _is_even(values: NDArray[Any]) -> bool:
    gaps = np.diff(values)
    return len(set(gaps[gaps > 0].tolist())) == 1
