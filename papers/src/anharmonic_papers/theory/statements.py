"""The papers' statements: a function each, whose docstring is the statement and a remark on it.

A check takes a model of yours and measures both sides::

    check = all_statements()["cornn-energy-explicit"].check(layer, x)
    check.measured, check.bound, check.assumptions, check.holds

The arguments of a file's checks are described at its top. A check refuses other arguments with a
ValueError.

A false statement is kept, with state "false"; its ``example`` is the counterexample, and the
corrected statement stands beside it with state "corrected". A printed line that could not be read
has the state "unread"; its example refutes our reading.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import cleandoc, getfile, getmodule, getsourcelines, signature, unwrap
from pathlib import Path
from typing import Any, Literal, get_type_hints

import torch
from torch import Tensor, nn

from anharmonic import _checks

Case = tuple[Any, ...]
"""The arguments of a check, as an example makes them."""
State = Literal["holds", "corrected", "false", "unread", "open"]
STATES: dict[State, str] = {
    "holds": "as printed",
    "corrected": "of ours: corrected, sharper or new",
    "false": "as printed, with a counterexample",
    "unread": "the printed line could not be read",
    "open": "neither proved nor refuted",
}
"""Descriptions of the states, in order of display."""
Relation = Literal["<=", "==", ">="]
CHAPTERS = (
    "coRNN",
    "UnICORNN",
    "Neural oscillators",
    "LEM",
    "GraphCON",
    "Gradient Gating",
    "Neural ODEs",
)


# "T 3.2.1", "U C.1", "U 3", "(7.5)"; not the number in "a = 0".
_NUMBER = re.compile(
    r"([TCULN] )?((?:[A-Z]\.)?\d+(?:\.\d+)+|[A-Z]\.\d+|\(\d+(?:\.\d+)?\)|(?<=[TCULN] )\d+)"
)


@dataclass(frozen=True)
class Statement:
    """A numbered statement of a paper.

    Args:
        id: The name of its function, with hyphens; the model comes first.
        number: Its number there: T is the thesis, C, U, L, N the papers (see docs/theory.md); "T
            2.2.4 = C 3.1" where two papers have it.
        chapter: One of ``CHAPTERS``.
        claim: The statement in a sentence, with its formula.
        state: One of ``STATES``.
        remark: What was corrected, what the counterexample is, what is measured only.
        check: Checks it on given arguments.
        arguments: Those of an example of ours; for a false or unread one, the counterexample.
    """

    id: str
    number: str
    chapter: str
    claim: str
    state: State
    remark: str
    check: Callable[..., Check]
    arguments: Callable[[], Case]

    def example(self) -> Check:
        """Check it on its example."""
        return self.check(*self.arguments())

    @property
    def numbers(self) -> list[str]:
        """Every number that it has in a paper.

        Example:
            >>> from anharmonic_papers.theory import all_statements
            >>> all_statements()["lem-gradient"].numbers
            ['T 5.2.2', 'L 4.2']
        """
        found: list[str] = []
        paper = ""
        for letter, number in _NUMBER.findall(self.number):
            paper = letter or paper  # "T 6.0.1, 7.2.2" has both from T
            found.append(f"{paper}{number}")
        return found

    @property
    def place(self) -> tuple[Path, int]:
        """The file and the line where its check begins."""
        function = unwrap(self.check)
        return Path(getfile(function)), getsourcelines(function)[1]

    @property
    def symbols(self) -> str:
        """What the symbols of its chapter and the arguments of its check mean."""
        return (getmodule(unwrap(self.check)).__doc__ or "").partition("\n\n")[2].strip()

    def contradicted_by(self, check: Check) -> bool:
        """Whether its example shows something else than the state says; never for "open"."""
        if self.state == "open":
            return False
        return not check.applies or check.holds == (self.state in ("false", "unread"))


@dataclass(frozen=True)
class Check:
    """Both sides of a statement, measured on one example.

    Args:
        measured: What was measured: a number, or a curve.
        bound: What it is held against: a bound, or the value that a formula gives.
        assumptions: What the statement asks for, in words, and whether it is so here.
        places: Where on the axis the entries of a curve are; their numbers where none are given.
        relation: "<=" or ">=" for a bound, "==" for a formula.
        tolerance: How far "==" may be off, relative to the largest entry of the bound; how far a
            bound may be passed by rounding, relative to itself.
        axis: What the curve runs over, with unit.
        quantity: What is measured, with unit.
        statement: What was checked; filled in by the registry.
    """

    measured: Tensor
    bound: Tensor
    assumptions: Mapping[str, bool] = field(default_factory=dict)
    places: Tensor | None = None
    relation: Relation = "<="
    tolerance: float = 1e-12
    axis: str = "step n"
    quantity: str = "measured"
    statement: Statement | None = None

    def __post_init__(self) -> None:
        """Make tensors of both sides and give the bound the shape of what was measured."""
        measured = torch.as_tensor(self.measured, dtype=torch.float64).detach().cpu()
        bound = torch.as_tensor(self.bound, dtype=torch.float64).detach().cpu()
        object.__setattr__(self, "measured", measured)
        object.__setattr__(self, "bound", bound.expand_as(measured))

    @property
    def holds(self) -> bool:
        """Whether the relation holds, whatever became of the assumptions; NaN never does."""
        if self.relation == "==":
            off = (self.measured - self.bound).abs().max()
            return bool(off <= self.tolerance * self.bound.abs().max())
        sign = 1.0 if self.relation == "<=" else -1.0
        slack = self.tolerance * self.bound.abs()
        return bool((sign * (self.measured - self.bound) <= slack).all())

    @property
    def applies(self) -> bool:
        """Whether every assumption is met here."""
        return all(self.assumptions.values())

    @property
    def ratio(self) -> float:
        """Measured over bound, where it is largest (for ">=" where it is smallest).

        For "==" it is 1 and the largest difference, over the largest entry of the bound: a curve
        that passes zero has no ratio there. An entry that is zero on both sides counts as 0.
        """
        if self.relation == "==":
            off = (self.measured - self.bound).flatten()
            worst = int(off.abs().argmax())
            scale = self.bound.abs().max()
            sign = -1.0 if self.bound.flatten()[worst] < 0 else 1.0
            return 1.0 + sign * float(off[worst] / scale) if off[worst] != 0 else 1.0
        equal, ratios = self.measured == self.bound, self.measured / self.bound
        ratios = torch.where(equal, self.bound.abs().sign(), ratios)
        return float(ratios.min() if self.relation == ">=" else ratios.max())

    def __str__(self) -> str:
        """One line: the statement, both sides and whether it holds."""
        name = "" if self.statement is None else f"{self.statement.number}: "
        verb = "holds" if self.holds else "fails"
        outside = [text for text, met in self.assumptions.items() if not met]
        where = f" (outside its assumptions: {'; '.join(outside)})" if outside else ""
        at_most = {"<=": "at most", ">=": "at least", "==": "equal to"}[self.relation]
        ratio = f"{self.ratio:.4g}"
        if not self.holds and ratio == "1":
            ratio = f"1 {'+' if self.ratio > 1 else '-'} {abs(self.ratio - 1):.1e}"
        precision = f" within {self.tolerance:.1g}" if self.relation == "==" else ""
        return f"{name}{verb}{where}, ratio {ratio}, should be {at_most} 1{precision}"


def order(
    errors: Sequence[Tensor],
    sizes: Sequence[float],
    claimed: float,
    met: Mapping[str, bool] | None = None,
    places: Tensor | None = None,
) -> Check:
    """Check the orders of errors between one size and the next; places are the later sizes."""
    steps = torch.tensor(sizes, dtype=torch.float64)
    found = torch.stack(list(errors)).log().diff() / steps.log().diff()
    return Check(found, torch.tensor(claimed), met or {}, steps[1:] if places is None else places)


STATEMENTS: dict[str, Statement] = {}
"""Every statement by its name."""


def statement(
    number: str,
    state: State,
    example: Callable[[], Case],
    quantity: str = "measured",
    *,
    chapter: str,
    **shown: Any,
) -> Callable[[Callable[..., Check]], Callable[..., Check]]:
    """Register the function below as the check of a statement, see ``Statement`` and ``Check``.

    Its name is that of the statement. The first paragraph of its docstring is the statement, the
    second one the remark. The example returns the arguments of one. ``quantity`` and ``shown``
    (relation, tolerance and axis) are those of all its checks.
    """
    _checks.choice("chapter", chapter, CHAPTERS)
    _checks.choice("state", state, STATES)

    def register(function: Callable[..., Check]) -> Callable[..., Check]:
        id = function.__name__.replace("_", "-")
        _checks.require(
            id not in STATEMENTS, "statements", id, "of names of their own", "rename it"
        )

        @wraps(function)
        def check(*args: Any, **kwargs: Any) -> Check:
            _check_modules(function, args, kwargs)
            found = function(*args, **kwargs)
            return replace(found, statement=said, quantity=quantity, **shown)

        claim, _, remark = cleandoc(function.__doc__ or "").partition("\n\n")
        texts = " ".join(claim.split()), " ".join(remark.split())
        said = Statement(id, number, chapter, texts[0], state, texts[1], check, example)
        STATEMENTS[id] = said
        return check

    return register


def all_statements() -> dict[str, Statement]:
    """Every statement by its name, in the papers' order.

    Example:
        >>> all_statements()["cornn-energy-explicit"].number
        'T 2.2.9'
    """
    for module in pkgutil.iter_modules([str(Path(__file__).parent)], f"{__package__}."):
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


def _check_modules(
    function: Callable[..., Check], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Refuse a model of another class than the check's signature names."""
    kinds, taken = get_type_hints(function), signature(function)
    try:
        bound = taken.bind(*args, **kwargs)
    except TypeError as error:
        id = function.__name__.replace("_", "-")
        expected = f"the check of {id} must get the arguments {', '.join(taken.parameters)}"
        advice = f"`anharmonic theory {id}` says what they are"
        raise TypeError(_checks.message(expected, str(error), advice)) from error
    for name, value in bound.arguments.items():
        kind = kinds.get(name)
        if isinstance(kind, type) and issubclass(kind, nn.Module):
            _checks.require(
                isinstance(value, kind), name, value, f"a {kind.__name__}",
                "the statement is about no other model", TypeError,
            )  # fmt: skip
