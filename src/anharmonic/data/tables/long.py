"""Tables with one row per step, with columns for sequence, time, values and target."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, are_few
from anharmonic.data.sequences import Sequences, in_float32, usual_step
from anharmonic.data.tables.cells import (
    Table,
    clear_times,
    have_zone,
    keys,
    labels,
    may_be_dates,
    numbers,
)


def read_long(
    table: Table, roles: dict[str, str], values: Sequence[str], given: Columns
) -> Sequences:
    """Read sequences whose steps are rows, in the order of the time column or of the table.

    Without an id column the table is one sequence. If every group numbers its own ids, a sequence
    is one id of one group. There is one target per sequence if it is constant in every sequence,
    otherwise one per step.
    """
    advice = "a row per step: columns with an id, the time, the values and the target"
    require(bool(values), f"value columns in {table.where}", list(values), "at least one", advice)
    clock = clear_times(table, roles["time"], not given.found) if "time" in roles else None
    names = keys(table, roles["id"], "id") if "id" in roles else np.zeros(len(table), np.int64)
    if "group" in roles and "id" in roles and clock is not None:
        names = _with_groups(names, keys(table, roles["group"], "group"), clock)
    _, firsts, codes = np.unique(names, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(firsts))[codes]  # numbered in order of appearance
    order = np.argsort(codes, kind="stable") if clock is None else np.lexsort((clock, codes))
    steps = whole = _Steps(table, order, codes[order], names)
    columns = [numbers(table, name)[order] for name in values]
    kept = np.arange(len(order))
    if clock is not None:
        kept = _once(steps, clock, given.duplicates)
        if len(kept) == len(order) and _are_of_day(table, roles["time"], clock):
            _check_midnight(steps, clock)
        if given.duplicates == "mean" and len(kept) < len(order):
            columns = [_means(column, kept) for column in columns]
        else:
            columns = [column[kept] for column in columns]
        steps = _Steps(table, order[kept], codes[order][kept], names)
        clock = clock[order][kept]
        if given.forecast and table.starts and not given.found:
            _warn_of_one_series(steps, clock)
    x = in_float32(np.stack(columns, axis=1), table.where, values)
    many = int(np.diff(steps.offsets).max())
    if "id" in roles and many == 1 and not given.found:
        came = f"a row for each of the {len(x)} names in {roles['id']!r}"
        advice = "name another column with --id-column (id_column), or say --layout wide"
        expected = f"sequences of {table.where} must have more steps than one"
        raise ValueError(message(expected, came, advice))
    y, per_step, known = None, False, None
    if "target" in roles:
        y, per_step, known = _targets(steps, roles["target"], given.labels)
        if per_step and given.duplicates == "mean" and y is not None and y.dtype.kind == "f":
            every = labels(table, roles["target"])[0][whole.order]
            y = _means(every, kept)[:, None]
            known = None  # indicated by NaN
    elapsed, interval = (None, None) if clock is None else _sampling(steps, clock)
    return Sequences(
        table.where,
        x,
        steps.offsets,
        y,
        per_step,
        elapsed=elapsed,
        groups=_groups(steps, roles["group"]) if "group" in roles else None,
        times=None if clock is None else clock[steps.offsets[:-1]],
        channels=tuple(values),
        interval=interval,
        known=known,
        ids=names[steps.order][steps.offsets[:-1]] if "id" in roles else None,
        clock=clock,
        utc="time" in roles and have_zone(table, roles["time"]),
    )


def _with_groups(names: NDArray[Any], groups: NDArray[Any], clock: NDArray[Any]) -> NDArray[Any]:
    """Return ids that are unique over all groups."""

    def pairs(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
        a, b = (np.unique(one, return_inverse=True)[1] for one in (first, second))
        return np.asarray(a * (int(b.max(initial=0)) + 1) + b, np.int64)

    both = pairs(pairs(names, groups), clock)
    if len(np.unique(pairs(names, clock))) == len(names) or len(np.unique(both)) < len(names):
        return names
    return np.array([f"{group}/{name}" for group, name in zip(groups, names, strict=True)])


def _once(steps: _Steps, clock: NDArray[Any], duplicates: str) -> NDArray[np.int64]:
    """Return the first row of every time of a sequence, in the order of steps."""
    ordered = clock[steps.order]
    again = steps.same & (ordered[1:] == ordered[:-1])
    local = _local_time(steps, clock)
    twice = np.flatnonzero(again)
    where, advice = steps.table.where, "write UTC or an offset (2024-10-27T02:30:00+02:00)"
    if local and (duplicates == "refuse" or not len(twice)):
        came = f"{local} after a later time, as where clocks are set back by an hour"
        raise ValueError(message(f"dates of {where} must not be local time", came, advice))
    if len(twice) and duplicates == "refuse":
        first, expected = int(twice[0]), f"a sequence of {where} must have one row for every time"
        came = f"{ordered[first]} twice ({steps.place(first + 1)}; {len(twice)} such rows)"
        utc = f", {advice} if an hour of local time repeats" if _at_night(ordered[twice]) else ""
        advice = "keep one row of each with --duplicates first or mean, or take the file's order "
        advice += "(--time-column none)"
        if not steps.table.starts:  # a file of a folder is one sequence
            advice = f"name the column of sequences with --id-column (id_column), {advice}"
        raise ValueError(message(expected, came, advice + utc))
    _warn_of_restarts(steps, clock)
    return np.flatnonzero(np.concatenate([[True], ~again]))


def _warn_of_restarts(steps: _Steps, clock: NDArray[Any]) -> None:
    """Warn if sorting mixes a few blocks of rows, as where a logger restarts its clock."""
    falls = _falls(steps, clock)[0]
    if not len(falls) or not are_few(len(falls), len(clock)):
        return
    blocks = np.zeros(len(clock), np.int64)
    blocks[falls + 1] = 1
    switches = steps.same & (np.diff(np.cumsum(blocks)[steps.order]) != 0)
    whole = (np.diff(steps.codes[np.argsort(steps.order)]) >= 0).all()  # rows of a sequence
    # A late row gives 3 switches. In simulated files this found all restarts, and warned of no late
    # rows, reversed rows or swapped blocks. It does warn of single lost rows sent again at the end.
    if whole and switches.sum() > 4 * len(falls):
        place = steps.table.place(int(falls[0]) + 1)
        text = (
            f"Times of {steps.table.where} go back, first in {place} ({len(falls)} such rows). "
            "Rows are sorted by time. If a recording begins there, give it a file or id of its own."
        )
        warnings.warn(text, stacklevel=2)


def _warn_of_one_series(steps: _Steps, clock: NDArray[Any]) -> None:
    """Warn of files that continue each other, such as one per day, which no forecast joins."""
    ends = steps.offsets
    inside = np.diff(clock)[steps.same]
    if clock.dtype.kind != "M" or len(ends) < 3 or not len(inside):
        return
    firsts, lasts = clock[ends[:-1]], clock[ends[1:] - 1]
    order = np.argsort(firsts)
    gaps = firsts[order][1:] - lasts[order][:-1]
    if (gaps > np.timedelta64(0)).all() and np.median(gaps) <= 2 * np.median(inside):
        text = (
            f"Each file of {steps.table.where} goes on where another one ends, but forecasts use "
            "the rows of one file only. If they are one series, join them into one file first."
        )
        warnings.warn(text, stacklevel=2)


def _seconds(gaps: NDArray[Any]) -> NDArray[np.float64]:
    return gaps / np.timedelta64(1, "s") if gaps.dtype.kind == "m" else gaps


def _falls(steps: _Steps, clock: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of the table before an earlier time of their sequence, and by how much."""
    codes, gaps = steps.codes[np.argsort(steps.order)], _seconds(np.diff(clock))
    falls = np.flatnonzero((codes[1:] == codes[:-1]) & (gaps < 0))
    return falls, gaps[falls]


