"""A region of the walk: values that one C function computes in sequence.

Products and sums over columns separate the levels of a region. All elementwise operations of one
level and width share a loop over rows and vectors. A value is stored in memory only if a later
level, a product or a loop of another width reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from anharmonic.ops.compiler.values import (
    BINARY,
    OVER_COLUMNS,
    TERNARY,
    UNARY,
    Value,
    needed,
    text_of,
)

TILE, SLOT, STEP = "TILE", "SLOT", "STEP"
"""Kinds of buffers: rows of all steps of a tile, of one more step than that, or of one step."""
_LITERAL = (0.0, 1.0, -1.0, 2.0, 0.5, -0.5, -2.0)


class Place(NamedTuple):
    """The location of a value in memory.

    Attributes:
        base: The C expression of its first row.
        row: The C expression of the distance between rows.
        step: The offset in steps from step s; None for a place without steps.
    """

    base: str
    row: str
    step: int | None

    def at(self, row: str = "r") -> str:
        """Return the address of a row of step s."""
        if self.step is None:
            return f"{self.base} + {row} * {self.row}"
        when = "s" if self.step == 0 else f"(s + {self.step})"
        return f"{self.base} + ({when} * b->rows + {row}) * {self.row}"


@dataclass
class Tables:
    """Tables that all regions of a step share; each index is a position in a table of the call.

    Attributes:
        widths: The index of every width.
        buffers: The kind and the width index of every buffer.
        numbers: Constants that are the same in every row and column.
        vectors: (node, first, last column) of vectors that are the same in every row.
        matrices: (node, rows, columns) of the blocks of matrices, in the order of their indices.
        saved: The values that the forward pass saves.
        groups: The buffer and position of sections that are adjacent in one buffer.
    """

    matrices: dict[Any, int]
    saved: list[Value]
    widths: dict[int, int] = field(default_factory=dict)
    buffers: list[tuple[str, int]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    vectors: dict[Any, int] = field(default_factory=dict)
    groups: dict[Value, tuple[int, int]] = field(default_factory=dict)

    def width(self, width: int) -> int:
        """Return the index of a width."""
        return self.widths.setdefault(width, len(self.widths))

    def buffer(self, width: int, kind: str) -> Place:
        """Return the place of a new buffer."""
        number = self.width(width)
        self.buffers.append((kind, number))
        step = None if kind == STEP else 0
        return Place(f"m{len(self.buffers) - 1}", f"P{number}", step)

    def saved_place(self, value: Value) -> Place:
        """Return where a value is saved."""
        return Place(f"a{self.saved.index(value)}", "c->saved_row", 0)

    def constant(self, value: Value) -> str | None:
        """Return the C expression of a value that is constant in all rows and columns, or None."""
        if value.op == "number":
            if value.extra in _LITERAL and not (value.extra == 0 and str(value.extra) == "-0.0"):
                return f"splat({text_of(value.extra)})"
            return (
                f"splat(c->number[{self.numbers.setdefault(repr(value.extra), len(self.numbers))}])"
            )
        if value.op == "scalar":
            return f"splat(*c->vector[{self.vector((value.extra, 0, 1))}])"
        if value.op == "vector" and value.width == 1:
            return f"splat(*c->vector[{self.vector(value.extra)}])"
        return None

    def vector(self, key: Any) -> int:
        """Return the index of a vector."""
        return self.vectors.setdefault(key, len(self.vectors))


class Region:
    """One function of the generated file.

    Args:
        tables: The tables that all regions share.
        outputs: The values to compute, and their places.
        given: The values that already exist, and their places.
        whole_tile: Whether the function runs over all rows of a tile at once.
        keep: Computed values that are saved.
        reusable: Given values that are not read after the sum that starts from them.
    """

    def __init__(
        self,
        tables: Tables,
        outputs: Mapping[Value, Place],
        given: Mapping[Value, Place],
        *,
        whole_tile: bool = False,
        keep: Sequence[Value] = (),
        reusable: Collection[Value] = (),
    ) -> None:
        self._tables, self._given, self._keep = tables, given, keep
        self._whole_tile = whole_tile
        order = needed([*outputs, *keep], given)
        self.order = [v for v in order if v not in given and v.args]
        self._inside = set(self.order)
        self._users: dict[Value, list[Value]] = {}
        for value in self.order:
            for arg in value.args:
                self._users.setdefault(arg, []).append(value)
        self._levels = self._find_levels(outputs)
        self._places = self._find_places(outputs, reusable)
        self.lines = self._write()

    def _find_levels(self, outputs: Collection[Value]) -> dict[Value, int]:
        """Count the products and sums over columns that must come before each value."""
        levels: dict[Value, int] = {}
        for value in self.order:
            level = max((levels[arg] for arg in value.args if arg in levels), default=0)
            levels[value] = level + value.is_barrier
        # Operations that read only stored values run late, so that their results need no buffer.
        for value in reversed(self.order):
            users = self._users.get(value)
            if value.is_barrier or value.is_costly or value in outputs or not users:
                continue
            if all(arg.is_barrier or arg not in self._inside for arg in value.args):
                levels[value] = max(
                    levels[value], min(levels[user] - user.is_barrier for user in users)
                )
        return levels

    def _find_places(
        self, outputs: Mapping[Value, Place], reusable: Collection[Value]
    ) -> dict[Value, Place]:
        """Choose the places of the values that must be stored in memory."""
        places = dict(outputs)
        kind = TILE if self._whole_tile else STEP
        for value in self.order:
            if not value.is_barrier or value in places:
                continue
            start = value.args[0] if value.op == "product" and value.extra[0] else None
            if start is not None and start in reusable and start in self._given:
                places[value] = self._given[start]
            else:
                places[value] = self._tables.buffer(value.width, kind)
        for value in self.order:
            if value.op == "product" and value.extra[0]:
                start = value.args[0]
                free = start in self._inside and start not in places and not start.is_barrier
                if free and len(self._users[start]) == 1:
                    places[start] = places[value]
        for value in self.order:
            if value not in places and self._must_lie(value):
                places[value] = self._tables.buffer(value.width, kind)
        return places

    def _must_lie(self, value: Value) -> bool:
        level = self._levels[value]
        for user in self._users.get(value, ()):
            over = user.op in OVER_COLUMNS
            if user.op == "product" or self._levels[user] - over > level:
                return True
            if user.width != value.width and not over:
                return True
        return False

    # ---- C --------------------------------------------------------------------------------------
    def _write(self) -> list[str]:
        lines = []
        for level in range(max(self._levels.values(), default=0) + 1):
            loops: dict[int, list[Value]] = {}
            for value in self.order:
                over = value.op in OVER_COLUMNS
                if value.op != "product" and self._levels[value] - over == level:
                    loops.setdefault(value.args[0].width if over else value.width, []).append(value)
            for value in self._keep:
                if value.is_barrier and self._levels[value] == level:
                    loops.setdefault(value.width, [])
            for width in sorted(loops):
                lines += self._loop(loops[width], width, level)
            for value in self.order:
                if value.op == "product" and self._levels[value] - 1 == level:
                    lines += self._product(value)
        return lines

    @property
    def _rows(self) -> str:
        return "n * b->rows" if self._whole_tile else "b->rows"

    def _place(self, value: Value) -> Place:
        return self._places[value] if value in self._places else self._given[value]

    def _product(self, value: Value) -> list[str]:
        """Write a sum of products of sections with matrices."""
        to, width = self._places[value], self._tables.width(value.width)
        (has_start, matrices), sections = value.extra, value.sections
        lines, add, start = [], has_start, "0"
        if has_start:
            first = value.args[0]
            if first.op == "vector":
                add, start = False, f"c->vector[{self._tables.vector(first.extra)}]"
            elif self._place(first) != to:
                lines.append(
                    f"copy_rows({to.at('0')}, {to.row}, {self._place(first).at('0')}, "
                    f"{self._place(first).row}, {self._rows}, V{width});"
                )
        keys = list(self._tables.matrices)
        i = 0
        while i < len(sections):
            section, matrix, end = sections[i], matrices[i], i + 1
            node, (low, high), columns = keys[matrix]
            group = self._tables.groups.get(section)
            while group and end < len(sections):  # sections side by side are one operand
                after = self._tables.groups.get(sections[end])
                wide = sections[end].width
                follows = keys[matrices[end]] == (node, (high, high + wide), columns)
                if after != (group[0], group[1] + end - i) or not follows:
                    break
                high, end = high + wide, end + 1
            if end > i + 1:
                part = (node, (low, high), columns)
                matrix = self._tables.matrices.setdefault(part, len(self._tables.matrices))
            place = self._place(section)
            inner = self._tables.width(high - low)
            lines.append(
                f"product({place.at('0')}, {place.row}, {self._rows}, "
                f"c->matrix[{matrix}], W{inner}, "
                f"S{width}, {to.at('0')}, {to.row}, {int(add)}, {start});"
            )
            add, start, i = True, "0", end
        if value.width == 1:
            lines.append(f"widen_rows({to.at('0')}, {to.row}, {self._rows});")
        return lines

    def _loop(self, values: list[Value], width: int, level: int) -> list[str]:
        """Write all elementwise operations of one level and width as one loop."""
        before: list[str] = []
        lines: list[str] = []
        after: list[str] = []
        names: dict[Value, str] = {}
        number = self._tables.width(width)

        def name(value: Value) -> str:
            """Return the variable that holds a vector of a value."""
            if value in names:
                return names[value]
            names[value] = found = f"v{value.number}"
            constant = self._tables.constant(value)
            if constant is not None:
                before.append(f"const vec {found} = {constant};")
            elif value.op == "vector":
                index = self._tables.vector(value.extra)
                lines.append(f"const vec {found} = load(c->vector[{index}] + j);")
            elif value.width == 1 and width != 1:
                before.append(f"const vec {found} = load({self._place(value).at()});")
            else:
                lines.append(f"const vec {found} = load({self._place(value).at()} + j);")
            return found

        def keep(value: Value) -> None:
            if value in self._keep:
                place = self._tables.saved_place(value)
                lines.append(f"store({place.at()} + j, {name(value)});")

        for value in values:
            args = [name(arg) for arg in value.args]
            own = f"v{value.number}"
            if value.op in OVER_COLUMNS:
                first = "0" if value.op == "sum" else "-(real)INFINITY"
                before.append(f"vec {own} = splat({first});")
                inside = f"within({args[0]}, j, W{number}, {first})"
                joined = f"{own} + {inside}" if value.op == "sum" else f"larger_of({own}, {inside})"
                lines.append(f"{own} = {joined};")
                total = "sum_of_lanes" if value.op == "sum" else "largest_lane"
                after.append(f"widen({self._places[value].at()}, {total}({own}));")
                continue
            form = {**UNARY, **BINARY, **TERNARY}[value.op]
            lines.append(f"const vec {own} = {form.format(*args)};")
            names[value] = own
            if value in self._places:
                lines.append(f"store({self._places[value].at()} + j, {own});")
            keep(value)
        for value in self._keep:
            if value.is_barrier and value.width == width and self._levels[value] == level:
                keep(value)
        stop = "LANES" if width == 1 else f"V{number}"
        return [
            f"for (int64_t r = 0; r < {self._rows}; r++) {{",
            *("    " + line for line in before),
            f"    for (int64_t j = 0; j < {stop}; j += LANES) {{",
            *("        " + line for line in lines),
            "    }",
            *("    " + line for line in after),
            "}",
        ]
