"""``anharmonic report``: tables beside the reported numbers, from result lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anharmonic._checks import message
from anharmonic.cli import field_options, parse
from anharmonic_papers.report.places import results_folder

PROG = "anharmonic report"


@dataclass(frozen=True)
class Report:
    """What to write."""

    results: Path | None = None
    """A file of result lines, or a folder of .jsonl files."""
    html: Path | None = None
    """Write one self-contained HTML page here instead of printing."""
    markdown: Path | None = None
    """Write Markdown here instead of printing."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic report``.

    Returns:
        The exit code.

    Raises:
        ValueError: If a name or an option is wrong.
        FileNotFoundError: If there are no results where ``--results`` says.
    """
    from anharmonic import pages
    from anharmonic.train import read_results, write_atomically
    from anharmonic_papers.figures import base as drawn
    from anharmonic_papers.figures.registry import list_figures, tables_and_figures
    from anharmonic_papers.report.compare import SOURCES, compare, has_results, markdown, terminal
    from anharmonic_papers.report.page import write_html
    from anharmonic_papers.tables import list_tables

    first = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    tables, figures = tables_and_figures(words[:first] or [*list_tables(), *list_figures()])
    values = parse(
        words[first:],
        {"report": field_options(Report)},
        PROG,
        "Shows tables beside the reported numbers; if none is named, prints those with results.",
        "[ID ...]",
    )
    place: Path = values["results"] or results_folder()
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    results = [result for file in files if file.exists() for result in read_results(file)]
    folder = place if place.is_dir() else place.parent
    measured = [
        (figure, drawn.read(path))
        for figure in figures
        if (path := drawn.path_of(figure, folder)).exists()
    ]
    if not results and not measured:
        raise FileNotFoundError(
            message(
                f"{place} must be a file of result lines or a folder of them",
                f"{'no results in' if place.exists() else 'nothing at'} {place.resolve()}",
                "run `anharmonic table ID` first, or name the place with --results",
            )
        )
    comparisons = [(table, compare(table, results)) for table in tables]
    written = []
    if values["html"] is not None:
        write_html(values["html"], comparisons)
        written.append(values["html"])
    if values["markdown"] is not None:
        values["markdown"].parent.mkdir(parents=True, exist_ok=True)
        sections = [markdown(table, lines) for table, lines in comparisons]
        sections += [drawn.markdown(figure, found) for figure, found in measured]
        write_atomically(values["markdown"], "\n".join([*sections, f"{SOURCES}\n"]))
        written.append(values["markdown"])
    for path in written:
        print(f"wrote {path}")
    if not written:
        shown, without = comparisons, []
        if not words[:first]:
            shown = [(table, lines) for table, lines in comparisons if has_results(lines)]
            without = [table.id for table, lines in comparisons if not has_results(lines)]
            known = {figure.id for figure, _ in measured}
            without += [figure.id for figure in figures if figure.id not in known]
        blocks = [terminal(table, lines) for table, lines in shown]
        blocks += [drawn.terminal(figure, found) for figure, found in measured]
        if without:
            blocks.append(pages.text(f"No results yet: {', '.join(without)}."))
        print("\n\n".join([*blocks, pages.text(SOURCES)]))
    return 0
