"""The register of figures by name."""

from __future__ import annotations

from collections.abc import Iterable

from anharmonic._checks import choice, message
from anharmonic_papers.figures import illustrations, smoothing, speed, trained
from anharmonic_papers.figures.base import Figure
from anharmonic_papers.tables import Table, list_tables, table
from anharmonic_papers.tables.registry import missing

_FIGURES: dict[str, Figure] = {
    figure.id: figure
    for module in (illustrations, speed, trained, smoothing)
    for figure in module.FIGURES
}


def list_figures() -> list[str]:
    """Return the names of all figures.

    Example:
        >>> "g2-mad" in list_figures()
        True
    """
    return list(_FIGURES)


def figure(name: str) -> Figure:
    """Return a figure by name.

    Args:
        name: One of ``list_figures()``.

    Raises:
        ValueError: If there is no such figure; the message lists all names and the nearest. If the
            name is that of a table, the message names the command that runs it.

    Example:
        >>> figure("g2-mad").source
        'thesis Figure 8.9'
    """
    if name in list_tables():
        raise ValueError(
            message(
                "a figure is needed here", f"{name!r}, a table", f"run `anharmonic table {name}`"
            )
        )
    return _FIGURES[choice("figure", name, _FIGURES)]


def tables_and_figures(names: Iterable[str]) -> tuple[list[Table], list[Figure]]:
    """Return the tables and figures with these names, each once.

    Args:
        names: Names of tables and figures.

    Raises:
        ValueError: If there is no such name; the message lists all names and the nearest.

    Example:
        >>> tables, figures = tables_and_figures(["demo", "g2-mad", "lem-adding", "demo"])
        >>> [t.id for t in tables], [f.id for f in figures]
        (['demo', 'lem-adding'], ['g2-mad'])
    """
    known = [*list_tables(), *_FIGURES]
    wanted = list(dict.fromkeys(choice("table", name, known) for name in names))
    return (
        [table(name) for name in wanted if name not in _FIGURES],
        [_FIGURES[name] for name in wanted if name in _FIGURES],
    )


def figure_lines() -> list[tuple[str, str]]:
    """Return the name of each figure with its description in `anharmonic list`."""
    return [(f.id, f"{f.title}. Source: {f.source}.{missing(f.data)}") for f in _FIGURES.values()]
