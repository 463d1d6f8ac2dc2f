"""From a table to sequences: finds what its columns are, then reads it in its layout."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from anharmonic._checks import message, require
from anharmonic.data.columns import Columns, Layout, by_name, is_role
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.cells import (
    Table,
    date_columns,
    is_list,
    is_numeric,
    numbers,
    quoted,
    text_columns,
)
from anharmonic.data.tables.long import read_long
from anharmonic.data.tables.parquet import read_parquet
from anharmonic.data.tables.text import read_text
from anharmonic.data.tables.wide import read_nested, read_wide, series

_INDEX = re.compile(r"|index|Unnamed: 0|__index_level_\d+__")


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
    twice = [name for name, count in Counter(table.names).items() if count > 1]
    advice = "give every column a name of its own"
    require(not twice, f"column names given twice in {table.where}", twice, "none", advice)
    require(len(table) > 0, f"rows in {table.where}", 0, "at least one", "check how it was written")
    roles = by_name(table.names, given, table.where, targets)
    if given.forecast and not given.found and "target" in roles:
        if is_numeric(table.column(roles["target"])):
            del roles["target"]
    if given.found and not table.header and len(table.names) < given.width:
        roles.pop("target", None)  # columns without names: one less is the one of the targets
    free = [
        name for name in table.names if name not in roles.values() and not _is_index(table, name)
    ]
    dates = [] if given.found or "time" in roles else date_columns(table, free)
    if len(dates) == 1:
        roles["time"] = dates[0]
        free.remove(dates[0])
    if not given.found:
        named = _other_names(table, roles, free)
        roles |= named
        free = [name for name in free if name not in named.values()]
    layout = given.layout if given.layout != "auto" else _layout(table, roles, free, given.windows)
    if given.found:
        free = _values_again(table, given, free)
    else:
        if "target" not in roles:
            roles |= _guessed_target(table, layout, free, targets)
        free = [name for name in free if name not in roles.values()]
        if layout == "nested":  # what holds no list says nothing of steps
            free = [name for name in free if is_list(table.column(name).type)]
    known = dict(roles)
    if not targets:
        roles.pop("target", None)
    read = {"wide": read_wide, "long": read_long, "nested": read_nested}[layout]
    part = read(table, roles, free)
    if (
        not table.header
        and part.y is not None
        and part.y.dtype.kind == "f"
        and (part.y % 1 == 0).all()
    ):
        part = replace(part, y=part.y.astype(np.int64))  # classes are often written 1.0000000e+00
    found = Columns(
        known.get("target"),
        known.get("id"),
        known.get("time"),
        known.get("group"),
        layout,
        values=() if layout == "wide" else tuple(free),
        header=table.header,
        width=len(table.names),
        found=True,
    )
    return replace(part, columns=found)


def _is_index(table: Table, name: str) -> bool:
    """Whether a column only numbers the rows, as written by pandas."""
    if not _INDEX.fullmatch(name):
        return False
    column = table.column(name)
    if not is_numeric(column):
        return False
    counted = numbers(table, name) - np.arange(len(table))
    return bool((counted == counted[0]).all())


def _other_names(table: Table, roles: dict[str, str], free: list[str]) -> dict[str, str]:
    """The role of a column called ..._id: what it says is no measurement."""
    said = [name for name in free if name.strip().lower().endswith("_id")]
    if not said:
        return {}
    steps = [name for name in free if name not in said]
    again = len(set(table.column(said[0]).to_pylist())) < len(table)
    # Rows whose columns number the steps are whole sequences: what comes again is their group.
    wide = len(steps) > 2 and series(steps) is not None
    role = "group" if "id" in roles or (again and wide) else "id"
    if len(said) > 1 or role in roles:
        came = f"the columns {quoted(said)}"
        advice = (
            f"say which with --id-column {said[0]!r} or --group-column, and rename or drop the "
        )
        advice += "others"
        expected = f"one column of {table.where} whose name ends in _id must be enough"
        raise ValueError(message(expected, came, advice))
    return {role: said[0]}


def _layout(table: Table, roles: dict[str, str], free: list[str], windows: bool) -> Layout:
    if any(is_list(table.column(name).type) for name in free):
        return "nested"
    if "id" in roles:
        distinct = len(set(table.column(roles["id"]).to_pylist()))
        return "long" if distinct < len(table) else "wide"
    # Without ids, times are those of one recording's steps, unless steps are columns.
    steps = len(free) > 2 and series(free) is not None
    recording = "time" in roles or (windows and table.header)
    return "long" if recording and not steps else "wide"


def _guessed_target(table: Table, layout: Layout, free: list[str], targets: bool) -> dict[str, str]:
    """The target where no name says it: the only text, or numbered classes beside a series."""
    if not free:
        return {}  # the lack of values is said by who reads them
    text = text_columns(table, free)
    if len(text) == 1:
        distinct = len(set(table.column(text[0]).to_pylist()))
        came = f"{distinct} different ones in the {len(table)} rows of {text[0]!r}"
        expected = f"targets of {table.where} must come again in several rows"
        advice = "say what is what with target_column, time_column or id_column "
        advice += "(--target-column ... on the command line)"
        if targets and 2 < distinct == len(table):
            raise ValueError(message(expected, came, advice))
        return {"target": text[0]}
    advice = f"say which with target_column=... (--target-column {(text or free)[-1]!r})"
    if text and (targets or layout != "nested"):
        came = f"text in the columns {quoted(text)}"
        expected = f"one column of {table.where} must be the target"
        raise ValueError(message(expected, came, advice))
    if not table.header and layout == "wide":
        first, last = _whole(table, free[0]), _whole(table, free[-1])
        if first and not 0 < last < first:
            return {"target": free[0]}
        if last and not first:
            return {"target": free[-1]}
    if not targets:
        return {}
    came = f"the columns {quoted(free)}"
    raise ValueError(message(f"one column of {table.where} must be the target", came, advice))


def _whole(table: Table, name: str) -> int:
    """How many different whole numbers a column holds; 0 if it holds something else, too."""
    values = numbers(table, name)
    whole = bool((np.isfinite(values) & (values == np.round(values))).all())
    return len(np.unique(values)) if whole else 0


def _values_again(table: Table, given: Columns, free: list[str]) -> list[str]:
    """The value columns of a table like one that was read before, in that order."""
    if not given.values:
        # A name that training would have taken for a role is no step.
        return [name for name in free if not table.header or not is_role(name, given)]
    lacking = [name for name in given.values if name not in free]
    expected, advice = f"{quoted(given.values)}, as in training", "give the same columns"
    require(not lacking, f"columns of {table.where}", table.names, expected, advice)
    return list(given.values)
