"""The documents' propositions as code: bounds, exact formulas and explicit constructions."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anharmonic.theory.statements import Statement


def all_statements() -> dict[str, Statement]:
    """Every statement by its name, chapter by chapter; imports the files that register them.

    Example:
        >>> all_statements()["cornn-energy-explicit"].number
        'T 2.2.9'
    """
    from anharmonic.theory.statements import CHAPTERS, STATEMENTS

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    chapters = sorted(STATEMENTS.values(), key=lambda s: CHAPTERS.index(s.chapter))
    return {statement.id: statement for statement in chapters}
