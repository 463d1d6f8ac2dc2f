"""Convert the graph of a step to values: classify each node and divide its columns.

Every node of the graph is one of four kinds.

- ``FIXED``: depends on weights alone. PyTorch computes it once per call, before the loop.
- ``ROWS``: [B, columns]; the loop computes it.
- ``TURNED``: transposed rows. Only the product in the gradient of a weight reads it.
- ``SUMMED``: a sum over rows, or computed from such sums: the gradients of weights. The loop
  accumulates the sums, and PyTorch computes the rest once per call, after the loop.

Slices, chunks and concatenations of rows need no operations. They divide the columns of a node
into sections, and every section is a separate value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, fx

from anharmonic.ops.compiler.trace import Trace, Unsupported, name_of, refusal
from anharmonic.ops.compiler.values import BINARY, COMPARISONS, UNARY, Value, Values

Node: TypeAlias = Any
"""A node of the graph; ``fx.Node`` does not type its arguments usefully."""
FIXED, ROWS, TURNED, SUMMED = "fixed", "rows", "turned", "summed"

_SAME = {
    "detach", "clone", "alias", "contiguous", "_to_copy", "lift_fresh_copy", "lift_fresh",
    "convert_element_type",
}  # fmt: skip
_RESHAPED = {"view", "reshape", "_unsafe_view", "_reshape_copy", "squeeze", "unsqueeze", "expand"}
_FILLED = {
    "zeros": 0.0, "ones": 1.0, "zeros_like": 0.0, "ones_like": 1.0, "new_zeros": 0.0,
    "new_ones": 1.0, "empty": math.nan, "empty_like": math.nan, "new_empty": math.nan,
}  # fmt: skip
_FILLED_WITH = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}
_PARTS = {"split", "split_with_sizes", "unbind", "chunk"}
_NAMES = {
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_not": "logical_not",
    "logical_xor": "ne", "bitwise_xor": "ne", "true_divide": "div", "multiply": "mul",
    "subtract": "sub", "negative": "neg", "sgn": "sign", "special_erf": "erf",
    "clamp_min": "maximum", "clamp_max": "minimum",
}  # fmt: skip
_LIST = "docs/your-own-recurrence.md lists what is"
_INSTEAD = {
    "cumsum": "multiply by a triangular matrix of ones",
    "flip": "multiply by a permutation matrix",
    "index": "multiply by a permutation matrix",
}
_ALONE = "treat each sequence alone, as sum(dim=1) does"
# Operations f for which f(a) + f(b) differs from f(a + b).
_NOT_LINEAR = {
    "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "relu", "pow", "sign", "abs", *UNARY,
    *COMPARISONS,
} - {"copy", "neg"}  # fmt: skip


class Root(NamedTuple):
    """A sum over rows that the loop adds up.

    Attributes:
        node: The node of the sum.
        left: The sections that are summed, or the sections of the left factor.
        right: The sections of the right factor, for a sum of products of columns.
    """

    node: Node
    left: list[Value]
    right: list[Value] | None

    @property
    def factors(self) -> list[Value]:
        """Return all sections."""
        return [*self.left, *(self.right or [])]


class Sections:
    """A traced step, converted to values.

    Attributes:
        trace: The trace of the step.
        values: All values of the step.
        matrices: (node, first and last row, first and last column) of each matrix, by its index.
        state: The sections of each variable of the state before the step.
        inputs: The sections of each input.
        grad_new: The sections of each gradient with respect to the state after the step.
        new: The sections of the state after the step.
        grad_state: The sections of the gradients with respect to the state before the step.
        grad_inputs: The sections of the gradients with respect to the inputs.
        roots: The sums over rows.
    """

    def __init__(self, trace: Trace, dtype: torch.dtype) -> None:
        self.trace, self._dtype = trace, dtype
        self.values = Values()
        self.matrices: dict[Any, int] = {}
        self._kinds: dict[Node, str] = {}
        self._root_nodes: list[Node] = []
        for node in trace.graph.nodes:
            if node.op != "output":
                self._kinds[node] = self._kind(node)
        self._cuts = self._find_cuts()
        self._of: dict[Node, list[Value]] = {}
        for kind, nodes in (
            ("state", trace.state),
            ("input", trace.inputs),
            ("gradient", trace.grad_new),
        ):
            for k, node in enumerate(nodes):
                self._of[node] = [
                    self.values.source(kind, k, j, high - low)
                    for j, (low, high) in enumerate(self._bounds(node))
                ]
        for node in trace.graph.nodes:
            if self._kinds.get(node) == ROWS and node not in self._of and _is_tensor(node):
                self._of[node] = self._sections(node)
        self.state, self.inputs = self._all(trace.state), self._all(trace.inputs)
        self.grad_new, self.new = self._all(trace.grad_new), self._all(trace.new)
        self.grad_state = self._all(trace.grad_state, trace.state)
        self.grad_inputs = self._all(trace.grad_inputs, trace.inputs)
        self.roots = [self._root(node) for node in self._root_nodes]

    def _all(self, nodes: Sequence[Node | None], like: Sequence[Node] = ()) -> list[list[Value]]:
        """Return the sections of nodes; a missing node gives zeros shaped as in ``like``."""
        found = []
        for k, node in enumerate(nodes):
            if node is None:
                bounds = self._bounds(like[k])
                found.append([self.values.number(0.0, high - low) for low, high in bounds])
            elif self._kinds[node] != ROWS:
                raise Unsupported("a variable of the new state does not depend on the sequences")
            else:
                found.append(self._of[node])
        return found

    # ---- what a node is ------------------------------------------------------------------------
    def _width(self, node: Node) -> int | None:
        """Return the number of columns of a node that has one row per sequence."""
        shape = list(node.meta["val"].shape)
        while len(shape) > 2 and shape[0] == 1:
            shape = shape[1:]
        if not shape or len(shape) > 2 or shape[0] != self.trace.batch:
            return None
        return int(shape[1]) if len(shape) == 2 else 1

    def _shape(self, node: Node) -> str:
        """Return the shape of a node, for messages."""
        shape = node.meta["val"].shape
        return str(["B" if n == self.trace.batch else n for n in shape]).replace("'", "")

    def _columns(self, node: Node) -> int:
        width = self._width(node)
        if width is None:
            raise refusal(
                node,
                f"makes a tensor of the shape {self._shape(node)}",
                "keep one row [B, features] for each sequence",
            )
        return width

    def _axis(self, node: Node, dim: int) -> int:
        """Return -2 for the axis of the sequences of a node, -1 for the axis of its columns."""
        shape = node.meta["val"].shape
        axis = dim if dim < 0 else dim - len(shape)
        return axis - 1 if shape[-1] == self.trace.batch and len(shape) == 1 else axis

    def _kind(self, node: Node) -> str:
        if node.op == "get_attr":
            return FIXED
        if node.op == "placeholder":
            return FIXED if node in self.trace.weights else ROWS
        name, kinds = name_of(node), [self._kinds[a] for a in node.all_input_nodes]
        if name in _FILLED or name in _FILLED_WITH:
            return ROWS if _is_tensor(node) and self._width(node) is not None else FIXED
        if SUMMED in kinds:
            summed = [
                isinstance(arg, fx.Node) and self._kinds[arg] == SUMMED for arg in node.args[:2]
            ]
            curved = name in _NOT_LINEAR or (
                (name in ("mul", "mm") and all(summed)) or (name == "div" and summed[1])
            )
            if ROWS in kinds or TURNED in kinds or curved:
                raise refusal(node, "computes with a sum over the batch", _ALONE)
            return SUMMED
        if ROWS not in kinds and TURNED not in kinds:
            if name == "expand" and self._width(node) is not None:
                return ROWS
            values = node.meta["val"]
            for value in values if isinstance(values, (tuple, list)) else (values,):
                if isinstance(value, Tensor) and self.trace.batch in value.shape:
                    raise refusal(
                        node, "copies weights for every sequence", "let them broadcast instead"
                    )
            return FIXED
        if TURNED in kinds:
            if name in ("t", "transpose", "permute") and kinds == [TURNED]:
                return ROWS
            if name == "mm" and kinds == [TURNED, ROWS]:
                self._root_nodes.append(node)
                return SUMMED
            raise refusal(node, "computes with transposed rows", "write h @ W.T instead of W @ h.T")
        if name in ("t", "transpose", "permute"):
            shape = node.meta["val"].shape
            if len(shape) != 2 or shape[1] != self.trace.batch:
                raise refusal(node, f"transposes rows to the shape {self._shape(node)}")
            return TURNED
        if name in ("sum", "mean", "amax", "amin") and self._sums_rows(node):
            if "call" in node.meta:  # by the step, not by its derivative
                raise refusal(node, "reads all sequences of the batch at once", _ALONE)
            self._root_nodes.append(node)
            return SUMMED
        if not _is_tensor(node):
            if name not in _PARTS:
                raise refusal(node, "is not compiled", _INSTEAD.get(name, _LIST))
            dim = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim", 0)
            if self._axis(node.args[0], dim) != -1:
                raise refusal(node, "takes the sequences of the batch apart", _ALONE)
            return ROWS
        value = node.meta["val"]
        self._columns(node)
        allowed = torch.bool if name in COMPARISONS or name in _NAMES else self._dtype
        if name == "sum" and node.args[0].meta["val"].dtype is torch.bool:
            return ROWS  # how many are true, as the gradient of amax asks
        if value.dtype not in (self._dtype, torch.bool) or (
            value.dtype is torch.bool and value.dtype is not allowed and name in (*BINARY, *UNARY)
        ):
            advice = "stay in the dtype of the state"
            if value.dtype.is_complex:
                advice = "hold the real and the imaginary part in two tensors"
            raise refusal(node, f"computes rows in {value.dtype}", advice)
        return ROWS

    def _sums_rows(self, node: Node) -> bool:
        """Return whether a sum runs over the sequences, with or without the columns."""
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        source = node.args[0]
        if not dims:
            return True
        return -2 in [self._axis(source, dim) for dim in dims]

    # ---- where columns are cut ------------------------------------------------------------------
    def _bounds(self, node: Node) -> list[tuple[int, int]]:
        cuts = sorted({0, self._columns(node), *self._cuts[node]})
        return list(itertools.pairwise(cuts))

    def _offset(self, node: Node) -> int:
        """Return the column of its argument at which a slice, chunk or selection begins."""
        name, source = name_of(node), node.args[0]
        if name == "getitem":
            parts = source.meta["val"]
            return sum(_part_width(parts[k]) for k in range(node.args[1]))
        width = self._columns(source)
        start = node.args[2] if len(node.args) > 2 else 0
        start = start or 0
        return min(start + width if start < 0 else start, width)

    def _inset(self, node: Node) -> tuple[int, int]:
        """Return the columns that ``slice_scatter`` or ``select_scatter`` replaces."""
        width = self._columns(node)
        given = [*node.args[3:], None, None]
        start = given[0] or 0
        start = start + width if start < 0 else start
        if name_of(node) == "select_scatter":
            return start, start + 1
        end = width if given[1] is None else given[1]
        end = end + width if end < 0 else end
        return min(start, width), min(end, width)

    def _find_cuts(self) -> dict[Node, set[int]]:
        """Return where the columns of each node are divided, given its arguments and its users."""
        rows = [n for n, kind in self._kinds.items() if kind == ROWS and _is_tensor(n)]
        cuts: dict[Node, set[int]] = {node: set() for node in rows}
        links: list[tuple[Node, int, Node, int, int]] = []

        def whole(a: Node, b: Node) -> None:
            if self._columns(a) == self._columns(b):
                links.append((a, 0, b, 0, self._columns(a)))

        trace = self.trace
        for k, node in enumerate(trace.state):
            for other in (trace.new[k], trace.grad_new[k], trace.grad_state[k]):
                if other is not None and other in cuts:
                    whole(node, other)
        for k, node in enumerate(trace.inputs):
            found = trace.grad_inputs[k]
            if found is not None and found in cuts:
                whole(node, found)
        for node in rows:
            name = name_of(node)
            sources = [a for a in node.all_input_nodes if a in cuts]
            if name in ("slice", "select", "getitem"):
                source = node.args[0].args[0] if name == "getitem" else node.args[0]
                self._check_axis(node, source)
                links.append((source, self._offset(node), node, 0, self._columns(node)))
            elif name == "cat":
                self._check_cat(node)
                at = 0
                for part in node.args[0]:
                    links.append((node, at, part, 0, self._columns(part)))
                    at += self._columns(part)
            elif name in ("slice_scatter", "select_scatter"):
                low, high = self._inset(node)
                whole(node.args[0], node)
                links.append((node, low, node.args[1], 0, high - low))
                cuts[node] |= {low, high} - {0, self._columns(node)}
            elif name not in ("mm", "sum", "mean", "amax", "amin", "placeholder", "t"):
                for source in sources:
                    whole(source, node)
        changed = True
        while changed:
            changed = False
            for a, from_a, b, from_b, length in links:
                for p, at_p, q, at_q in ((a, from_a, b, from_b), (b, from_b, a, from_a)):
                    inside = {c for c in (*cuts[p], at_p, at_p + length) if 0 <= c - at_p <= length}
                    moved = {c - at_p + at_q for c in inside}
                    moved = {c for c in moved if 0 < c < self._columns(q)} - cuts[q]
                    if moved:
                        cuts[q] |= moved
                        changed = True
        return cuts

    def _check_axis(self, node: Node, source: Node) -> None:
        """Reject operations that select some of the sequences of the batch."""
        name = name_of(node)
        if name == "getitem":
            return
        if name == "slice" and (len(node.args) > 4 and node.args[4] != 1):
            raise refusal(node, "skips columns", "slice with step 1")
        dim = node.args[1] if len(node.args) > 1 else 0
        if self._axis(source, dim) == -1:
            return
        if name == "select" or node.meta["val"].shape != source.meta["val"].shape:
            raise refusal(node, "takes sequences out of the batch", _ALONE)

    def _check_cat(self, node: Node) -> None:
        dim = node.args[1] if len(node.args) > 1 else 0
        if self._axis(node, dim) != -1 or any(self._kinds[a] != ROWS for a in node.args[0]):
            raise refusal(
                node, "joins rows with something else", "join rows [B, features] along dim=1"
            )

    # ---- values ---------------------------------------------------------------------------------
    def _operand(self, arg: Any, low: int, high: int) -> Value:
        """Return columns of an operand of an elementwise operation."""
        if isinstance(arg, (int, float, bool)):
            return self.values.number(float(arg), high - low)
        if not isinstance(arg, fx.Node):
            raise Unsupported(f"{arg!r} beside rows is not compiled")
        if self._kinds[arg] == FIXED:
            return self._fixed(arg, low, high)
        if self._kinds[arg] != ROWS:
            raise refusal(arg, "is not compiled here")
        if self._columns(arg) == 1:
            return self._of[arg][0]
        return dict(zip(self._bounds(arg), self._of[arg], strict=True))[low, high]

    def _fixed(self, node: Node, low: int, high: int) -> Value:
        """Return a value that is the same in every row."""
        shape = list(node.meta["val"].shape)
        while len(shape) > 1 and shape[0] == 1:
            shape = shape[1:]
        if math.prod(shape) == 1:
            return self.values.exactly("scalar", (), high - low, node)
        if len(shape) != 1:
            raise refusal(
                node, f"has the shape {shape} beside rows", "weights beside rows are [features]"
            )
        return self.values.exactly("vector", (), high - low, (node, low, high))

    def _sections(self, node: Node) -> list[Value]:
        """Return the values of a node of kind ``ROWS``."""
        name, bounds, make = name_of(node), self._bounds(node), self.values.make
        source: Any = node.args[0] if node.args else None
        rows = isinstance(source, fx.Node) and self._kinds[source] == ROWS
        if name in _FILLED or name in _FILLED_WITH:
            number = _fill(node)
            if number is None:
                raise refusal(node, "fills rows with a tensor")
            return [self.values.number(number, high - low) for low, high in bounds]
        if name in ("t", "transpose", "permute"):
            return self._of[source.args[0]]
        if name in _SAME or name in _RESHAPED:
            if rows and self._columns(source) == self._columns(node):
                if _is_truth(node) and not _is_truth(source):
                    return [
                        make("ne", (value, self.values.number(0.0, value.width)), value.width)
                        for value in self._of[source]
                    ]
                return self._of[source]
            if name == "expand" and (not rows or self._columns(source) == 1):
                return [
                    make("copy", (self._operand(source, low, high),), high - low)
                    for low, high in bounds
                ]
            raise refusal(node, f"reshapes rows to {self._shape(node)}")
        if name in ("slice", "select", "getitem"):
            source = source.args[0] if name == "getitem" else source
            at = dict(zip(self._bounds(source), self._of[source], strict=True))
            if name == "slice" and node.meta["val"].shape == source.meta["val"].shape:
                return self._of[source]
            start = self._offset(node)
            return [at[low + start, high + start] for low, high in bounds]
        if name == "cat":
            return [value for part in node.args[0] for value in self._of[part]]
        if name in ("slice_scatter", "select_scatter"):
            low, _ = self._inset(node)
            dim = node.args[2] if len(node.args) > 2 else 0
            if self._axis(node, dim) != -1:
                if node.args[1].meta["val"].shape != node.meta["val"].shape:
                    raise refusal(node, "replaces sequences of the batch", _ALONE)
                return self._of[node.args[1]]
            inside = zip(self._bounds(node.args[1]), self._of[node.args[1]], strict=True)
            replaced = {(a + low, b + low): value for (a, b), value in inside}
            base = dict(zip(self._bounds(node.args[0]), self._of[node.args[0]], strict=True))
            return [replaced[b] if b in replaced else base[b] for b in bounds]
        if name == "mm":
            return self._product(node)
        if name in ("sum", "mean", "amax", "amin"):
            return [self._over_columns(node, name)]
        return [self._single(node, _NAMES.get(name, name), low, high) for low, high in bounds]

    def _product(self, node: Node) -> list[Value]:
        left, right = node.args
        if self._kinds[right] != FIXED or self._kinds[left] != ROWS:
            raise refusal(
                node, "multiplies rows with rows; only products with weights are compiled"
            )
        found = []
        for low, high in self._bounds(node):
            terms = [
                (self._lying(value), self.matrix(right, bounds, (low, high)))
                for bounds, value in zip(self._bounds(left), self._of[left], strict=True)
                if not value.is_number(0)
            ]
            if terms:
                found.append(self.values.product(None, terms, high - low))
            else:
                found.append(self.values.number(0.0, high - low))
        return found

    def _lying(self, value: Value) -> Value:
        """Return a value that is stored in memory, so that a product can read it."""
        if value.args or value.op == "in":
            return value
        return self.values.exactly("copy", (value,), value.width, "factor")

    def matrix(self, node: Node, rows: tuple[int, int], columns: tuple[int, int]) -> int:
        """Return the index of a block of a matrix."""
        return self.matrices.setdefault((node, rows, columns), len(self.matrices))

    def _over_columns(self, node: Node, name: str) -> Value:
        source, make = node.args[0], self.values.make
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if not dims or [self._axis(source, d) for d in dims] != [-1]:
            raise refusal(node, "reads all sequences of the batch at once", _ALONE)
        over, joined = ("sum", "add") if name in ("sum", "mean") else ("largest", "maximum")
        sections = self._of[source]
        if name == "amin":
            sections = [make("neg", (section,), section.width) for section in sections]
        parts = [make(over, (section,), 1) for section in sections]
        total = parts[0]
        for part in parts[1:]:
            total = make(joined, (total, part), 1)
        if name == "amin":
            total = make("neg", (total,), 1)
        if name == "mean":
            total = make("div", (total, self.values.number(self._columns(source), 1)), 1)
        return total

    def _single(self, node: Node, name: str, low: int, high: int) -> Value:
        """Return columns of the result of an elementwise operation."""
        width, make = high - low, self.values.make
        args = [
            self._operand(arg, low, high) if isinstance(arg, (fx.Node, int, float, bool)) else arg
            for arg in node.args
        ]
        if name in ("logical_and", "logical_or", "logical_not") or name_of(node) == "logical_xor":
            zero = self.values.number(0.0, width)
            args = [
                value if _is_truth(arg) else make("ne", (value, zero), width)
                for value, arg in zip(args, node.args, strict=True)
            ]
        if name in UNARY and len(args) == 1 and not node.kwargs:
            return make(name, args, width)
        if name == "clamp":
            low_end, high_end = [*args[1:], None, None][:2]
            low_end = low_end or self._optional(node, "min", low, high)
            high_end = high_end or self._optional(node, "max", low, high)
            value = args[0]
            if low_end is not None:
                value = make("maximum", (low_end, value), width)
            if high_end is not None:
                value = make("minimum", (high_end, value), width)
            return value
        if name == "pow":
            return self._power(args, width)
        if name == "div" and node.kwargs.get("rounding_mode") is not None:
            raise refusal(node, "is not compiled", _INSTEAD.get(name, _LIST))
        if name in ("add", "sub") and node.kwargs.get("alpha", 1) != 1:
            factor = self.values.number(node.kwargs["alpha"], width)
            args[1] = make("mul", (args[1], factor), width)
        if name in BINARY and len(args) == 2:
            return make(name, args, width)
        if name == "masked_fill":
            value, mask, number = args
            return make("where", (mask, number, value), width)
        if name == "where" and len(args) == 3:
            return make(name, args, width)
        raise refusal(node, "is not compiled", _INSTEAD.get(name, _LIST))

    def _optional(self, node: Node, name: str, low: int, high: int) -> Value | None:
        value = node.kwargs.get(name)
        return None if value is None else self._operand(value, low, high)

    def _power(self, args: list[Value], width: int) -> Value:
        base, exponent = args
        make = self.values.make
        if exponent.op == "number" and base.op != "number":
            if exponent.extra == 1:
                return base
            if exponent.extra == 0.5:
                return make("sqrt", (base,), width)
            if exponent.extra in (2, 3):
                square = make("mul", (base, base), width)
                return square if exponent.extra == 2 else make("mul", (square, base), width)
            if exponent.extra == -1:
                return make("reciprocal", (base,), width)
        return make("pow", (base, exponent), width)

    def _root(self, node: Node) -> Root:
        if name_of(node) == "mm":
            turned, right = node.args
            return Root(node, self._of[turned.args[0]], self._of[right])
        return Root(node, self._of[node.args[0]], None)

    # ---- what PyTorch does around the loop ----
    def evaluate(self, nodes: Iterable[Node | None], known: dict[Node, Any]) -> list[Any]:
        """Compute nodes from known ones, and add all intermediate results to ``known``."""
        wanted = list(nodes)
        missing: set[Node] = set()
        stack = [node for node in wanted if node is not None]
        while stack:
            node = stack.pop()
            if node not in missing and node not in known:
                missing.add(node)
                stack += [] if _fill(node) is not None else node.all_input_nodes
        for node in self.trace.graph.nodes:
            if node not in missing:
                continue
            if node.op == "get_attr":
                known[node] = self.trace.constants[node.target]
            elif (number := _fill(node)) is not None:
                value = node.meta["val"]
                known[node] = torch.full(value.shape, number, dtype=value.dtype)
            else:
                args = fx.map_arg(node.args, known.__getitem__)
                kwargs = fx.map_arg(node.kwargs, known.__getitem__)
                known[node] = node.target(*args, **kwargs)
        return [None if node is None else known[node] for node in wanted]


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), Tensor)


def _fill(node: Node) -> float | None:
    """Return the number that a node fills a tensor with; None for other operations."""
    name = name_of(node)
    if name in _FILLED:
        return _FILLED[name]
    if name in _FILLED_WITH:
        number = node.args[_FILLED_WITH[name]]
        return number if isinstance(number, (int, float, bool)) else None
    return None


def _is_truth(arg: Any) -> bool:
    if isinstance(arg, fx.Node):
        return bool(arg.meta["val"].dtype is torch.bool)
    return isinstance(arg, bool)


def _part_width(value: Tensor) -> int:
    return int(value.shape[-1]) if value.dim() > 1 else 1
