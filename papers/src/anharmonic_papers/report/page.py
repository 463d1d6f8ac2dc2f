"""One self-contained HTML page of comparisons: no script, nothing from outside, two themes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from anharmonic import __version__
from anharmonic.pages import STYLE
from anharmonic.train import write_atomically
from anharmonic_papers.report.compare import (
    DOCUMENTS,
    HEAD,
    Line,
    cells,
    columns,
    command,
    groups,
    heading,
    missing,
    provenance,
    remarks,
    subheading,
)
from anharmonic_papers.report.pictures import curves, points
from anharmonic_papers.tables.base import Table

MINE = ' class="mine"'

LEGEND = (
    '<div class="legend"><span><b class="ours"></b>ours, mean of the seeds; bar: one standard '
    "deviation either side, or the range of two seeds</span>"
    '<span><b class="theirs"></b>as reported in the document</span></div>'
)


def html(comparisons: Sequence[tuple[Table, Sequence[Line]]]) -> str:
    """The page, as text.

    Args:
        comparisons: Tables, each with what ``report.compare`` gave for it.
    """
    nav = "".join(f'<a href="#{escape(t.id)}">{escape(t.id)}</a>' for t, _ in comparisons)
    body = "".join(_section(table, lines) for table, lines in comparisons)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>anharmonic: tables</title><style>{STYLE}</style></head><body><main>"
        "<h1>Reported and reproduced</h1>"
        "<p>The tables of the documents beside what this package measures. Every number of ours "
        "has a stored run behind it and can be repeated with the command given. Rows that were "
        "not run say so.</p>"
        f"<nav>{nav}</nav>{LEGEND}{body}"
        f'<p class="soft">{escape(DOCUMENTS)}</p>'
        f'<p class="soft">Written by anharmonic {escape(__version__)}.</p></main></body></html>\n'
    )


def write_html(path: Path, comparisons: Sequence[tuple[Table, Sequence[Line]]]) -> None:
    """Writes the page whole or not at all.

    Args:
        path: Where; missing folders are made.
        comparisons: As in ``html``.

    Raises:
        OSError: If it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, html(comparisons))


def _section(table: Table, lines: Sequence[Line]) -> str:
    out = [f'<section id="{escape(table.id)}"><h2>{escape(table.title)}</h2>']
    out.append(f'<p class="soft">{escape(heading(table))}</p>')
    members = groups(lines)
    for name, part in members.items():
        picture = points(table.part(name), part)
        if picture:
            out.append(f"<h3>{escape(name)}</h3>{picture}" if name else picture)
    out.append(_table(table, members))
    for name, part in members.items():
        picture = curves(table.part(name), part)
        if picture:
            title = f"Learning curves, {name}" if name else "Learning curves"
            out.append(f"<h3>{escape(title)}</h3>{picture}")
    said = remarks(table, lines)
    if said:
        items = "".join(f"<li>{escape(s)}</li>" for s in said)
        out.append(f"<h3>Notes</h3><ul>{items}</ul>")
    behind = provenance(lines)
    if behind:
        out.append(f'<p class="soft">{escape(" ".join(behind))}</p>')
    commands = missing(table, lines)
    what = "To run what is missing" if commands else "To repeat these numbers"
    text = "\n".join(commands or [command(table)])
    out.append(f"<details><summary>{what}</summary><pre>{escape(text)}</pre></details></section>")
    return "".join(out)


def _table(table: Table, members: dict[str, list[Line]]) -> str:
    shown = columns(line for part in members.values() for line in part)
    head = "".join(f'<th scope="col">{escape(HEAD[i])}</th>' for i in shown)
    rows = []
    for name, part in members.items():
        if name:
            said = escape(subheading(table, name))
            rows.append(f'<tr class="group"><td colspan="{len(shown)}">{said}</td></tr>')
        for line in part:
            for place, row in enumerate(cells(line)):
                kind = "reduced" if place else ("" if line.full else "none")
                body = "".join(
                    f"<td{MINE if HEAD[i] == 'ours' else ''}>{escape(row[i])}</td>" for i in shown
                )
                rows.append(f'<tr class="{kind}">{body}</tr>' if kind else f"<tr>{body}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
