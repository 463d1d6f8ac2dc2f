"""Read files of one recording each as one table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.data.columns import NO_COLUMN, Columns, by_name, plain
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import Table, is_numeric, numbers, quoted, times
from anharmonic.data.tables.read import file_table, sequences_of, tidied

FILE = "(file)"
"""The column with the index of each row's file."""


def read_recordings(
    files: Mapping[str, Path],
    where: str,
    given: Columns,
    targets: bool,
    labelled: bool = False,
) -> tuple[Sequences, list[NDArray[Any]]]:
    """Read files with one recording each, all with the same columns and one row per step.

    Messages call every file by its key, and the folder `where`.

    `labelled` says that labels come from outside the files: a column `y` of numbers that change
    within a recording is then an axis, and a constant column such as "OK" is left out.

    Returns the recordings in the order of the files, and the times of the steps of each, numbered
    from 0 without a column of times. Their `columns` leave `id` unset, so that they also apply to a
    single file.
    """
    given = replace(given, layout="long", id=None)
    tables: list[Table] = []
    for name, path in files.items():
        table = file_table(path, given, name)
        if not len(table):
            raise ValueError(message(f"{name} must hold rows", "none", "remove it"))
        _check_one(table, given)
        if tables and sorted(table.names) != sorted(tables[0].names):
            came = f"{quoted(table.names)} in {name}"
            advice = "give all files the same columns, or remove this file"
            first = tables[0]
            expected = f"columns of {where} must be {quoted(first.names)}, as in {first.where}"
            raise ValueError(message(expected, came, advice))
        tables.append(table)
    whole = tidied(_joined(tables, where), given)
    if labelled and not given.found and given.target is None and _has_axis(whole):
        given = replace(given, target=NO_COLUMN)
    given = replace(given, id=FILE, width=given.width + given.found)
    # The ignored columns are already removed, and a second removal would not find them.
    part = sequences_of(whole, replace(given, ignore=()) if not given.found else given, targets)
    columns = part.columns
    assert columns is not None
    ignored = tuple(dict.fromkeys((*given.ignore, *columns.ignore)))
    own = columns.target
    if labelled and given.target is None and own and len(whole.column(own).unique()) == 1:
        columns, ignored = replace(columns, target=None), (*ignored, own)
    clocks = [np.arange(steps) for steps in part.lengths]
    if columns.time is not None:
        clock, rows = times(whole, columns.time), np.cumsum([0, *map(len, tables)])
        clocks = [np.unique(clock[a:b]) for a, b in itertools.pairwise(rows)]
    columns = replace(columns, id=None, ignore=ignored, width=columns.width - 1)
    return replace(part, ids=None, columns=columns), clocks


def _check_one(table: Table, given: Columns) -> None:
    """Refuse a file for predictions whose ids tell several recordings apart."""
    found = by_name(table.names, Columns(), table.where, False, ("id",)) if given.found else {}
    if "id" not in found or len(ids := table.column(found["id"]).unique()) < 2:
        return
    came = f"{len(ids)} values in column {found['id']!r}"
    advice = "write a file for each recording, or leave this column out"
    expected = f"{table.where} must hold one recording, as each file of training did"
    raise ValueError(message(expected, came, advice))


def _has_axis(table: Table) -> bool:
    """Whether there is a numeric column `y` that changes within a file."""
    named = [name for name in table.names if plain(name) == "y"]
    if not named:
        return False
    try:
        changes = np.diff(numbers(table, named[0]))
    except ValueError:  # words
        return False
    return bool(((np.abs(changes) > 0) & (np.diff(numbers(table, FILE)) == 0)).any())


def _joined(tables: Sequence[Table], where: str) -> Table:
    """Join all rows in one table and add a column with the index of each row's file."""
    first = tables[0]
    try:
        arrow = pa.concat_tables(
            [table.arrow.select(first.names) for table in tables], promote_options="permissive"
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        for name in first.names:
            filled = [table for table in tables if table.column(name).null_count < len(table)]
            _check_alike(filled, name, where)
        raise ValueError(
            message(f"files of {where} must be alike", str(error), "correct them")
        ) from error
    counts = [len(table) for table in tables]
    files = np.repeat(np.arange(len(tables)), counts)
    starts = tuple(np.cumsum([0, *counts[:-1]]).tolist())
    sources = tuple((table.where, table.first_row) for table in tables)
    arrow = arrow.append_column(FILE, pa.array(files))
    return replace(first, arrow=arrow, where=where, starts=starts, sources=sources)


def _check_alike(tables: Sequence[Table], name: str, where: str) -> None:
    """Refuse a column that holds other things than in the first file."""
    first, *rest = tables
    for table in rest:
        expected, came = _kind(first, name), _kind(table, name)
        if expected == came:
            continue
        if "text" in (expected, came):
            words, other = (first, table) if expected == "text" else (table, first)
            # Names the wrong cell among the words.
            (numbers if is_numeric(other.column(name)) else times)(words, name)
        expected = f"columns of {where} must hold what they hold in {first.where}, {expected}"
        came = f"{came} in column {name!r} of {table.where}"
        raise ValueError(message(expected, came, "correct one of these files"))


def _kind(table: Table, name: str) -> str:
    """What a column holds, in words."""
    kind, types = table.arrow.column(name).type, pa.types
    if types.is_timestamp(kind):
        return "dates with times" + (" and a time zone" if kind.tz else "")
    if types.is_date(kind) or types.is_time(kind):
        return "dates" if types.is_date(kind) else "times of day"
    if types.is_boolean(kind):
        return "true and false"
    if is_numeric(table.column(name)):
        return "numbers"
    return "text" if types.is_string(kind) else str(kind)
