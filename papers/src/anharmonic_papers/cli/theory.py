"""``anharmonic theory``: check the papers' statements on examples."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

import torch
from tyro.conf import Positional

from anharmonic._checks import choice, message, require
from anharmonic.cli import run_command
from anharmonic.train import RunEnvironment
from anharmonic_papers.report.theory_page import write_page
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import CHAPTERS, STATES, Statement

WIDTH = 100
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def run(words: Sequence[str]) -> int:
    """Run the command with the arguments after ``anharmonic theory``; return the exit code."""
    return run_command(check, words, "anharmonic theory")


def check(
    ids: Positional[tuple[str, ...]] = (),
    chapter: str | None = None,
    markdown: Path | None = None,
    threads: int | None = None,
) -> int:
    """Check statements of the papers on examples. Without names, print one line for each.

    Args:
        ids: Names or numbers of statements, such as cornn-energy-explicit, 'T 2.2.1' or 2.2.1.
        chapter: Check only statements of this chapter, such as LEM or "Neural ODEs".
        markdown: Check all statements and write a page, with pictures in the folder beside it.
        threads: CPU threads. Default: PyTorch's choice.

    Returns:
        1 if an example contradicts its statement.

    Raises:
        ValueError: If a name or an option is wrong.
    """
    if (chosen := RunEnvironment(threads=threads).threads) is not None:
        torch.set_num_threads(chosen)
    statements = all_statements()
    names = list(dict.fromkeys(name for word in ids for name in _named(word, statements)))
    if markdown is not None:
        expected = "alone, because it writes every statement"
        alone = not names and chapter is None
        require(alone, "--markdown", names or chapter, expected, "leave the rest out")
        for path in write_page(markdown):
            print(f"wrote {path}")
        return 0
    shown = [statements[name] for name in names or statements]
    if chapter is not None:
        choice("chapter", chapter, CHAPTERS)
        shown = [statement for statement in shown if statement.chapter == chapter]
        expected = f"that of {', '.join(ids)}"
        require(bool(shown) or not names, "--chapter", chapter, expected, "leave out --chapter")
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
            ("assumptions", "; ".join(check.assumptions) or "none"),
            ("example", str(check)),
            ("arguments of its check", ", ".join(signature(statement.check).parameters)),
        ):
            line = f"{name}: {text}"
            print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    "))
    for symbols in dict.fromkeys(statement.symbols for statement in shown if names):
        print(f"\n{symbols}")
    if not names:
        print(f"\n{textwrap.fill(_counts(shown), WIDTH)}")
    return min(broken, 1)


def _counts(statements: Sequence[Statement]) -> str:
    """Return in words how many statements have each state, and what the states mean."""
    found = Counter(statement.state for statement in statements)
    states = [f"{name} {found[name]} ({meaning})" for name, meaning in STATES.items()]
    ours = found["corrected"]
    return f"{len(statements) - ours} printed statements and {ours} of ours: {', '.join(states)}."


def _named(word: str, statements: Mapping[str, Statement]) -> list[str]:
    """Return the names of the statements with this name, or with this number in their paper."""
    if word in statements:
        return [word]
    sought = "".join(word.lower().split())  # "L4.2" finds "L 4.2"
    numbered = []
    for statement in statements.values():
        for number in (statement.number, *statement.numbers):
            plain = "".join(number.lower().split())
            if sought in (plain, plain.lstrip(LETTERS)) and statement.id not in numbered:
                numbered.append(statement.id)
    if sought and numbered:
        return numbered
    near = get_close_matches(word.lower(), statements, n=1)
    raise ValueError(
        message(
            "a statement's name or number must be one that `anharmonic theory` lists",
            repr(word),
            f"did you mean {near[0]!r}?" if near else "run it without names to see them",
        )
    )
