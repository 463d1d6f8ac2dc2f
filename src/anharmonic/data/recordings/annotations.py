"""Labels of a recording's steps, from a table of times or intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, is_time, may_be_time, plain, target_rank
from anharmonic.data.recordings.signals import labels_of_spans
from anharmonic.data.tables.cells import Table, holds_text, known_labels, numbers, quoted, times
from anharmonic.data.tables.text import read_text

_STARTS = frozenset("start starts begin begins from onset t0 tmin xmin".split())
_ENDS = frozenset("end ends stop to t1 tmax xmax finish offset".split())
_DURATIONS = frozenset("duration length dur".split())
_LABELS = frozenset("annotation event description type symbol text trial stage code aux".split())
_STEPS = frozenset("sample samples frame step index position".split())


def step_labels(path: Path, where: str, clock: NDArray[Any]) -> NDArray[Any]:
    """Return a label for every step of a recording, `[T]`, from the table that annotates it.

    A table with start and end, or a duration, labels the steps from the start to before the end.
    Steps in no interval have the class "none"; without any row all have. A table with a time labels
    single steps if it has as many rows as the recording, otherwise all steps until the next time.
    `clock` is the time or the index of every step. Messages call the table `where`.
    """
    table = read_text(path, Columns(), where=where)
    if not len(table):
        return np.full(len(clock), "none")
    begin, end, label = _columns(table)
    if table.header and plain(begin).split(" ")[0] in _STEPS:
        clock = np.arange(len(clock))
    found = known_labels(table, label)
    if begin == label:  # labels alone
        expected = f"{len(clock)}, one for every step"
        advice = "add them, or give every label a time"
        require(len(found) == len(clock), f"labels of {where}", len(found), expected, advice)
        return found
    starts = times(table, begin)
    if (starts.dtype.kind == "M") != (clock.dtype.kind == "M"):
        came = f"{starts[0]} and {clock[0]}"
        expected = f"times of {where} must be of the same kind as those of the recording"
        raise ValueError(message(expected, came, "write dates in both, or numbers in both"))
    if end is None and len(starts) == len(clock) and _alike(starts, clock):
        return found
    _check_span(table, starts, clock)
    ends = None if end is None else _ends(table, starts, end)
    return labels_of_spans(starts, ends, found, clock, table.where)


def _columns(table: Table) -> tuple[str, str | None, str]:
    """Return the columns of start or time, of the end if there is one, and of the label."""
    names = table.names
    if len(names) == 1 or (len(names) < 4 and not table.header):
        return names[0], names[1] if len(names) == 3 else None, names[-1]
    first = {name: plain(name).split(" ")[0] for name in names}
    ends = [n for n in names if first[n] in _ENDS | _DURATIONS]
    starts = [n for n in names if first[n] in _STARTS and n not in ends]
    ranked = [(rank, n) for n in names if (rank := target_rank(n)) is not None]
    labels = [n for rank, n in sorted(ranked, key=lambda pair: pair[0])][:1]
    labels = labels or [n for n in names if first[n] in _LABELS]
    labels = labels or [n for n in names if holds_text(table, n) and not is_time(n)]
    starts = starts or [n for n in names if (is_time(n) or may_be_time(n)) and n not in labels]
    if len(labels) != 1 or not starts or len(ends) > 1:
        expected = f"{table.where} must have a start, an end and a label, or a time and a label"
        came, advice = f"the columns {quoted(names)}", "start, end, label or time, label"
        raise ValueError(message(expected, came, f"name its columns {advice}"))
    return starts[0], ends[0] if ends else None, labels[0]


def _alike(first: NDArray[Any], second: NDArray[Any]) -> bool:
    if first.dtype.kind == "M":
        return bool((first == second).all())
    return bool(np.allclose(first, second.astype(np.float64), rtol=1e-6, atol=1e-9))


def _ends(table: Table, starts: NDArray[Any], name: str) -> NDArray[Any]:
    if plain(name).split(" ")[0] not in _DURATIONS:
        ends = times(table, name)
    else:
        spans = numbers(table, name)
        if starts.dtype.kind == "M":
            spans = np.round(spans * 1e9).astype("m8[ns]")
        ends = starts + spans
    wrong = np.flatnonzero(~(ends >= starts))
    if len(wrong):
        row = int(wrong[0])
        came = f"{starts[row]} to {ends[row]} in {table.place(row)}"
        raise ValueError(message(f"intervals of {table.where} must end later", came, "correct it"))
    return np.asarray(ends)


def _check_span(table: Table, starts: NDArray[Any], clock: NDArray[Any]) -> None:
    late = np.flatnonzero(starts > clock[-1])
    if len(late) and (len(late) == len(starts) or starts.max() - clock[0] > 2 * np.ptp(clock)):
        row = int(late[0])
        came = f"{starts[row]} in {table.place(row)}, of a recording from {clock[0]} to {clock[-1]}"
        advice = "write them in its unit; a column called sample counts steps"
        expected = f"times of {table.where} must be those of the recording"
        raise ValueError(message(expected, came, advice))
