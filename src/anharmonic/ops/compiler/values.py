"""Values of a step: sections of columns in static single assignment form.

A value has one row per sequence of the batch, and no operation divides its columns further. Equal
expressions are the same value. Besides elementwise operations there are

- ``in``: a section of the state, of an input or of an incoming gradient;
- ``number``, ``scalar``, ``vector``: values that are the same in every row;
- ``product``: a sum of sections times matrices, optionally added to a first value;
- ``sum``, ``largest``: the sum or maximum over the columns of one section.

A value of width 1 is repeated in every lane of a vector.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

UNARY = {
    "copy": "{0}",
    "neg": "-{0}",
    "abs": "abs_of({0})",
    "relu": "most(splat(0), {0})",
    "sign": "(one_where({0} > splat(0)) - one_where({0} < splat(0)))",
    "reciprocal": "(splat(1) / {0})",
    "logical_not": "one_where({0} == splat(0))",
    "tanh": "tanh_of({0})",
    "sigmoid": "sigmoid_of({0})",
    "exp": "wide_exp_of({0})",
    "rsqrt": "(splat(1) / sqrt_of({0}))",
}
"""Elementwise operations with one operand, in C."""
_OF_MATH = (
    "sqrt", "log", "log1p", "log2", "log10", "expm1", "exp2", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc",
    "round",
)  # fmt: skip
UNARY |= {name: name + "_of({0})" for name in _OF_MATH}
BINARY = {
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "maximum": "larger_of({0}, {1})",
    "minimum": "smaller_of({0}, {1})",
    "pow": "pow_of({0}, {1})",
    "atan2": "atan2_of({0}, {1})",
    "fmod": "fmod_of({0}, {1})",
    "remainder": "remainder_of({0}, {1})",
    "logical_and": "({0} * {1})",
    "logical_or": "most({0}, {1})",
    "gt": "one_where({0} > {1})",
    "ge": "one_where({0} >= {1})",
    "lt": "one_where({0} < {1})",
    "le": "one_where({0} <= {1})",
    "eq": "one_where({0} == {1})",
    "ne": "one_where({0} != {1})",
}
"""Elementwise operations with two operands, in C."""
COMPARISONS = {
    "gt", "ge", "lt", "le", "eq", "ne", "logical_and", "logical_or", "logical_not",
}  # fmt: skip
"""Operations with Boolean results, represented as 1 or 0."""
TERNARY = {"where": "choose({0} != splat(0), {1}, {2})"}
"""Elementwise operations with three operands, in C."""
OVER_COLUMNS = ("sum", "largest")
"""Operations that read a whole row."""
_CHEAP = {"copy", "neg", "abs", "relu", "sign", "logical_not", "floor", "ceil", "trunc", "round"}
COSTLY = {*UNARY, "div", "pow", "atan2", "fmod", "remainder"} - _CHEAP
"""Operations whose results are saved rather than computed again."""


class Value:
    """A section of columns.

    Attributes:
        op: The operation that computes it.
        args: The operands of the operation.
        width: The number of columns.
        extra: Further arguments of the operation.
        reads: The kinds it depends on: "state", "input" or "gradient".
        number: The index used in the names of variables.
    """

    def __init__(
        self, op: str, args: tuple[Value, ...], width: int, extra: Any, number: int
    ) -> None:
        self.op, self.args, self.width, self.extra, self.number = op, args, width, extra, number
        self.reads: frozenset[str] = frozenset().union(*(a.reads for a in args))

    @property
    def is_barrier(self) -> bool:
        """Return whether a column depends on other columns of the operands."""
        return self.op == "product" or self.op in OVER_COLUMNS

    @property
    def is_costly(self) -> bool:
        """Return whether saving the value is cheaper than computing it again."""
        return self.op in COSTLY and (self.op != "div" or bool(self.args[1].reads))

    @property
    def sections(self) -> tuple[Value, ...]:
        """Return the sections that a product multiplies."""
        return self.args[1:] if self.extra[0] else self.args

    def is_number(self, value: float) -> bool:
        """Return whether the value is this number in every row and column."""
        return self.op == "number" and bool(self.extra == value)

    def __repr__(self) -> str:
        return f"v{self.number}"


class Values:
    """All values of a step."""

    def __init__(self) -> None:
        self._known: dict[Any, Value] = {}

    def make(self, op: str, args: Sequence[Value], width: int, extra: Any = None) -> Value:
        """Return the value of an operation, simplified where that is exact."""
        args = tuple(args)
        numbers = [a.extra for a in args] if all(a.op == "number" for a in args) else []
        if len(numbers) == 2 and op in ("add", "sub", "mul"):
            a, b = numbers
            return self.number({"add": a + b, "sub": a - b, "mul": a * b}[op], width)
        if len(numbers) == 1 and op == "neg":
            return self.number(-numbers[0], width)
        if op == "add" and args[0].is_number(0) and args[1].width == width:
            return args[1]
        if op in ("add", "sub") and args[1].is_number(0) and args[0].width == width:
            return args[0]
        if op == "mul" and args[0].is_number(1) and args[1].width == width:
            return args[1]
        if op in ("mul", "div") and args[1].is_number(1) and args[0].width == width:
            return args[0]
        return self.exactly(op, args, width, extra)

    def exactly(self, op: str, args: Sequence[Value], width: int, extra: Any = None) -> Value:
        """Return the value of an operation without simplification."""
        # Numbers are compared by their text, because -0.0 == 0.0 and NaN != NaN.
        key = (op, tuple(map(id, args)), width, repr(extra) if op == "number" else extra)
        if key not in self._known:
            self._known[key] = Value(op, tuple(args), width, extra, len(self._known))
        return self._known[key]

    def number(self, value: float, width: int) -> Value:
        """Return a number that is the same in every row and column."""
        return self.exactly("number", (), width, float(value))

    def source(self, kind: str, index: int, section: int, width: int) -> Value:
        """Return a section of a variable of the state, of an input or of a gradient."""
        value = self.exactly("in", (), width, (kind, index, section))
        value.reads = frozenset({kind})
        return value

    def product(self, start: Value | None, terms: Iterable[tuple[Value, int]], width: int) -> Value:
        """Return the sum of a value and of products with matrices."""
        terms = list(terms)
        first = () if start is None else (start,)
        matrices = tuple(matrix for _, matrix in terms)
        return self.exactly(
            "product", (*first, *(v for v, _ in terms)), width, (start is not None, matrices)
        )


def flat(groups: Iterable[Sequence[Value]]) -> list[Value]:
    """Return the values of all groups."""
    return list(itertools.chain.from_iterable(groups))


def needed(outputs: Iterable[Value], given: Collection[Value] = ()) -> list[Value]:
    """Return the values needed for the outputs, each after its arguments.

    The outputs are included, and so are given values, but not the arguments of these.
    """
    seen: set[Value] = set()
    order: list[Value] = []
    stack = [(value, False) for value in reversed(list(outputs))]
    while stack:
        value, ready = stack.pop()
        if ready:
            order.append(value)
        elif value not in seen:
            seen.add(value)
            stack.append((value, True))
            if value not in given:
                stack += [(arg, False) for arg in reversed(value.args) if arg not in seen]
    return order


def text_of(number: float) -> str:
    """Return a number in C."""
    if math.isnan(number):
        return "(real)NAN"
    if math.isinf(number):
        return "-(real)INFINITY" if number < 0 else "(real)INFINITY"
    return f"(real){number!r}"
