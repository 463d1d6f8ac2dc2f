"""Every statement of the papers, found by importing the files that register them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

from anharmonic_papers.theory.statements import CHAPTERS, STATEMENTS, Statement


def all_statements() -> dict[str, Statement]:
    """Every statement by its name, in the papers' order; imports the files that register them.

    Example:
        >>> all_statements()["cornn-energy-explicit"].number
        'T 2.2.9'
    """
    rooms = [str(Path(__file__).parent)]
    for module in pkgutil.walk_packages(rooms, f"{__package__}."):
        importlib.import_module(module.name)
    ordered = sorted(
        STATEMENTS.values(), key=lambda s: (CHAPTERS.index(s.chapter), _place(s.number))
    )
    return {statement.id: statement for statement in ordered}


def _place(number: str) -> tuple[bool, list[int]]:
    """Where a statement stands in its chapter: the theses' numbers first, their appendices last.

    After them come equations and what only a paper has.

    Example:
        >>> sorted(["T (7.4)", "C 3.3", "N A.1", "T 7.2.10", "T 7.2.9 = C 1"], key=_place)
        ['T 7.2.9 = C 1', 'T 7.2.10', 'N A.1', 'C 3.3', 'T (7.4)']
    """
    found = re.search(r"(A\.)?\d+(\.\d+)*", number)
    if found is None:
        return True, []
    parts = [int(part) for part in found[0].removeprefix("A.").split(".")]
    return not re.match(r"[TN] [A\d]", number), ([1000] if found[1] else []) + parts
