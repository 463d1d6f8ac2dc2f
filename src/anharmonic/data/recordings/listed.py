"""The table beside recordings that describes each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from anharmonic._checks import message, require
from anharmonic.data.columns import GROUP_WORDS, NO_COLUMN, Columns, by_name, plain, target_rank
from anharmonic.data.sequences import Sequences
from anharmonic.data.tables.beside import beside
from anharmonic.data.tables.cells import Table, keys, known_labels, quoted
from anharmonic.data.tables.text import read_text

_SHOWN = 5
_FILE_WORDS = frozenset("file files filename filenames path paths recording wav stem".split())


def listed(path: Path, names: Sequence[str]) -> Table:
    """Read a table with one row per recording: its other columns, in the order of the names.

    One column names the files by relative path, name, or name without ending.
    """
    table = read_text(path, Columns(), typed=False)
    require(len(table) > 0, f"rows in {path.name}", 0, "one for every file", "add them")
    column, rows = _rows(table, names)
    if not table.header and (column is None or _names_columns(table, column, rows)):
        table = read_text(path, Columns(header=True), typed=False)
        column, rows = _rows(table, names)
    if column is None:
        _check_once(path, table, names)
        first = str(table.column(table.names[0])[0].as_py())
        came = f"{quoted(table.names)} with cells such as {first!r}"
        advice = f"write a column with the names of the files, such as {names[0]}"
        raise ValueError(message(f"{path.name} must name the files", came, advice))
    lacking = [name for name in names if name not in rows]
    advice = "add their rows, or move these files elsewhere"
    name = f"files without a row in {path.name}"
    require(not lacking, name, lacking[:_SHOWN], "none", advice)
    table = table.without([column])
    return replace(table, arrow=table.arrow.take([rows[name] for name in names]))


def listed_labels(table: Table, given: Columns) -> tuple[NDArray[Any], NDArray[Any] | None, str]:
    """Return labels, groups and the label column of the table of `listed`; None for no groups.

    The label column has a known name or is the only column. A column named group, subject or
    similar defines groups.
    """
    beside = (*given.static, *given.categorical)
    table = table.without([name for name in table.names if name in beside])
    target = None if given.target == NO_COLUMN else given.target
    # Groups only split: data to predict need none.
    group = None if given.found and given.group not in table.names else given.group
    named = Columns(target=target, group=group)
    roles = by_name(table.names, named, table.where, True, ("target", "group"))
    free = [name for name in table.names if name != roles.get("group")]
    if "target" not in roles:
        if not free or (len(free) > 1 and table.header):
            expected = f"one column of {table.where} must be the label"
            came = quoted(free) or "none beside those of other use"
            advice = "call it label, or say which with --target-column"
            raise ValueError(message(expected, came, advice))
        roles["target"] = free[0]
        if not table.header and len(free) == 2:  # file, label, group
            roles["group"] = free[1]
    groups = keys(table, roles["group"], "group") if "group" in roles else None
    return known_labels(table, roles["target"]), groups, roles["target"]


def listed_groups(table: Table, given: Columns) -> NDArray[Any] | None:
    """Return the groups of recordings whose labels come from elsewhere; None if there are none."""
    named = Columns(group=given.group)
    roles = by_name(table.names, named, table.where, False, ("group",))
    return keys(table, roles["group"], "group") if "group" in roles else None


def listed_inputs(table: Table, part: Sequences, given: Columns) -> Sequences:
    """Return recordings with additional channels from those input columns that the table has."""
    static = tuple(name for name in given.static if name in table.names)
    categorical = tuple(name for name in given.categorical if name in table.names)
    if not static and not categorical:
        return part
    found = beside(table, replace(given, static=static, categorical=categorical, known=()))
    assert part.columns is not None
    columns = replace(
        part.columns,
        static=given.static,
        categorical=given.categorical,
        categories=(*part.columns.categories, *found.categories),
    )
    return replace(found.added_to(part), columns=columns)


def _check_once(path: Path, table: Table, names: Sequence[str]) -> None:
    """Check that no file has several rows."""
    for column in table.names:
        files = [name for name in _files(table, column, names) if name]
        if set(files) == set(names) and (name := next(n for n in files if files.count(n) > 1)):
            expected = f"{path.name} must have one row for every file"
            came = f"{files.count(name)} rows for {name}"
            raise ValueError(message(expected, came, "remove the others"))


def _names_columns(table: Table, column: str, rows: dict[str, int]) -> bool:
    """Whether the first row names columns: it alone names no file, and has no ending of a file."""
    first = str(table.column(column)[0].as_py() or "")
    return 0 not in rows.values() and not Path(first).suffix


def _files(table: Table, column: str, names: Sequence[str]) -> list[str]:
    """Return the file that each cell of a column names; "" for none."""
    known: dict[str, str] = {}
    for name in names:
        path = Path(name)
        for word in (path.stem, path.name, path.with_suffix("").as_posix(), name):
            known[word] = name if known.get(word, name) == name or word == name else ""
    cells = table.column(column).to_pylist()
    return [
        known.get((cell or "").strip().replace("\\", "/").removeprefix("./"), "") for cell in cells
    ]


def _rows(table: Table, names: Sequence[str]) -> tuple[str | None, dict[str, int]]:
    """Return the column that names files, and the row of each file."""
    could: dict[str, dict[str, int]] = {}
    for column in table.names:
        files = _files(table, column, names)
        found = {name: row for row, name in enumerate(files) if name}
        if found and len(found) == len(list(filter(None, files))):  # labels repeat
            could[column] = found
    most = max(map(len, could.values()), default=0)
    best = [column for column, found in could.items() if len(found) == most]
    if len(best) > 1:
        best = [name for name in best if _FILE_WORDS & set(plain(name).split())] or best
        others = [n for n in best if target_rank(n) is None and plain(n) not in GROUP_WORDS]
        best = others or best
    if any(could[column] != could[best[0]] for column in best):
        expected = f"one column of {table.where} must name the files"
        advice = "call it file, or write the names with their ending"
        raise ValueError(message(expected, f"the columns {quoted(best)}", advice))
    return (best[0], could[best[0]]) if best else (None, {})
