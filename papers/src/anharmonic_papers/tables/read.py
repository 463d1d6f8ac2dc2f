"""Reading of tables from YAML files.

A file holds the fields of ``Table`` (its name is the table's ``id``) and, last, ``rows`` or
``parts``. A row holds the fields of ``Row``; its ``run`` those of ``Run``. Beyond these there are:

- ``defaults``, beside ``rows``: fields of every row with a run. Mappings are merged key by key;
  ``null`` in a row removes a default.
- ``like: TABLE/ROW`` in a row: it takes run, seeds, split, settings and note from that row of
  another table, except for its own fields.
- ``chosen`` in a row with ``search``: the choice of ``table ID --search``, copied from its file, or
  ``{like: ROW}`` for the values of another row of the table. ``values`` alone were chosen in
  another way, which the row's note describes.

Quote text that YAML would read as a number, above all numbers "as printed".
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml

from anharmonic._checks import choice, listed, message, require
from anharmonic.train import Range, Run, with_settings
from anharmonic_papers.tables.base import Row, Table, join

SEARCH_NOTE = "Settings: random search, {trials} trials for this row, judged by validation {where}."
LIKE_NOTE = "Settings: those that the search for {row} chose; none of its own."
UNSEARCHED = "Settings: our defaults, not searched yet."

_TAKEN = ("run", "seeds", "split", "settings", "note")
"""Fields that a row takes from the row in ``like``."""


@cache
def read_table(path: Path) -> Table:
    """Read the table of a file; errors name the file and the row."""
    with _named(path.name):
        content = _mapping("the file", _load(path, path.read_text(encoding="utf-8")))
        content.setdefault("id", path.stem)
        return _table(content, {}, path)


@cache
def read_head(path: Path) -> Mapping[str, Any]:
    """Read the part of a file before its rows."""
    text = re.split(r"^(?:rows|parts|defaults):", path.read_text(encoding="utf-8"), flags=re.M)[0]
    with _named(path.name):
        return _mapping("the file", _load(path, text))


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML in which 1e-3 is a number and duplicate keys are refused."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        twice = {name for name in names if names.count(name) > 1}
        require(not twice, "a key", sorted(twice), "given once", "drop one of them")
        return dict(super().construct_mapping(node, deep))


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?e[-+]?\d+$"), list("-+0123456789")
)


def _load(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        came = f"text that is not, in line {line} ({error.problem})"
        raise ValueError(message("the file must be YAML", came, "mend that line")) from error


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Prefix an error message with its place."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from error


def _mapping(name: str, value: Any, known: Collection[str] | None = None) -> dict[str, Any]:
    """Check for a mapping with known keys and return a copy."""
    require(isinstance(value, dict), name, value, "a mapping of names to values", "write name: ...")
    for key in value if known is not None else ():
        choice(f"a key of {name}", key, known or ())
    return dict(value)


def _fields(kind: type, name: str, given: Any, *more: str) -> dict[str, Any]:
    """Check the fields of a dataclass by their annotations; lists become tuples."""
    hints = get_type_hints(kind)
    values = _mapping(name, given, [*(field.name for field in fields(kind)), *more])
    for key, value in values.items():
        hint = hints.get(key)
        if hint is str:
            require(isinstance(value, str), key, value, "text", f'write {key}: "{value}"')
        elif get_origin(hint) is Literal:
            choice(key, value, get_args(hint))
        elif any(get_origin(one) is tuple for one in (hint, *get_args(hint))):
            require(isinstance(value, list | tuple), key, value, "a list", f"write [{value}]")
            values[key] = tuple(value)
    return values


def _merged(default: Any, own: Any) -> Any:
    """Merge a value over its default: mappings key by key, None removes."""
    if not (isinstance(default, dict) and isinstance(own, dict)):
        return own
    both = default | {key: _merged(default.get(key), value) for key, value in own.items()}
    return {key: value for key, value in both.items() if value is not None}


def _table(content: dict[str, Any], defaults: dict[str, Any], path: Path) -> Table:
    values = _fields(Table, "the table", content, "defaults")
    own = _mapping("defaults", values.pop("defaults", {}), [field.name for field in fields(Row)])
    defaults = _merged(defaults, own)
    if "parts" in values:
        source = {"source": values.get("source")}
        parts = tuple(_table(source | part, defaults, path) for part in values.pop("parts"))
        return join(**values, parts=parts)
    return Table(**values | {"rows": _rows(values.get("rows", ()), defaults, path)})


def _rows(given: Sequence[Any], defaults: dict[str, Any], path: Path) -> tuple[Row, ...]:
    rows: dict[str, tuple[Row, Any]] = {}
    for number, content in enumerate(given, start=1):
        label = content.get("label") if isinstance(content, dict) else None
        with _named(f"row {number}" + (f" ({label})" if label else "")):
            content = _fields(Row, "the row", content, "chosen", "like")
            require(label is not None, "label", None, "given", "write label: NAME")
            if "like" in content:
                content = _like(content, path)
            elif "run" in content:
                content = _merged(defaults, content)
            chosen = content.pop("chosen", None)
            row = _row(_fields(Row, "the row", content))
            require(row.id not in rows, "label", label, "its group's only one", "rename a row")
            rows[row.id] = row, chosen
    found = {}
    for number, (name, (row, chosen)) in enumerate(rows.items(), start=1):
        with _named(f"row {number} ({row.label})"):
            found[name] = _with_choice(row, chosen, rows)
    return tuple(found.values())


def _row(values: dict[str, Any]) -> Row:
    if "run" in values:
        values["run"] = Run(**_fields(Run, "run", values["run"]))
    if "search" in values:
        ranges = _mapping("search", values["search"]).items()
        values["search"] = {k: Range(**_fields(Range, f"the range of {k}", v)) for k, v in ranges}
    return Row(**values)


def _like(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Merge a row over the row of another table named by ``like``."""
    table, _, name = str(content.pop("like")).partition("/")
    source = path.with_name(f"{table}.yaml")
    require(
        source.exists() and source != path,
        "like", f"{table}/{name}", "TABLE/ROW of another table", "name a table and one of its rows",
    )  # fmt: skip
    other = read_table(source).row(name)
    require(other.run is not None, "like", f"{table}/{name}", "a row with a run", "name another")
    taken = {key: getattr(other, key) for key in _TAKEN} | {"run": dict(vars(other.run))}
    return dict(_merged(taken, content))


