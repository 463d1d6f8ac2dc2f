"""``anharmonic report``: compare result lines with the reported numbers, table by table."""

from collections.abc import Sequence
from pathlib import Path

from tyro.conf import Positional

from anharmonic import pages
from anharmonic._checks import require
from anharmonic.cli import run_command
from anharmonic.train import read_results, write_atomically
from anharmonic_papers.figures import base as drawn
from anharmonic_papers.figures.registry import list_figures, tables_and_figures
from anharmonic_papers.report import summary as summaries
from anharmonic_papers.report import text
from anharmonic_papers.report.compare import compare, results_folder
from anharmonic_papers.report.markdown_pages import write_pages
from anharmonic_papers.report.page import write_html, write_html_pages
from anharmonic_papers.tables import list_tables


def run(words: Sequence[str]) -> int:
    """Run the command with the arguments after ``anharmonic report``; return the exit code."""
    return run_command(report, words, "anharmonic report")


def report(
    ids: Positional[tuple[str, ...]] = (),
    results: Path | None = None,
    html: Path | None = None,
    markdown: Path | None = None,
    summary: bool = False,
    into: Path | None = None,
) -> int:
    """Show tables beside the published numbers. Without names, show those with results.

    Args:
        ids: Names of tables and figures.
        results: File of result lines, or folder of .jsonl files. Default: papers/results in a
            checkout, else results.
        html: Write a self-contained HTML page of tables instead of printing. Without names it is
            the summary, and the folder of the same name gets a page for each table.
        markdown: Write Markdown instead of printing. Without names it is the summary, and the
            folder of the same name gets a page for each paper.
        summary: Print a summary of all experiments. It says which match, which are below and why,
            which had a smaller budget, and which have no data.
        into: Write the summary into this file instead of printing it. It replaces what is between
            the lines <!-- summary --> and <!-- /summary -->.

    Raises:
        ValueError: If a name or an option is wrong, or the file of --into has no such lines.
        FileNotFoundError: If there are no results where ``--results`` says.
    """
    tables, figures = tables_and_figures(ids or [*list_tables(), *list_figures()])
    for name, path in {"--html": html, "--markdown": markdown}.items():
        if path is not None and not ids:
            advice = "the other pages are in the folder of the same name without it"
            require(bool(path.suffix), name, str(path), "a file with an ending", advice)
    if html is not None and ids:
        names = " ".join(figure.id for figure in figures)
        advice = f"run `anharmonic figure {names}` for a picture"
        require(not figures, "--html with names", names, "about tables only", advice)
    if summary or into is not None:
        is_used = not ids or html is not None or markdown is not None
        advice = "leave the names out"
        require(is_used, "the summary", " ".join(ids), "that of all experiments", advice)
    source = results or results_folder()
    files = sorted(source.glob("*.jsonl")) if source.is_dir() else [source]
    lines = [result for file in files if file.exists() for result in read_results(file)]
    folder = source if source.is_dir() else source.parent
    done = [name for name in list_figures() if (folder / f"{name}.json").exists()]
    measured = [(one, drawn.read(drawn.path_of(one, folder))) for one in figures if one.id in done]
    came = f"{'no results in' if source.exists() else 'nothing at'} {source.resolve()}"
    advice = "run `anharmonic table ID` first, or give papers/results of a checkout to --results"
    require(
        bool(lines or measured), str(source), came, "a file of result lines or a folder of them",
        advice, FileNotFoundError,
    )  # fmt: skip
    entries = summaries.summary(lines, done)
    if into is not None:
        summaries.put_into(into, summaries.short(entries))
        print(f"wrote {into}")
    if summary:
        print(summaries.terminal(entries))
    comparisons = [(table, compare(table, lines)) for table in tables]
    without: list[str] = []
    if not ids:
        ran = {table.id for table, mine in comparisons if any(line.ours for line in mine)}
        without = [table.id for table in tables if table.id not in ran]
        without += [figure.id for figure in figures if figure.id not in done]
        comparisons = [pair for pair in comparisons if pair[0].id in ran]
    if html is not None:
        if ids:
            write_html(html, comparisons, results)
        else:
            write_html_pages(html, comparisons, entries, results)
        print(f"wrote {html}")
    if markdown is not None:
        sections = {t.id: text.markdown(t, compared, results) for t, compared in comparisons}
        sections |= {figure.id: drawn.markdown(figure, curves) for figure, curves in measured}
        if ids:
            markdown.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(markdown, "\n".join([*sections.values(), f"{text.SOURCES}\n"]))
        else:
            write_pages(markdown, entries, sections)
        print(f"wrote {markdown}")
    if summary or html or markdown or into:
        return 0
    blocks = [text.terminal(table, compared, results) for table, compared in comparisons]
    blocks += [drawn.terminal(figure, curves) for figure, curves in measured]
    if without:
        blocks.append(pages.text(f"No results yet: {', '.join(without)}."))
    print("\n\n".join([*blocks, pages.text(text.SOURCES)]))
    return 0
