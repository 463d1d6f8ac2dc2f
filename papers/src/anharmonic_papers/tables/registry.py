"""The tables by name."""

from __future__ import annotations

from anharmonic._checks import choice
from anharmonic_papers.tables import (
    cornn,
    demo,
    g2,
    g2_variations,
    graphcon,
    graphcon_batches,
    lem,
    nestaas,
    speech,
    unicornn,
)
from anharmonic_papers.tables.base import Table

_TABLES: dict[str, Table] = {
    table.id: table
    for module in (
        demo,
        cornn,
        unicornn,
        lem,
        speech,
        graphcon,
        graphcon_batches,
        g2,
        g2_variations,
        nestaas,
    )
    for table in module.TABLES
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


def table_lines() -> list[tuple[str, str]]:
    """Names of the tables, each with what `anharmonic list` says of it."""
    return [(t.id, f"{t.title}. Source: {t.source}.") for t in _TABLES.values()]
