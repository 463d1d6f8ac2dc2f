"""The register of figures by name."""

from collections.abc import Sequence

from anharmonic._checks import choice, require
from anharmonic_papers.figures import illustrations, smoothing, speed, trained
from anharmonic_papers.figures.base import Figure
from anharmonic_papers.tables import Table, list_tables, table

_FIGURES: dict[str, Figure] = {
    figure.id: figure
    for module in (illustrations, speed, trained, smoothing)
    for figure in module.FIGURES
}


def list_figures() -> list[str]:
    """Return the names of all figures."""
    return list(_FIGURES)


def figure(name: str) -> Figure:
    """Return a figure by name; for the name of a table, the error names its command."""
    is_table, advice = name in list_tables(), f"run `anharmonic table {name}`"
    require(not is_table, "figure", name, "a figure and no table", advice)
    return _FIGURES[choice("figure", name, _FIGURES)]


def tables_and_figures(names: Sequence[str]) -> tuple[list[Table], list[Figure]]:
    """Return the tables and figures with these names, each once."""
    known = [*list_tables(), *_FIGURES]
    for name in names:
        paper = [one for one in known if one.startswith(f"{name}-")]
        advice = f"choose among {', '.join(paper)}"
        require(name in known or not paper, "table", name, "a whole name", advice)
    wanted = list(dict.fromkeys(choice("table", name, known) for name in names))
    return (
        [table(name) for name in wanted if name not in _FIGURES],
        [_FIGURES[name] for name in wanted if name in _FIGURES],
    )


def figure_lines() -> list[tuple[str, str]]:
    """Return the name of each figure with its description in `anharmonic list`."""
    return [(f.id, f"{f.title}. Source: {f.source}.") for f in _FIGURES.values()]
