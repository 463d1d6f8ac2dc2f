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
from anharmonic.data.columns import NO_COLUMN, Columns, plain
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
        for table, name in itertools.product(tables[1:], first.names):
            pair = {str(one.arrow.column(name).type): one for one in (first, table)}
            words = pair.pop("string", None)
            if words is not None and pair and "null" not in pair:
                other = pair.popitem()[1]  # its type names the wrong cell among the words
                (numbers if is_numeric(other.column(name)) else times)(words, name)
                came = f"text in column {name!r} of {words.where}"
                expected = f"columns of {where} must hold what they hold in {other.where}"
                raise ValueError(message(expected, came, "correct this file")) from error
        expected = f"files of {where} must be alike"
        raise ValueError(message(expected, "others", "correct them")) from error
    counts = [len(table) for table in tables]
    files = np.repeat(np.arange(len(tables)), counts)
    starts = tuple(np.cumsum([0, *counts[:-1]]).tolist())
    sources = tuple((table.where, table.first_row) for table in tables)
    arrow = arrow.append_column(FILE, pa.array(files))
    return replace(first, arrow=arrow, where=where, starts=starts, sources=sources)
