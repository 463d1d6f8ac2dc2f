"""``anharmonic report``: tables beside the reported numbers, from result lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tyro.conf import Positional

from anharmonic import pages
from anharmonic._checks import message
from anharmonic.cli import run_command
from anharmonic.train import read_results, write_atomically
from anharmonic_papers.figures import base as drawn
from anharmonic_papers.figures.registry import list_figures, tables_and_figures
from anharmonic_papers.report.compare import SOURCES, compare, has_results, terminal
from anharmonic_papers.report.compare import markdown as table_in_markdown
from anharmonic_papers.report.page import write_html
from anharmonic_papers.report.places import results_folder
from anharmonic_papers.tables import list_tables


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic report``.

    Returns:
        The exit code.
    """
    return run_command(report, words, "anharmonic report")


def report(
    ids: Positional[tuple[str, ...]] = (),
    results: Path | None = None,
    html: Path | None = None,
    markdown: Path | None = None,
) -> int:
    """Shows tables beside the reported numbers; if none is named, prints those with results.

    Args:
        ids: Names of tables and figures.
        results: A file of result lines, or a folder of .jsonl files. Default: papers/results in a
            checkout, else results.
        html: Write one self-contained HTML page here instead of printing.
        markdown: Write Markdown here instead of printing.

    Raises:
        ValueError: If a name is wrong.
        FileNotFoundError: If there are no results where ``--results`` says.
    """
    tables, figures = tables_and_figures(ids or [*list_tables(), *list_figures()])
    source = results or results_folder()
    files = sorted(source.glob("*.jsonl")) if source.is_dir() else [source]
    lines = [result for file in files if file.exists() for result in read_results(file)]
    folder = source if source.is_dir() else source.parent
    measured = [
        (figure, drawn.read(path))
        for figure in figures
        if (path := drawn.path_of(figure, folder)).exists()
    ]
    if not lines and not measured:
        raise FileNotFoundError(
            message(
                f"{source} must be a file of result lines or a folder of them",
                f"{'no results in' if source.exists() else 'nothing at'} {source.resolve()}",
                "run `anharmonic table ID` first, or name the place with --results",
            )
        )
    comparisons = [(table, compare(table, lines)) for table in tables]
    if html is not None:
        write_html(html, comparisons, results)
        print(f"wrote {html}")
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        sections = [table_in_markdown(table, compared, results) for table, compared in comparisons]
        sections += [drawn.markdown(figure, curves) for figure, curves in measured]
        write_atomically(markdown, "\n".join([*sections, f"{SOURCES}\n"]))
        print(f"wrote {markdown}")
    if html is not None or markdown is not None:
        return 0
    without = []
    if not ids:
        without = [table.id for table, compared in comparisons if not has_results(compared)]
        comparisons = [pair for pair in comparisons if has_results(pair[1])]
        known = {figure.id for figure, _ in measured}
        without += [figure.id for figure in figures if figure.id not in known]
    blocks = [terminal(table, compared, results) for table, compared in comparisons]
    blocks += [drawn.terminal(figure, curves) for figure, curves in measured]
    if without:
        blocks.append(pages.text(f"No results yet: {', '.join(without)}."))
    print("\n\n".join([*blocks, pages.text(SOURCES)]))
    return 0