def _with_choice(row: Row, chosen: Any, rows: Mapping[str, tuple[Row, Any]]) -> Row:
    """Return the row with the settings chosen by a search, and a note about it."""
    if not row.search:
        require(chosen is None, "chosen", chosen, "left out", "give search: the ranges, too")
        return row
    if chosen is None:
        return _noted(row, UNSEARCHED)
    chosen = _mapping("chosen", chosen, ("like", "trials", "seeds", "valid", "values"))
    if "like" in chosen:
        name = choice("chosen: like", chosen["like"], rows)
        chosen = rows[name][1] or {}
        require("values" in chosen, "chosen: like", name, "a row with values", "name another")
        note = LIKE_NOTE.format(row=name)
    elif "trials" not in chosen:
        note = ""
    else:
        kind, several = "on split" if row.split else "with seed", len(chosen["seeds"]) > 1
        where = f"{kind}{'s' * several} {listed([*map(str, chosen['seeds'])])}"
        note = SEARCH_NOTE.format(trials=chosen["trials"], where=where)
    values, wanted = _mapping("values", chosen["values"]), sorted(row.search)
    require(sorted(values) == wanted, "values", sorted(values), f"one for each of {wanted}",
            "copy what the search wrote")  # fmt: skip
    assert row.run is not None
    return _noted(replace(row, run=with_settings(row.run, values)), note)


def _noted(row: Row, note: str) -> Row:
    return replace(row, note=f"{note} {row.note}".strip())