def _are_of_day(table: Table, name: str, clock: NDArray[Any]) -> bool:
    """Whether times are of no date, which Python's formats then set to the first of 1900."""
    if clock.dtype.kind == "M":
        return bool((clock.astype("M8[D]") == np.datetime64("1900-01-01")).all())
    return may_be_dates(table, name) == "clock"


def _check_midnight(steps: _Steps, clock: NDArray[Any]) -> None:
    """Refuse times of day that fall by 12 hours or more: sorting them would mix up the days."""
    falls, spans = _falls(steps, clock)
    if len(falls) and (spans < -43200).all():
        came = f"an earlier time in {steps.table.place(int(falls[0]) + 1)} than in the row before"
        expected = f"times of day in {steps.table.where} must not pass midnight"
        advice = "write dates and times, or take the file's order with --time-column none"
        raise ValueError(message(expected, came, advice))


def _local_time(steps: _Steps, clock: NDArray[Any]) -> str:
    """Return the first time that falls back by up to an hour in an autumn night, or ""."""
    if clock.dtype.kind != "M" or len(clock) < 3:
        return ""
    falls, spans = _falls(steps, clock)
    years = 2 + len(np.unique(clock.astype("M8[Y]"))) * len(np.unique(steps.codes))
    if not 0 < len(falls) <= years or (spans < -3600).any():
        return ""
    late = clock[falls + 1]
    return str(late[0].astype("M8[s]")) if _at_night(late) else ""


def _at_night(stamps: NDArray[Any]) -> bool:
    """Whether dates are in the hours and months of clock changes."""
    if stamps.dtype.kind != "M":
        return False
    hours = (stamps - stamps.astype("M8[D]")) / np.timedelta64(1, "h")
    months = stamps.astype("M8[M]").astype(np.int64) % 12 + 1
    return bool((hours < 4).all() and np.isin(months, (3, 4, 9, 10, 11)).all())


