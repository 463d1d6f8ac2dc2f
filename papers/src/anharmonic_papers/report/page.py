"""Self-contained HTML pages of comparisons, without scripts or external files, in two themes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anharmonic import __version__, pages
from anharmonic.train import write_atomically
from anharmonic_papers.report import text
from anharmonic_papers.report.compare import Line, command, missing
from anharmonic_papers.report.pictures import curves, in_words, points
from anharmonic_papers.report.summary import JUDGED, STATES, Entry, by_state, counts
from anharmonic_papers.tables.base import Table

_FOLDER = Path(__file__).parent / "templates"
_TEMPLATE, _INDEX = _FOLDER / "report.html.jinja", _FOLDER / "reports.html.jinja"
Comparison = tuple[Table, Sequence[Line]]


def html(comparisons: Sequence[Comparison], results: Path | None = None, back: str = "") -> str:
    """Return tables as one HTML page, with a link to the page ``back`` if there is one."""
    tables = [_table(table, lines, results) for table, lines in comparisons]
    return pages.render(
        _TEMPLATE,
        title=tables[0]["title"] if len(tables) == 1 else "Reported and ours",
        tables=tables,
        back=back,
        sources=text.SOURCES,
        version=__version__,
    )


def write_html(path: Path, comparisons: Sequence[Comparison], results: Path | None = None) -> None:
    """Write tables as one HTML page, atomically; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html(comparisons, results))


def write_html_pages(
    path: Path,
    comparisons: Sequence[Comparison],
    entries: Sequence[Entry],
    results: Path | None = None,
) -> None:
    """Write the summary of all experiments, and a page per table in the folder of the same name."""
    folder = path.with_suffix("")
    links = {table.id: f"{folder.name}/{table.id}.html" for table, _ in comparisons}
    folder.mkdir(parents=True, exist_ok=True)
    for table, lines in comparisons:
        page = folder / f"{table.id}.html"
        write_atomically(page, html([(table, lines)], results, back=f"../{path.name}"))
    known = {entry.experiment.id for entry in entries}
    others = [table for table, _ in comparisons if table.id not in known]
    index = pages.render(
        _INDEX,
        title="The papers' numbers",
        counts=counts(entries),
        states=by_state(entries),
        meanings=STATES,
        judged=JUDGED,
        others=others,
        links=links,
        sources=text.SOURCES,
        version=__version__,
    )
    write_atomically(path, index)


def _table(table: Table, lines: Sequence[Line], results: Path | None) -> dict[str, Any]:
    shown = text.columns(lines)
    groups = [_group(table, name, ln, shown) for name, ln in text.groups(lines).items()]
    return {
        "id": table.id,
        "title": table.title,
        "heading": text.heading(table),
        "head": [text.HEAD[i] for i in shown],
        "groups": groups,
        "without_curves": any(line.ours for line in lines) and not any(g["curves"] for g in groups),
        "quartiles": table.quartiles,
        "remarks": text.remarks(table, lines),
        "provenance": text.provenance(lines),
        "missing": missing(table, lines, results),
        "command": command(table, results=results),
    }


def _group(table: Table, name: str, lines: Sequence[Line], shown: Sequence[int]) -> dict[str, Any]:
    part, labels = table.part(name), ", ".join(line.row.label for line in lines if line.ours)
    picture = points(part, lines)
    return {
        "name": name,
        "heading": text.subheading(table, name),
        "points": None if picture is None else pages.image(picture, in_words(lines)),
        "curves": [pages.image(one, f"learning curves, {labels}") for one in curves(part, lines)],
        "rows": [row for line in lines if line.ours for row in _rows(line, shown)],
        "absent": [row for line in lines if not line.ours for row in _rows(line, shown)],
    }


def _rows(line: Line, shown: Sequence[int]) -> list[tuple[str, dict[str, str]]]:
    """Return rows of cells by column, each with its kind: full, none or reduced."""
    first = "full" if line.full else "none"
    return [
        ("reduced" if place else first, {text.HEAD[i]: row[i] for i in shown})
        for place, row in enumerate(text.cells(line))
    ]
