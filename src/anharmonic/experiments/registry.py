"""The tables by name."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic._checks import choice
from anharmonic.experiments import cornn, demo, lem, unicornn
from anharmonic.experiments.base import Table

_TABLES: dict[str, Table] = {
    table.id: table for module in (demo, cornn, unicornn, lem) for table in module.TABLES
}
_SETS = {"demo": tuple(t.id for t in demo.TABLES)}


def list_tables() -> list[str]:
    """Names of all tables.

    Example:
        >>> "lem-fitzhugh-nagumo" in list_tables()
        True
    """
    return list(_TABLES)


def table(name: str) -> Table:
    """The table of that name.

    Args:
        name: One of ``list_tables()``.

    Raises:
        ValueError: If there is none; the message lists all and the nearest.

    Example:
        >>> table("lem-psmnist").row("lem-published-code").run.model_options["dt"]
        0.31
    """
    return _TABLES[choice("table", name, _TABLES)]


def expand(names: Iterable[str]) -> list[Table]:
    """The tables of these names; ``"demo"`` stands for all that begin with it.

    Args:
        names: Names of tables or sets of tables.

    Raises:
        ValueError: If there is no such table; the message lists all and the nearest.

    Example:
        >>> [t.id for t in expand(["demo"])]
        ['demo-digits', 'demo-adding']
    """
    known = [*_TABLES, *_SETS]
    chosen = [choice("table", name, known) for name in names]
    ids = dict.fromkeys(id for name in chosen for id in _SETS.get(name, (name,)))
    return [_TABLES[id] for id in ids]
