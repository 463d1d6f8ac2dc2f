"""Conversion of a table to sequences: infer its columns, then read it in its layout."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from anharmonic._checks import choice, message, require
from anharmonic.data.archive import judge_size
from anharmonic.data.columns import (
    Columns,
    by_name,
    is_role,
)
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.beside import beside, with_channels
from anharmonic.data.tables.cells import Table, numbers, quoted
from anharmonic.data.tables.facts import is_index
from anharmonic.data.tables.long import read_long
from anharmonic.data.tables.reshaped import months_as_rows, names_in_one, with_joined_times
from anharmonic.data.tables.roles import Roles, understand
from anharmonic.data.tables.text import read_text
from anharmonic.data.tables.wide import StepColumns, read_nested, read_wide, step_columns
from anharmonic.data.targets import SEPARATOR


def read_table(path: Path, given: Columns, targets: bool = True) -> Sequences:
    """Read the sequences of a `.csv`, `.tsv`, `.txt` or `.parquet` file, as `sequences_of` does."""
    return sequences_of(file_table(path, given), given, targets)


def file_table(path: Path, given: Columns, where: str | None = None) -> Table:
    """Read a file as a table; refuse a Parquet file whose content is far larger than the file.

    Messages call the file `where`, by default its name.
    """
    where = where or path.name
    if path.suffix.lower() != ".parquet":
        return read_text(path, given, where=where)
    try:
        # Opening the file itself keeps folder names from becoming partition columns.
        with parquet.ParquetFile(path) as file:
            # Assume 8 bytes per cell. Text takes more, but compresses no better than numbers.
            judge_size(8 * file.metadata.num_rows * file.metadata.num_columns, path)
            return Table(file.read(), where)
    except (pa.ArrowException, OSError, ValueError) as error:
        came = f"{type(error).__name__}: {str(error).strip().rstrip('.')[:200]}"
        expected = f"{where} must be a sound Parquet file"
        raise ValueError(message(expected, came, "write it again")) from error


def sequences_of(table: Table, given: Columns, targets: bool = True) -> Sequences:
    """Read the sequences of a table; their `columns` say which column has which role.

    Without `targets`, `y` is None, and the target column may be missing.
    """
    table = tidied(table, given)
    require(len(table) > 0, f"rows in {table.where}", 0, "at least one", "check how it was written")
    table = _with_joined_labels(table, given)
    extra = beside(table, given) if given.inputs else None
    bare = table.without(given.inputs)
    if extra is not None:
        table = with_channels(table, extra)
    read = _read_again if given.found else understand
    roles, layout, values, ignored = read(bare, given, targets)
    known = dict(roles)
    if not targets:
        roles = {role: name for role, name in roles.items() if role != "target"}
    if layout == "long":
        names = () if extra is None else extra.names
        part = read_long(table, roles, [*values, *names], given)
    else:
        expected = "none in a table with a row per sequence"
        advice = "give a row per step, with the future steps as further rows"
        require(not given.known, f"known columns of {table.where}", given.known, expected, advice)
        if layout not in ("wide", "nested"):  # the training files had another layout
            came, kind = f"the table {table.where}", given.folder or "recordings"
            advice = "give a folder of such files, or one of them"
            raise ValueError(message(f"data must be as in training, {kind}", came, advice))
        read_rows = {"wide": read_wide, "nested": read_nested}[layout]
        part = read_rows(table, roles, values)
    if extra is not None:
        part = extra.settled(part) if layout == "long" else extra.added_to(part)
    y = part.y
    if not table.header and y is not None and y.dtype.kind == "f" and (y % 1 == 0).all():
        part = replace(part, y=y.astype(np.int64))  # classes are often written as 1.0000000e+00
    columns = replace(
        given,
        target=known.get("target"),
        id=known.get("id"),
        time=known.get("time"),
        group=known.get("group"),
        layout=layout,
        values=tuple(values) if table.header or layout != "wide" else (),
        header=table.header,
        width=len(bare.names) + len(given.inputs),
        windows=False,
        forecast=False,
        found=True,
        ignore=(*given.ignore, *ignored),
        categories=() if extra is None else extra.categories,
        folder="",
    )
    return replace(part, columns=columns)


def tidied(table: Table, given: Columns) -> Table:
    """Return the table without empty unnamed and ignored columns, with times in one column."""
    table = replace(table, date_format=given.date_format)
    kept = [
        at
        for at, name in enumerate(table.names)
        if not (name == "" and table.arrow.column(at).null_count == len(table) > 0)
    ]
    table = replace(table, arrow=table.arrow.select(kept))
    twice = [name for name, count in Counter(table.names).items() if count > 1]
    advice = "give every column a name of its own"
    require(not twice, f"column names given twice in {table.where}", twice, "none", advice)
    if not given.found:
        for name in given.ignore:
            choice(f"ignore in {table.where}", name, table.names)
    searched = table.header and len(table) > 0
    if searched and given.found and given.id is not None and given.id not in table.names:
        table = names_in_one(table, given.id)  # of columns that are left out afterwards
    table = table.without([name for name in given.ignore if name in table.names])
    whole = table
    if searched and (given.time is None or given.time not in table.names):
        if not given.found or given.time is not None:
            table = with_joined_times(table)
        monthly = months_as_rows(table) if given.forecast or given.found else table
        if given.forecast or given.time in monthly.names:
            table = monthly
    if searched and given.forecast and given.id is None:
        table = names_in_one(table)
    for name in given.inputs:  # such as a month, which is now part of a date
        if name in whole.names and name not in table.names and len(table) == len(whole):
            table = replace(table, arrow=table.arrow.append_column(name, whole.column(name)))
    return table


def _with_joined_labels(table: Table, given: Columns) -> Table:
    """Return the table with several target columns of 0 and 1 joined to one text column."""
    parts = [] if given.target is None else given.target.split(SEPARATOR)
    if len(parts) < 2 or given.target in table.names or not set(parts) <= set(table.names):
        return table
    cells = np.stack([numbers(table, name) for name in parts], axis=1)
    empty = np.isnan(cells)
    bad = np.flatnonzero(~(empty.all(axis=1) | np.isin(cells, (0, 1)).all(axis=1)))
    if len(bad):
        came = f"{cells[bad[0]].tolist()} in {table.place(int(bad[0]))}"
        expected = f"the labels {quoted(parts)} of {table.where} must be 0 or 1, or all empty"
        raise ValueError(message(expected, came, "correct this row"))
    texts = [
        None if gaps[0] else SEPARATOR.join(itertools.compress(parts, row)) or SEPARATOR
        for row, gaps in zip(cells == 1, empty, strict=True)
    ]
    arrow = table.without(parts).arrow.append_column(given.target, pa.array(texts, pa.string()))
    return replace(table, arrow=arrow)


def _read_again(table: Table, given: Columns, targets: bool) -> Roles:
    """Return the roles for a table like an earlier one."""
    roles = by_name(table.names, given, table.where, targets)
    if not table.header and given.target is not None and not _holds_target(table, given, targets):
        roles.pop("target", None)
    free = [
        name
        for name in table.names
        if name not in roles.values() and not (is_index(table, name) and name not in given.values)
    ]
    if not given.values:
        # A name that would have had a role in training is not a step.
        values = [name for name in free if not table.header or not is_role(name, given)]
        return roles, given.layout, values, []
    if given.layout == "wide" and (steps := step_columns(given.values)) is not None:
        if not steps.others:
            return roles, given.layout, _steps_again(table, steps, free), []
    lacking = [name for name in given.values if name not in free]
    expected, advice = f"{quoted(given.values)}, as in training", "give the same columns"
    require(not lacking, f"columns of {table.where}", free, expected, advice)
    return roles, given.layout, list(given.values), []


def _holds_target(table: Table, given: Columns, targets: bool) -> bool:
    """Whether a table without names has the target of training, which its width tells."""
    target, came = str(given.target).split(SEPARATOR)[0], len(table.names) + len(given.inputs)
    if came == given.width or (targets and target == "1"):
        return True
    named = (given.id, given.time, given.group, *given.ignore, *given.inputs)
    behind = any(name and name.isdecimal() and int(name) > int(target) for name in named)
    fits = came == given.width - 1 and not targets and not behind
    expected = f"{given.width}, as in training"
    advice = "keep the column of the target, with any cells, and end short rows with empty cells"
    require(fits, f"columns of {table.where}, which have no names,", came, expected, advice)
    return False


def _steps_again(table: Table, known: StepColumns, free: Sequence[str]) -> list[str]:
    """Return the step columns as in training, possibly fewer or more of them."""
    here = step_columns(free)
    if here is not None and here.channels.keys() == known.channels.keys():
        pairs = (zip(known.channels[n], here.channels[n], strict=False) for n in here.channels)
        if known.dated or all(was == now for pair in pairs for was, now in pair):
            return [name for channel in known.channels for name in here.channels[channel].values()]
    expected = f"columns of {table.where} must be {quoted(known.names, 6)}, as in training"
    raise ValueError(message(expected, quoted(table.names, 6), "give the same columns"))
