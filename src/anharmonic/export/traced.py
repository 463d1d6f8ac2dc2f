"""A layer's step as C99, generated from its PyTorch code.

This module writes the compiler's values of a step (``ops/compiler``) for one sequence, one number
at a time. Values that depend on weights alone are computed here in float64 and become constants.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.export.write import literal
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.ops import Equation
from anharmonic.ops.compiler.layers import LayerForm
from anharmonic.ops.compiler.plan import Plan
from anharmonic.ops.compiler.region import STEP, Place, Region, Tables
from anharmonic.ops.compiler.sections import Sections
from anharmonic.ops.compiler.trace import Unsupported, check_batches, trace
from anharmonic.ops.compiler.values import OVER_COLUMNS, Value, text_of

Array = NDArray[np.float64]

_NAMES = {"abs": "fabs", "round": "rint"}
"""Functions of math.h with other names in PyTorch."""
_REPEATING = {"relu", "sign", "maximum", "minimum", "largest"}
"""Operations whose C code uses an argument more than once."""
_NEEDS = {
    "tanh": {"TANH"},
    "sigmoid": {"TANH", "SIGMOID"},
    "rsqrt": {"MATH"},
    "remainder": {"MATH", "REMAINDER"},
}
"""Flags of the runtime that an operation needs."""
_FORMS = {
    "copy": "{0}",
    "neg": "(-{0})",
    "relu": "({0} < 0 ? 0 : {0})",
    "sign": "R(({0} > 0) - ({0} < 0))",
    "reciprocal": "(1 / {0})",
    "logical_not": "R({0} == 0)",
    "tanh": "MODEL_TANH({0})",
    "sigmoid": "sigmoid({0})",
    "rsqrt": "(1 / MODEL_MATH(sqrt)({0}))",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    # NaN in either argument propagates.
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "logical_and": "({0} * {1})",
    "logical_or": "R({0} != 0 || {1} != 0)",
    "gt": "R({0} > {1})",
    "ge": "R({0} >= {1})",
    "lt": "R({0} < {1})",
    "le": "R({0} <= {1})",
    "eq": "R({0} == {1})",
    "ne": "R({0} != {1})",
    "where": "({0} != 0 ? {1} : {2})",
    "remainder": "remainder_of({0}, {1})",
}
"""Operations on single numbers that are not functions of math.h."""


@dataclass
class Steps:
    """The steps of all layers of a stack as C.

    Attributes:
        functions: One C function for each layer.
        matrices: The matrices they multiply by, in order of their numbers.
        vectors: Constants by name.
        flags: Runtime flags that they need.
        variables: Variables of the state besides the output.
    """

    functions: list[str] = field(default_factory=list)
    matrices: list[Array] = field(default_factory=list)
    vectors: dict[str, Array] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    variables: int = 0


def traced_steps(layer: SequenceLayer, *, timed: bool) -> Steps:
    """Write the steps of a stack.

    Args:
        layer: A unidirectional layer in float64.
        timed: Whether the step size is the time since the previous sample.

    Raises:
        ValueError: If a step cannot be written as C; the message gives the reason.
    """
    steps, equation, H = Steps(), layer.equation(), layer.hidden_size
    weights = [
        type(w)._make(None if v is None else v.detach() for v in w)
        for w in layer._weights(equation)
    ]
    zeros = torch.zeros(2, H, dtype=torch.float64)
    state = layer.state_type._make(zeros for _ in layer.state_type._fields)
    steps.variables = len(state) - 1
    try:
        for k, w in enumerate(weights):
            own, last = equation.of_layer(k), k == len(weights) - 1
            if not last and type(own).passed_up is not Equation.passed_up:
                other = own.passed_up(zeros[None] + 1, state)
                if not torch.equal(other, zeros[None] + 1):
                    raise Unsupported("the layer above reads something else than its output")
            x = zeros.new_zeros(2, 2, layer.input_size if k == 0 else H)
            elapsed = x.new_ones(2, 2) if timed else None
            _add_layer(steps, k, LayerForm(own, x, w, state, elapsed, None))
    except (Unsupported, LookupError) as error:
        name = type(layer).__name__
        expected = f"the step of {name} must be one that C can take"
        advice = "change it, or use ONNX"
        raise ValueError(message(expected, f"one that cannot: {error}", advice)) from error
    return steps


def _add_layer(steps: Steps, k: int, form: LayerForm) -> None:
    """Add the function of layer k."""
    example = form.example()
    traced = trace(example)
    sections = Sections(traced, torch.float64)
    check_batches(traced, example, form.batch)
    plan, tables = Plan(sections), Tables(sections.matrices, [])
    given: dict[Value, Place] = {}
    for letter, groups in (("s", plan.state), ("x", plan.inputs)):
        for number, group in enumerate(groups):
            at = 0
            for value in group:
                base = f"{letter}{number}"
                given[value] = Place(f"({base} + {at})" if at else base, "", 0)
                at += value.width
    new = {value: tables.buffer(value.width, STEP) for group in plan.new for value in group}
    region = _Scalars(tables, new, given, k, len(steps.matrices))
    lines = [f"const model_real *const x0 = below(state, {k}, x);"]
    if len(form.inputs) > 1:
        lines.append("const model_real *const x1 = &state->elapsed;")
    written = "\n".join(region.lines)
    for number in range(len(form.inputs)):
        if not re.search(rf"\bx{number}\b", written):  # a compiler warns of what is not read
            lines.append(f"(void)x{number};")
    for number in range(len(plan.state)):
        where = f"variables[{number - 1}][{k}]" if number else f"output[{k}]"
        lines.append(f"model_real *const s{number} = state->{where};")
    widths = list(tables.widths)
    used = {int(number) for number in re.findall(r"\bm(\d+)\b", written)}
    for number in sorted(used):
        lines.append(f"model_real m{number}[{widths[tables.buffers[number][1]]}];")
    lines += region.lines
    for group, before in zip(plan.new, plan.state, strict=True):
        for value, old in zip(group, before, strict=True):
            lines.append(_copy(given[old].base, value.width, f"{new[value].base}[i]"))
    body = "\n".join("    " + line for line in lines)
    steps.functions.append(
        f"static void layer_{k}(model_state *state, const model_real *x) {{\n{body}\n}}\n"
    )
    known = dict(zip(traced.weights, form.weights, strict=True))
    parts = [list(tables.matrices)[number] for number in region.matrices]
    nodes = list(dict.fromkeys(part[0] for part in (*parts, *tables.vectors)))
    with torch.no_grad():
        found = zip(nodes, sections.evaluate(nodes, known), strict=True)
    fixed = {node: np.asarray(value.double().numpy()) for node, value in found}
    steps.matrices += [
        fixed[node][slice(*rows), slice(*columns)].T for node, rows, columns in parts
    ]
    for number, (node, low, high) in enumerate(tables.vectors):
        steps.vectors[f"step_{k}_{number}"] = fixed[node].ravel()[low:high]
    steps.flags |= region.flags


def _copy(to: str, count: int, value: str) -> str:
    return f"for (int i = 0; i < {count}; i++) {to}[i] = {value};"


class _Scalars(Region):
    """A region for one sequence, one number at a time.

    Args:
        tables: Tables shared by the regions of a step.
        outputs: Values to compute, and where to store them.
        given: Locations of existing values.
        layer: Index of the layer, for names.
        first: Index of its first matrix.

    Attributes:
        flags: Runtime flags that it needs.
        matrices: The tables' matrices that it reads, in order of their numbers.
    """

    def __init__(
        self, tables: Tables, outputs: Mapping[Value, Place], given: Mapping[Value, Place],
        layer: int, first: int,
    ) -> None:  # fmt: skip
        self._layer, self._first = layer, first
        self.flags: set[str] = set()
        self.matrices: dict[int, int] = {}
        super().__init__(tables, outputs, given)

    def _element(self, value: Value, index: str) -> str:
        """Return the C expression of one number of a stored or inlined value."""
        if value.op == "number":
            if math.isfinite(value.extra):
                return f"R({literal(value.extra, 'model_real')})"
            self.flags.add("MATH")
            return text_of(value.extra).replace("real", "model_real")
        if value.op in ("scalar", "vector"):
            key = (value.extra, 0, 1) if value.op == "scalar" else value.extra
            at = index if value.op == "vector" and value.width > 1 else "0"
            return f"step_{self._layer}_{self._tables.vector(key)}[{at}]"
        return f"{self._place(value).base}[{index if value.width > 1 else '0'}]"

    def _find_places(
        self, outputs: Mapping[Value, Place], reusable: Collection[Value]
    ) -> dict[Value, Place]:
        places = super()._find_places(outputs, reusable)
        for value in reversed(self.order):  # a product accumulates in place
            if value.op == "product" and value.extra[0]:
                start = value.args[0]
                alone = start.is_barrier and len(self._users[start]) == 1
                if alone and start in self._inside and start not in outputs:
                    places[start] = places[value]
        return places

    def _product(self, value: Value) -> list[str]:
        to, (has_start, matrices) = self._places[value], value.extra
        lines, first = [], value.args[0]
        if not has_start or self._places.get(first) != to:
            start = self._element(first, "i") if has_start else "0"
            lines.append(_copy(to.base, value.width, start))
        for section, matrix in zip(value.sections, matrices, strict=True):
            number = self._first + self.matrices.setdefault(matrix, len(self.matrices))
            lines.append(f"add(&step_matrix[{number}], {self._place(section).base}, {to.base});")
        return lines

    def _loop(self, values: list[Value], width: int, level: int) -> list[str]:
        before: list[str] = []
        lines: list[str] = []
        after: list[str] = []
        index = "0" if width == 1 else "i"
        texts: dict[Value, str] = {}
        uses = Counter(arg for value in values for arg in value.args)

        def text(value: Value) -> str:
            """Return the C text of a number: a variable, an expression or a location."""
            return texts[value] if value in texts else self._element(value, index)

        for value in values:
            args, own = [text(arg) for arg in value.args], f"v{value.number}"
            if value.op in OVER_COLUMNS:
                before.append(f"model_real {own} = 0;")
                larger = f"if ({index} == 0 || {args[0]} > {own} || {args[0]} != {args[0]}) {own} ="
                lines.append(
                    f"{own} += {args[0]};" if value.op == "sum" else f"{larger} {args[0]};"
                )
                after.append(f"{self._element(value, '0')} = {own};")
                continue
            found = self._form(value.op).format(*args)
            users = [user for user in self._users.get(value, ()) if user in values]
            stored = value in self._places
            # Inline an expression that is used once.
            if not stored and uses[value] == 1 and users[0].op not in _REPEATING:
                texts[value] = found
            elif stored and not users:
                lines.append(f"{self._element(value, index)} = {found};")
            else:
                lines.append(f"const model_real {own} = {found};")
                texts[value] = own
                if stored:
                    lines.append(f"{self._element(value, index)} = {own};")
        if width > 1:
            lines = [
                f"for (int i = 0; i < {width}; i++) {{", *("    " + line for line in lines), "}",
            ]  # fmt: skip
        if not before:
            return lines
        return ["{", *("    " + line for line in (*before, *lines, *after)), "}"]

    def _form(self, op: str) -> str:
        """Return an operation in C and record the flags it needs."""
        self.flags |= _NEEDS.get(op, set() if op in _FORMS else {"MATH"})
        if op in _FORMS:
            return _FORMS[op]
        arguments = "{0}, {1}" if op in ("pow", "atan2", "fmod") else "{0}"
        return f"MODEL_MATH({_NAMES.get(op, op)})({arguments})"
