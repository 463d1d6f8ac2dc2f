"""``anharmonic theory``: the documents' statements, checked on their examples."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from anharmonic._checks import choice, message
from anharmonic.cli import field_options, parse

if TYPE_CHECKING:
    from anharmonic_papers.theory.statements import Statement

PROG = "anharmonic theory"
WIDTH = 100


@dataclass(frozen=True)
class Theory:
    """What to check."""

    chapter: str | None = None
    """Only the statements of this chapter, e.g. LEM or "Neural ODEs"."""
    markdown: Path | None = None
    """Check every statement and write the page of all here, its pictures beside it."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic theory``.

    Returns:
        The exit code: 1 if an example contradicts its statement.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    from anharmonic_papers.theory import all_statements
    from anharmonic_papers.theory.statements import CHAPTERS

    first = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    values = parse(
        words[first:],
        {"theory": field_options(Theory)},
        PROG,
        "Checks the documents' statements on their examples: all in a line each, or those named "
        "in full, by name or number as this list has them (cornn-energy, 'T 2.2.1').",
        "[ID ...]",
    )
    statements = all_statements()
    names = [name for word in words[:first] for name in _named(word, statements)]
    if values["markdown"] is not None:
        if names or values["chapter"] is not None:
            raise ValueError(
                message(
                    "--markdown writes every statement",
                    f"{' '.join(names) or '--chapter ' + values['chapter']} besides",
                    "leave it out",
                )
            )
        from anharmonic_papers.report.theory_page import write_page

        for path in write_page(values["markdown"]):
            print(f"wrote {path}")
        return 0
    shown = [statements[name] for name in names or statements]
    if values["chapter"] is not None:
        chapter = choice("chapter", values["chapter"], CHAPTERS)
        shown = [statement for statement in shown if statement.chapter == chapter]
    width = max((len(statement.id) for statement in shown), default=0)
    broken = 0
    for statement in shown:
        check = statement.example()
        broken += statement.contradicted_by(check)
        if not names:
            print(f"{statement.id.ljust(width)}  {statement.state.ljust(9)}  {check}", flush=True)
            continue
        print(f"{statement.id} ({statement.chapter}, {statement.number}, {statement.state})")
        for name, text in (
            ("claim", statement.claim),
            ("remark", statement.remark or "none"),
            ("example", str(check)),
        ):
            print(
                textwrap.fill(
                    f"{name}: {text}", WIDTH, initial_indent="  ", subsequent_indent="    "
                )
            )
    return min(broken, 1)


def _named(word: str, statements: Mapping[str, Statement]) -> list[str]:
    """The names of the statements that a word means: a name, or a number in a document."""
    if word in statements:
        return [word]
    numbered = [s.id for s in statements.values() if s.number.lower() == word.lower()]
    if numbered:
        return numbered
    near = get_close_matches(word.lower(), statements, n=1)
    raise ValueError(
        message(
            "a statement's name or number must be one that `anharmonic theory` lists",
            repr(word),
            f"did you mean {near[0]!r}?" if near else "run it without names to see them",
        )
    )