def _means(column: NDArray[np.float64], firsts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of the known values in every run of rows."""
    known = ~np.isnan(column)
    sums = np.add.reduceat(np.where(known, column, 0.0), firsts)
    counts = np.add.reduceat(known.astype(np.int64), firsts)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True)
class _Steps:
    """Rows in the order of sequences and times."""

    table: Table
    order: NDArray[np.int64]
    codes: NDArray[np.int64]
    names: NDArray[Any]

    @property
    def offsets(self) -> NDArray[np.int64]:
        counts = np.bincount(self.codes)
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def same(self) -> NDArray[np.bool_]:
        """Whether a step follows another of its sequence, from the second on."""
        return np.asarray(self.codes[1:] == self.codes[:-1])

    def place(self, step: int) -> str:
        """Describe a step for messages."""
        row = int(self.order[step])
        place = self.table.place(row)
        return place if self.table.starts else f"{place}, id {self.names[row]}"


def _targets(
    steps: _Steps, name: str, wanted: str
) -> tuple[NDArray[Any], bool, NDArray[np.bool_] | None]:
    """Return one target per sequence if it is constant, otherwise per step, `[sum of lengths, 1]`.

    Some targets per step may be unknown; the last result is the mask of known ones.
    """
    values, known = labels(steps.table, name)
    values, known = values[steps.order], known[steps.order]
    given, codes = values[known], steps.codes[known]
    changes = (codes[1:] == codes[:-1]) & (given[1:] != given[:-1])
    first = np.searchsorted(codes, np.arange(steps.codes[-1] + 1))
    if wanted != "step":
        _check_changes(steps, name, wanted, np.flatnonzero(known), changes)
    if not changes.any() and wanted != "step":
        lacking = np.setdiff1d(np.arange(steps.codes[-1] + 1), codes)
        if len(lacking):
            came = f"none in {steps.place(int(steps.offsets[lacking[0]]))}"
            expected = f"every sequence of {steps.table.where} must have a target in {name!r}"
            raise ValueError(message(expected, came, "fill it in, or remove this sequence"))
        return given[first], False, None
    return values[:, None], True, None if known.all() else known


def _check_changes(
    steps: _Steps, name: str, wanted: str, rows: NDArray[np.int64], changes: NDArray[np.bool_]
) -> None:
    """Refuse a target that changes in only a few sequences."""
    places = np.flatnonzero(changes)
    long = np.flatnonzero(np.diff(steps.offsets) > 1)
    changing = np.unique(steps.codes[rows[places]])
    steady = len(np.setdiff1d(long, changing))
    if not len(places) or (wanted == "auto" and steady <= len(changing)):
        return
    values = labels(steps.table, name)[0][steps.order]
    at = int(places[0])
    came = f"{values[rows[at]]} and {values[rows[at + 1]]} ({steps.place(int(rows[at + 1]))})"
    if wanted == "auto":
        came += f" in {len(changing)} of {len(long)} sequences, one target in all others"
    advice = "correct it, or say --labels step (labels='step') if every step has its own"
    expected = f"a sequence of {steps.table.where} must have one target in {name!r}"
    raise ValueError(message(expected, came, advice))


def _groups(steps: _Steps, name: str) -> NDArray[Any]:
    values = keys(steps.table, name, "group")[steps.order]
    changes = steps.same & (values[1:] != values[:-1])
    if changes.any():
        step = int(np.flatnonzero(changes)[0])
        came = f"{values[step]} and {values[step + 1]} ({steps.place(step + 1)})"
        expected = f"a sequence of {steps.table.where} must be of one group in {name!r}"
        raise ValueError(message(expected, came, "give each its own id, or name another column"))
    return values[steps.offsets[:-1]]


def _sampling(
    steps: _Steps, clock: NDArray[Any]
) -> tuple[NDArray[np.float32] | None, float | None]:
    """Return the time since the previous sample (None for equal spacing) and the usual step.

    Dates are measured in seconds.
    """
    inner = _seconds(np.diff(clock))[steps.same]
    usual, even = usual_step(inner)
    if even:
        return None, usual
    _warn_of_rates(steps, inner, float(usual or 0))
    elapsed = np.zeros(len(clock), np.float32)
    elapsed[1:][steps.same] = inner
    return elapsed, usual


def _warn_of_rates(steps: _Steps, inner: NDArray[np.float64], usual: float) -> None:
    """Warn of regularly sampled sequences with another step, as of another rate or unit."""
    codes = steps.codes[1:][steps.same]
    gaps = inner[np.lexsort((inner, codes))]
    found, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
    low, middle, high = (gaps[firsts + (counts * share).astype(int)] for share in (0.1, 0.5, 0.9))
    # In simulated files with jitter, lost and rounded samples, this found all recordings of 1.28
    # times the usual step. 2 % of the files with equal steps gave a warning, all with 12 samples
    # and 15 % jitter. Uneven times, as of events, vary more: there only another unit is far.
    regular = (counts > 3) & (high - low <= 0.5 * middle)
    far = np.where(regular, 1.15, 50.0)
    other = (middle > far * usual) | (far * middle < usual)
    if other.any():
        first = int(np.flatnonzero(other)[0])
        place = steps.place(int(steps.offsets[found[first]]))
        text = (
            f"{other.sum()} of {len(steps.offsets) - 1} recordings of {steps.table.where} have "
            f"another step between samples than the usual {usual:g}: {middle[first]:g} in the one "
            f"from {place} on. Give all the same rate and unit of time."
        )
        warnings.warn(text, stacklevel=2)
