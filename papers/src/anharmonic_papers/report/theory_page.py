"""Write the page of all statements, ``papers/docs/theory.md``, with tables and pictures."""

import re
from collections import Counter
from pathlib import Path

import anharmonic_papers
from anharmonic import pages
from anharmonic._checks import require
from anharmonic.train import write_atomically
from anharmonic_papers.report.markdown_pages import slug
from anharmonic_papers.report.theory_pictures import has_curve, panels
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import CHAPTERS, Check, Statement

_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}

TEMPLATE = Path(__file__).parent / "templates" / "theory.md.jinja"


def row(statement: Statement, check: Check) -> str:
    """Return the row of a statement in the table of its chapter."""
    return f"{without_ratio(statement)} {ratio(check)} | {cell(statement.remark)} |"


def without_ratio(statement: Statement) -> str:
    """Return a statement's row up to the ratio, which depends on the machine."""
    said = statement
    name = f"[`{said.id}`]({_source(said)}#L{said.place[1]})"
    return f"| {cell(said.number)} | {name} | {cell(said.claim)} | {said.state} |"


def _source(statement: Statement) -> str:
    """Return the path from the page to the file of a statement's check."""
    inside = statement.place[0].relative_to(Path(anharmonic_papers.__file__).parents[1])
    return f"../src/{inside.as_posix()}"


def cell(text: str) -> str:
    """Escape text for a cell of a table."""
    return re.sub(r"([|*_])", r"\\\1", text).replace("<", "&lt;")


def ratio(check: Check) -> str:
    """Format the ratio of an example and its bound, without the digits of rounding errors."""
    value = "≈ 0" if abs(check.ratio) < 1e-3 else f"{check.ratio:.3g}"
    return f"{value} ({_SIGNS[check.relation]} 1)"


def picture_name(chapter: str) -> str:
    """Return the file name of a chapter's picture."""
    return f"theory-{slug(chapter)}.svg"


def write_page(path: Path) -> list[Path]:
    """Run every example and write the page, with its pictures in the folder pictures beside it.

    Returns the written files, the page last. An example that contradicts its statement is refused.
    """
    statements = all_statements()
    checks = {name: statement.example() for name, statement in statements.items()}
    wrong = [name for name, said in statements.items() if said.contradicted_by(checks[name])]
    advice = "run `anharmonic theory NAME` for each, and mend it first"
    require(not wrong, "examples", ", ".join(wrong), "those of their statements' states", advice)
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    chapters, refuted, written = [], [], []
    for chapter in CHAPTERS:
        members = [s for s in statements.values() if s.chapter == chapter]
        drawn = [checks[s.id] for s in members if has_curve(checks[s.id])]
        if drawn:
            written.append(pictures / picture_name(chapter))
            pages.save(panels(drawn), written[-1])
        if members:
            chapters.append(
                {
                    "name": chapter,
                    "anchor": slug(chapter),
                    "states": Counter(s.state for s in members),
                    "file": _source(members[0]),
                    "picture": picture_name(chapter) if drawn else None,
                    "rows": [row(s, checks[s.id]) for s in members],
                }
            )
            refuted += [
                f"| {cell(s.number)} | [`{s.id}`](#{slug(chapter)}) | {cell(s.remark)} |"
                for s in members
                if s.state == "false"
            ]
    states = Counter(s.state for s in statements.values())
    filled = {"states": states, "refuted": refuted, "chapters": chapters}
    write_atomically(path, pages.render(TEMPLATE, **filled))
    return [*written, path]
