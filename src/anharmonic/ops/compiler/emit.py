"""Write a plan as one C file.

The file holds five functions, which ``csrc/recurrence.h`` calls while it walks:

- ``forward_tile``: everything that depends on the inputs alone, for all steps of a tile at once;
- ``forward_step``: one step;
- ``again_step``: the state after a step, computed again from the previous state and saved values;
- ``backward_step``: the gradients with respect to the state before a step;
- ``backward_tile``: the gradients that no earlier step needs, for all steps of a tile at once.

Sizes and constants are arguments of the call, so one file serves the same step at all sizes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from anharmonic.ops.compiler.plan import Plan
from anharmonic.ops.compiler.region import SLOT, STEP, TILE, Place, Region, Tables
from anharmonic.ops.compiler.values import Value, flat, needed


@dataclass
class Outer:
    """A sum of products of columns, for the gradient of a matrix.

    Attributes:
        root: The index of the root.
        wide: The factor with more columns.
        thin: The factor with fewer columns.
        left: The first row of the block of the result.
        right: The first column of that block.
        wide_is_left: Whether the wide factor gives the rows of the result.
    """

    root: int
    wide: Value
    thin: Value
    left: int
    right: int
    wide_is_left: bool


class Source:
    """A plan as a C file, and the tables that its call passes.

    Attributes:
        text: The C source, without the definition of the floating-point type.
        tables: Widths, constants, vectors and matrices in the file's order.
        outers: Sums of products of columns.
        sums: (root, first column, factor) of the sums over rows.
        regions: The values of each function, by its name.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.tables = tables = Tables(plan.sections.matrices, plan.saved)
        self._functions: list[str] = []
        self.regions: dict[str, list[Value]] = {}
        for group in (*plan.state, *plan.inputs, [*plan.saved]):
            for value in group:
                tables.width(value.width)
        old = {v: tables.buffer(v.width, SLOT) for v in flat(plan.state)}
        new = {
            after: old[before]._replace(step=1)
            for before, after in zip(flat(plan.state), flat(plan.new), strict=True)
        }
        inputs = {v: tables.buffer(v.width, TILE) for v in flat(plan.inputs)}
        self._forward(old, new, inputs)
        arriving = {v: tables.buffer(v.width, STEP) for v in flat(plan.grad_new)}
        leaving = {v: tables.buffer(v.width, STEP) for v in flat(plan.grad_state)}
        places = self._backward({**old, **new, **inputs}, arriving, leaving)
        self.outers, self.sums = self._after_steps()
        self.text = self._text(old, inputs, arriving, leaving, places)

    # ---- the five functions -------------------------------------------------------------------
    def _forward(
        self, old: Mapping[Value, Place], new: dict[Value, Place], inputs: Mapping[Value, Place]
    ) -> None:
        plan, tables = self._plan, self.tables
        stepwise = [v for v in needed([*new, *plan.saved], {*old, *inputs}) if v.args]
        early = [v for v in stepwise if v.reads == {"input"}]
        late = [v for v in stepwise if v.reads != {"input"}]
        early_set = set(early)
        read = {arg for value in late for arg in value.args} | set(new)
        saved_early = [v for v in plan.saved if v in early_set]
        frontier = [v for v in early if v in read]
        hoisted = {v: tables.buffer(v.width, TILE) for v in frontier}
        self._function("forward_tile", hoisted, inputs, whole_tile=True, keep=saved_early)
        # A state that depends only on the input is copied in every step.
        reads = [arg for value in late for arg in value.args]
        once = {v for v in frontier if reads.count(v) == 1 and v not in plan.saved and v not in new}
        given = {**old, **inputs, **hoisted}
        outputs = {v: place for v, place in new.items() if v not in hoisted}
        for value in [v for v in new if v in hoisted]:
            outputs[self._copy(value, "state")] = new[value]
        saved_late = [v for v in plan.saved if v not in early_set]
        self._function("forward_step", outputs, given, keep=saved_late, reusable=once)
        saved = {v: tables.saved_place(v) for v in plan.saved}
        outputs = {v: place for v, place in new.items() if v not in saved}
        for value in [v for v in new if v in saved]:
            outputs[self._copy(value, "again")] = new[value]
        self._function("again_step", outputs, {**old, **inputs, **saved})

    def _copy(self, value: Value, why: str) -> Value:
        return self._plan.sections.values.exactly("copy", (value,), value.width, why)

    def _backward(
        self, forward: dict[Value, Place], arriving: dict[Value, Place],
        leaving: dict[Value, Place],
    ) -> dict[Value, Place]:  # fmt: skip
        """Write both backward functions; return the places of all values kept for a whole tile."""
        plan, tables = self._plan, self.tables
        given = {**forward, **{v: tables.saved_place(v) for v in plan.saved}}
        factors = [self._factor(v) for root in plan.roots for v in root.factors]
        wanted = [*flat(plan.grad_inputs), *(v for v in factors if v is not None)]
        everywhere = {*given, *arriving}
        chain = set(needed(leaving, everywhere))
        in_step: dict[Value, bool] = {}
        for value in needed([*leaving, *wanted], everywhere):
            # Elementwise operations run within the step, unless they read a product outside it.
            if value in everywhere or value in chain:
                in_step[value] = True
            else:
                in_step[value] = value.op != "product" and all(in_step[a] for a in value.args)
        carried = [
            arg
            for value in needed(wanted, everywhere)
            if not in_step[value]
            for arg in value.args
            if in_step[arg]
        ]
        carried += [v for v in wanted if in_step[v]]
        carried = [
            v for v in dict.fromkeys(carried) if v not in given and (v.args or v in arriving)
        ]
        targets = set(flat(plan.grad_inputs))
        places = self._side_by_side(carried, [*leaving, *wanted], everywhere, targets)
        for value in carried:
            if value not in places:
                places[value] = tables.buffer(value.width, TILE)
        outputs = dict(leaving)
        for value in carried:
            again = value in arriving or value in leaving
            outputs[self._copy(value, "tile") if again else value] = places[value]
        self._function("backward_step", outputs, {**given, **arriving})
        late = {v: tables.buffer(v.width, TILE) for v in dict.fromkeys(wanted) if not in_step[v]}
        self._function("backward_tile", late, {**given, **places}, whole_tile=True)
        return {**given, **places, **late}

    def _factor(self, value: Value) -> Value | None:
        """Return a factor of a sum as a value with a place in memory; None for zero."""
        if value.is_number(0):
            return None
        if value.op in ("number", "scalar", "vector"):
            return self._copy(value, "factor")
        return value

    def _side_by_side(
        self, carried: Sequence[Value], outputs: Sequence[Value], given: set[Value],
        targets: set[Value],
    ) -> dict[Value, Place]:  # fmt: skip
        """Put sections that one product reads into one buffer, where no padding separates them."""
        places: dict[Value, Place] = {}
        products = [v.sections for v in needed(outputs, given) if v.op == "product"]
        for sections in sorted(products, key=len, reverse=True):
            width = sections[0].width
            if len(sections) < 2 or len(set(sections)) < len(sections) or width % 32:
                continue
            if all(
                v in carried and v not in targets and v not in places and v.width == width
                for v in sections
            ):
                whole = self.tables.buffer(len(sections) * width, TILE)
                buffer, number = len(self.tables.buffers) - 1, self.tables.width(width)
                for i, value in enumerate(sections):
                    places[value] = whole._replace(base=f"{whole.base} + {i} * W{number}")
                    self.tables.groups[value] = (buffer, i)
        return places

    def _after_steps(self) -> tuple[list[Outer], list[tuple[int, int, Value]]]:
        """Return the sums over the rows of a tile: products of columns, and plain sums."""
        outers, sums = [], []
        for k, root in enumerate(self._plan.roots):
            left = 0
            for value in root.left:
                factor = self._factor(value)
                if factor is not None and root.right is None:
                    sums.append((k, left, factor))
                right = 0
                for other in root.right or ():
                    second = self._factor(other)
                    if factor is not None and second is not None:
                        wide_is_left = value.width >= other.width
                        wide, thin = (factor, second) if wide_is_left else (second, factor)
                        outers.append(Outer(k, wide, thin, left, right, wide_is_left))
                    right += other.width
                left += value.width
        return outers, sums

    def _function(
        self, name: str, outputs: Mapping[Value, Place], given: Mapping[Value, Place],
        **options: Any,
    ) -> None:  # fmt: skip
        region = Region(self.tables, outputs, given, **options)
        self.regions[name] = region.order
        self._write_function(name, region.lines)

    _ARGUMENTS: ClassVar[dict[str, str]] = {
        "forward_tile": "int64_t n",
        "forward_step": "int64_t s",
        "again_step": "int64_t s",
        "backward_step": "int64_t s",
        "backward_tile": "int64_t n",
        "sum_tile": "int64_t n",
    }

    def _write_function(self, name: str, lines: Sequence[str]) -> None:
        """Write a C function with local variables for the operands of its lines."""
        text = "\n".join(lines)
        head = ["const context *c = b->c;"]
        if name.endswith("tile"):
            head.append("const int64_t s = 0;")
        for kind, what in (
            ("W", "const int64_t {0} = c->width[{1}];"),
            ("S", "const int64_t {0} = c->section[{1}];"),
            ("V", "const int64_t {0} = c->vectors[{1}];"),
            ("P", "const int64_t {0} = c->pitch[{1}];"),
            ("m", "real *restrict const {0} = b->buffer[{1}];"),
            ("a", "real *restrict const {0} = b->saved + c->saved_column[{1}];"),
        ):
            for number in sorted({int(n) for n in re.findall(rf"\b{kind}(\d+)\b", text)}):
                head.append(what.format(f"{kind}{number}", number))
        unused = ["(void)c;"] + (["(void)s;"] if name.endswith("tile") else [])
        unused += [f"(void){a.split()[-1]};" for a in self._ARGUMENTS[name].split(",")]
        body = "\n".join("    " + line for line in (*head, " ".join(unused), *lines))
        self._functions.append(
            f"AN_INLINE void {name}(block *b, {self._ARGUMENTS[name]}) {{\n{body}\n}}\n"
        )

    # ---- the file -------------------------------------------------------------------------------
    def _text(
        self, old: Mapping[Value, Place], inputs: Mapping[Value, Place],
        arriving: Mapping[Value, Place], leaving: Mapping[Value, Place],
        places: Mapping[Value, Place],
    ) -> str:  # fmt: skip
        tables, lines = self.tables, []
        for k, (_, _, value) in enumerate(self.sums):
            place = places[value]
            lines.append(
                f"sum_rows({place.at('0')}, {place.row}, n * b->rows, "
                f"W{tables.width(value.width)}, "
                f"b->sum[{k}]);"
            )
        for k, outer in enumerate(self.outers):
            wide, thin = places[outer.wide], places[outer.thin]
            lines.append(
                f"add_outer_product({thin.at('0')}, {thin.row}, W{tables.width(outer.thin.width)}, "
                f"{wide.at('0')}, {wide.row}, S{tables.width(outer.wide.width)}, "
                "n, b->rows, b->rows, "
                f"b->outer[{k}]);"
            )
        self._write_function("sum_tile", lines)

        def pieces(name: str, rows: Sequence[tuple[int, int, int]]) -> str:
            """Write a table of (buffer, width, variable)."""
            body = ", ".join(f"{{{a}, {b}, {c}}}" for a, b, c in rows)
            return f"static const piece {name}[] = {{{body or '{0, 0, 0}'}}};"

        def of(
            groups: Sequence[Sequence[Value]], where: Mapping[Value, Place]
        ) -> list[tuple[int, int, int]]:
            return [
                (_buffer(where[v]), tables.width(v.width), k)
                for k, group in enumerate(groups)
                for v in group
            ]

        plan = self._plan
        state, given = of(plan.state, old), of(plan.inputs, inputs)
        grads = of(plan.grad_inputs, places)
        counts = {
            "STATE_PIECES": len(state), "INPUT_PIECES": len(given), "GRAD_PIECES": len(grads),
            "VARIABLES": len(plan.state), "BUFFERS": len(tables.buffers),
            "WIDTHS": len(tables.widths), "SAVED": len(plan.saved), "SUMS": len(self.sums),
            "OUTERS": len(self.outers), "MATRICES": len(tables.matrices),
            "VECTORS": len(tables.vectors), "NUMBERS": len(tables.numbers),
        }  # fmt: skip
        buffers = ", ".join(f"{{{kind}, {width}}}" for kind, width in tables.buffers)
        numbers = ", ".join(str(tables.width(v.width)) for v in plan.saved)
        sum_widths = ", ".join(str(tables.width(v.width)) for _, _, v in self.sums)
        outer_widths = ", ".join(
            f"{{{tables.width(o.thin.width)}, {tables.width(o.wide.width)}}}" for o in self.outers
        )
        return "\n".join(
            [
                '#include "recurrence.h"',
                "enum { " + ", ".join(f"{name} = {n}" for name, n in counts.items()) + " };",
                f"static const buffer_shape buffer_shapes[] = {{{buffers}}};",
                f"static const int saved_widths[] = {{{numbers or '0'}}};",
                f"static const int sum_widths[] = {{{sum_widths or '0'}}};",
                f"static const int outer_widths[][2] = {{{outer_widths or '{0, 0}'}}};",
                pieces("state_pieces", state),
                pieces("input_pieces", given),
                pieces("arriving_pieces", of(plan.grad_new, arriving)),
                pieces("leaving_pieces", of(plan.grad_state, leaving)),
                pieces("grad_pieces", grads),
                "",
                *self._functions,
                '#include "recurrence_walk.h"',
                "",
            ]
        )


def _buffer(place: Place) -> int:
    """Return the index of the buffer of a place."""
    assert place.base[0] == "m", "a saved value is no buffer"
    return int(place.base[1:])
