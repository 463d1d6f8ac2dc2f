"""From a table to sequences: finds what its columns are, then reads it in its layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from anharmonic._checks import choice, require
from anharmonic.data.columns import Columns, Layout, by_name, is_role
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import Table, quoted
from anharmonic.data.tables.joined import with_joined_times
from anharmonic.data.tables.long import read_long
from anharmonic.data.tables.parquet import read_parquet
from anharmonic.data.tables.roles import is_index, understand
from anharmonic.data.tables.steps import StepColumns, step_columns
from anharmonic.data.tables.text import read_text
from anharmonic.data.tables.wide import read_nested, read_wide


def read_table(path: Path, given: Columns, targets: bool = True) -> Sequences:
    """Reads the sequences of a `.csv`, `.tsv`, `.txt` or `.parquet` file.

    Args:
        path: The file.
        given: What is known of its columns.
        targets: As in `sequences_of`.

    Raises:
        ValueError: If the file is damaged, or as in `sequences_of`.
    """
    parquet = path.suffix.lower() == ".parquet"
    table = read_parquet(path) if parquet else read_text(path, given)
    return sequences_of(table, given, targets)


def sequences_of(table: Table, given: Columns, targets: bool = True) -> Sequences:
    """Reads the sequences of a table.

    Args:
        table: The table.
        given: What is known of its columns.
        targets: Whether targets are wanted; else `y` is None, and the target's column may lack.

    Returns:
        The sequences; `columns` says what every column was taken for.

    Raises:
        ValueError: If columns could mean several things or nothing, or cells do not fit.
    """
    table = _tidy(replace(table, date_format=given.date_format), given)
    require(len(table) > 0, f"rows in {table.where}", 0, "at least one", "check how it was written")
    if given.found:
        roles, layout, values, ignored = *_read_again(table, given, targets), given.ignore
        ignored = tuple(ignored)
    else:
        found = understand(table, given, targets)
        roles, layout, values = found.roles, found.layout, found.values
        ignored = (*given.ignore, *found.ignored)
    known = dict(roles)
    if not targets:
        roles = {role: name for role, name in roles.items() if role != "target"}
    if layout == "long":
        part = read_long(table, roles, values, given)
    else:
        part = {"wide": read_wide, "nested": read_nested}[layout](table, roles, values)
    if (
        not table.header
        and part.y is not None
        and part.y.dtype.kind == "f"
        and (part.y % 1 == 0).all()
    ):
        part = replace(part, y=part.y.astype(np.int64))  # classes are often written 1.0000000e+00
    found_columns = Columns(
        known.get("target"),
        known.get("id"),
        known.get("time"),
        known.get("group"),
        layout,
        values=tuple(values) if table.header or layout != "wide" else (),
        header=table.header,
        width=len(table.names),
        found=True,
        ignore=ignored,
        date_format=given.date_format,
        duplicates=given.duplicates,
        labels=given.labels,
    )
    return replace(part, columns=found_columns)


def _tidy(table: Table, given: Columns) -> Table:
    """Without empty columns that have no name and those to ignore; times in one column."""
    empty = [
        at
        for at, name in enumerate(table.names)
        if name == "" and table.arrow.column(at).null_count == len(table) > 0
    ]
    for at in reversed(empty):
        table = replace(table, arrow=table.arrow.remove_column(at))
    twice = [name for name, count in Counter(table.names).items() if count > 1]
    advice = "give every column a name of its own"
    require(not twice, f"column names given twice in {table.where}", twice, "none", advice)
    if not given.found:
        for name in given.ignore:
            choice(f"ignore in {table.where}", name, table.names)
    table = table.without([name for name in given.ignore if name in table.names])
    searched = table.header and len(table) > 0
    if searched and (given.time is None or given.time not in table.names):
        if not given.found or given.time is not None:
            table = with_joined_times(table)
    return table


def _read_again(
    table: Table, given: Columns, targets: bool
) -> tuple[dict[str, str], Layout, list[str]]:
    """What the columns are of a table like one that was read before."""
    roles = by_name(table.names, given, table.where, targets)
    if not table.header and len(table.names) < given.width:
        roles.pop("target", None)  # columns without names: one less is the one of the targets
    free = [
        name
        for name in table.names
        if name not in roles.values() and not (is_index(table, name) and name not in given.values)
    ]
    if not given.values:
        # A name that training would have taken for a role is no step.
        return roles, given.layout, [n for n in free if not table.header or not is_role(n, given)]
    if given.layout == "wide" and (steps := step_columns(given.values)) is not None:
        if not steps.others:
            return roles, given.layout, _steps_again(table, steps, free)
    lacking = [name for name in given.values if name not in free]
    expected, advice = f"{quoted(given.values)}, as in training", "give the same columns"
    require(not lacking, f"columns of {table.where}", table.names, expected, advice)
    return roles, given.layout, list(given.values)


def _steps_again(table: Table, known: StepColumns, free: Sequence[str]) -> list[str]:
    """The columns of steps as in training, perhaps fewer or more of them."""
    here = step_columns(free)
    names, numbers = (None, {}) if here is None else (list(here.channels), here.numbers)
    fits = names is not None and sorted(names) == sorted(known.channels)
    if fits and not known.dated:
        for channel, steps in known.numbers.items():
            shared = min(len(steps), len(numbers[channel]))
            fits = fits and numbers[channel][:shared] == steps[:shared]
    expected, advice = f"{quoted(known.names, 6)}, as in training", "give the same columns"
    require(fits, f"columns of {table.where}", quoted(table.names, 6), expected, advice)
    assert here is not None
    return [name for channel in known.channels for name in here.channels[channel]]
