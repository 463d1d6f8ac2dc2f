"""The results as Markdown: a page per paper, and a summary that links to them."""

import re
from collections.abc import Mapping, Sequence
from inspect import getfile
from pathlib import Path

from anharmonic.train import write_atomically
from anharmonic_papers.figures.registry import figure, list_figures
from anharmonic_papers.report.summary import Entry, markdown
from anharmonic_papers.report.text import SOURCES

PAPERS = {
    "cornn": "coRNN",
    "unicornn": "UnICORNN",
    "lem": "Long expressive memory",
    "graphcon": "Graph-coupled oscillator networks",
    "g2": "Gradient gating",
    "nestaas": "Skew-symmetric neural ODEs",
    "more": "Tables of this package",
}
"""The pages by the prefix of their experiments' names."""
READING = (
    "*reported* is the paper's number. If it says *see notes*, the paper prints no number. *ours* "
    "is our mean ± standard deviation over seeds, or the mean and range of two seeds, unless a "
    "note says otherwise. *params* counts the parameters of the reported model (rep.) and of ours. "
    "*time* is the mean training time of one run. *settings* says whose settings our runs have: "
    "the paper's, those of its published code, or ours. A *reduced budget* has fewer epochs or "
    "less data."
)
"""How to read the tables of a page."""


def slug(title: str) -> str:
    """Return the anchor of a heading.

    Example:
        >>> slug("Adding problem, coRNN")
        'adding-problem-cornn'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def write_pages(path: Path, entries: Sequence[Entry], sections: Mapping[str, str]) -> None:
    """Write the summary, and the pages into the folder of the same name.

    The sections of tables and figures are Markdown, each beginning with its heading.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    pages: dict[str, dict[str, str]] = {page: {} for page in PAPERS}
    for name, text in sections.items():
        first = name.partition("-")[0]
        pages[first if first in PAPERS else "more"][name] = text
    links: dict[str, str] = {}
    for page, found in pages.items():
        if not found:
            continue
        titles = {name: text.partition("\n")[0].lstrip("# ") for name, text in found.items()}
        links |= {name: f"{folder.name}/{page}.md#{slug(titles[name])}" for name in found}
        out = [f"# {PAPERS[page]}: reported and ours", "", f"[All papers](../{path.name})", ""]
        out += [READING, ""]
        out += [f"- [{title}](#{slug(title)}) `{name}`" for name, title in titles.items()]
        out += ["", *(_linked(name, text, folder) for name, text in found.items())]
        write_atomically(folder / f"{page}.md", "\n".join([*out, f"{SOURCES}\n"]))
    write_atomically(path, markdown(entries, links))


def _linked(name: str, text: str, folder: Path) -> str:
    """A section with links to the table's rows or the figure's code, its numbers and picture."""
    source, numbers = f"tables/{name}.yaml", f"../../results/{name}.jsonl"
    if name in list_figures():
        code = Path(getfile(figure(name).measure)).name
        source, numbers = f"figures/{code}", f"../../results/{name}.json"
    rows = f"[`{name}`](../../src/anharmonic_papers/{source})"
    if (folder / numbers).exists():  # (some have lines with another table's runs)
        rows += f" · [numbers]({numbers})"
    text = text.replace(f"`{name}` ·", f"{rows} ·", 1)
    picture = f"../pictures/{name}.svg"
    if (folder / picture).exists():
        heading, _, rest = text.partition("\n")
        text = f"{heading}\n\n![{heading.lstrip('# ')}]({picture})\n{rest}"
    return text
