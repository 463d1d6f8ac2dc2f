"""One self-contained HTML page of comparisons: no script, nothing from outside, two themes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anharmonic import __version__, pages
from anharmonic.train import write_atomically
from anharmonic_papers.report import compare
from anharmonic_papers.report.compare import HEAD, Line
from anharmonic_papers.report.pictures import curves, in_words, points
from anharmonic_papers.tables.base import Table

_TEMPLATE = Path(__file__).parent / "templates" / "report.html.jinja"


def html(comparisons: Sequence[tuple[Table, Sequence[Line]]], results: Path | None = None) -> str:
    """The page, as text.

    Args:
        comparisons: Tables, each with what ``report.compare`` gave for it.
        results: The place of the results, if it is named; see ``report.command``.
    """
    return pages.render(
        _TEMPLATE,
        title="Reported and reproduced",
        tables=[_table(table, lines, results) for table, lines in comparisons],
        sources=compare.SOURCES,
        version=__version__,
    )


def write_html(
    path: Path,
    comparisons: Sequence[tuple[Table, Sequence[Line]]],
    results: Path | None = None,
) -> None:
    """Writes the page whole or not at all.

    Args:
        path: Where; missing folders are made.
        comparisons: As in ``html``.
        results: As in ``html``.

    Raises:
        OSError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html(comparisons, results))


def _table(table: Table, lines: Sequence[Line], results: Path | None) -> dict[str, Any]:
    shown = compare.columns(lines)
    return {
        "id": table.id,
        "title": table.title,
        "heading": compare.heading(table),
        "head": [HEAD[i] for i in shown],
        "groups": [
            {
                "name": name,
                "heading": compare.subheading(table, name),
                "points": _image(points(table.part(name), members), in_words(members)),
                "curves": _image(curves(table.part(name), members), "learning curves"),
                "rows": [row for line in members for row in _rows(line, shown)],
            }
            for name, members in compare.groups(lines).items()
        ],
        "remarks": compare.remarks(table, lines),
        "provenance": compare.provenance(lines),
        "missing": compare.missing(table, lines, results),
        "command": compare.command(table, results=results),
    }


def _image(figure: Any, alt: str) -> Any:
    return None if figure is None else pages.image(figure, alt)


def _rows(line: Line, shown: Sequence[int]) -> list[tuple[str, dict[str, str]]]:
    """The cells of a line by column, each row with its kind: full, none or reduced."""
    first = "full" if line.full else "none"
    return [
        ("reduced" if place else first, {HEAD[i]: row[i] for i in shown})
        for place, row in enumerate(compare.cells(line))
    ]
