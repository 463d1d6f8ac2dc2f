"""The tables and figures by name."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic._checks import choice, message
from anharmonic_papers.figures import illustrations, smoothing, trained
from anharmonic_papers.figures.base import Figure
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

_FIGURES: dict[str, Figure] = {
    figure.id: figure for module in (illustrations, trained, smoothing) for figure in module.FIGURES
}


def list_figures() -> list[str]:
    """Names of all figures.

    Example:
        >>> "g2-mad" in list_figures()
        True
    """
    return list(_FIGURES)


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


def figure(name: str) -> Figure:
    """The figure of that name.

    Args:
        name: One of ``list_figures()``.

    Raises:
        ValueError: If there is none; the message lists all and the nearest. For a table it names
            the command that runs it.

    Example:
        >>> figure("g2-mad").source
        'thesis Figure 8.9'
    """
    if name in _TABLES:
        raise ValueError(
            message(
                "a figure is needed here", f"{name!r}, a table", f"run `anharmonic table {name}`"
            )
        )
    return _FIGURES[choice("figure", name, _FIGURES)]


def expand(names: Iterable[str]) -> tuple[list[Table], list[Figure]]:
    """The tables and figures of these names, each once.

    Args:
        names: Names of tables and figures.

    Raises:
        ValueError: If there is no such name; the message lists all and the nearest.

    Example:
        >>> tables, figures = expand(["demo", "g2-mad", "lem-adding", "demo"])
        >>> [t.id for t in tables], [f.id for f in figures]
        (['demo', 'lem-adding'], ['g2-mad'])
    """
    chosen = dict.fromkeys(choice("table", name, [*_TABLES, *_FIGURES]) for name in names)
    return (
        [_TABLES[name] for name in chosen if name in _TABLES],
        [_FIGURES[name] for name in chosen if name in _FIGURES],
    )


def table_lines() -> list[tuple[str, str]]:
    """Names of the tables, each with what `anharmonic list` says of it."""
    return [(t.id, f"{t.title}. Source: {t.source}.") for t in _TABLES.values()]


def figure_lines() -> list[tuple[str, str]]:
    """Names of the figures, each with what `anharmonic list` says of it."""
    return [(f.id, f"{f.title}. Source: {f.source}.") for f in _FIGURES.values()]
