"""The old decorator, until every paper has the new form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from anharmonic import _checks
from anharmonic_papers.theory.statements import (
    CHAPTERS,
    STATEMENTS,
    STATES,
    Check,
    State,
    Statement,
    _check_modules,
)


def statement(
    id: str,
    *,
    number: str,
    chapter: str,
    claim: str,
    state: State,
    example: Callable[[], Check],
    remark: str = "",
) -> Callable[[Callable[..., Check]], Callable[..., Check]]:
    """Registers the function below it as the check of a statement.

    The check it returns carries the statement.

    Args:
        id: See ``Statement``.
        number: See ``Statement``.
        chapter: See ``Statement``.
        claim: See ``Statement``.
        state: See ``Statement``.
        example: Returns the check of an example; it may call the function it is given to.
        remark: See ``Statement``.

    Raises:
        ValueError: If the name is taken, or chapter or state are unknown.
    """
    _checks.choice("chapter", chapter, CHAPTERS)
    _checks.choice("state", state, STATES)
    if id in STATEMENTS:
        raise ValueError(
            _checks.message("statements need names of their own", f"{id!r} twice", "rename one")
        )

    def register(function: Callable[..., Check]) -> Callable[..., Check]:
        @wraps(function)
        def check(*args: object, **kwargs: object) -> Check:
            _check_modules(function, args, kwargs)
            return replace(function(*args, **kwargs), statement=STATEMENTS[id])

        STATEMENTS[id] = Statement(id, number, chapter, claim, state, remark, check, example)
        return check

    return register
