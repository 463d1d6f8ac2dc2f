"""The tables by name."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic._checks import choice
from anharmonic.experiments import cornn, demo, lem, speech, unicornn
from anharmonic.experiments.base import Table

_TABLES: dict[str, Table] = {
    table.id: table for module in (demo, cornn, unicornn, lem, speech) for table in module.TABLES
}


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
    """The tables of these names, each once.

    Args:
        names: Names of tables.

    Raises:
        ValueError: If there is no such table; the message lists all and the nearest.

    Example:
        >>> [t.id for t in expand(["demo", "lem-adding", "demo"])]
        ['demo', 'lem-adding']
    """
    return [table(name) for name in dict.fromkeys(names)]
