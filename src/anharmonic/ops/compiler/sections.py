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

import functools
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
_MOVES = {
    "view", "reshape", "_unsafe_view", "_reshape_copy", "squeeze", "unsqueeze", "transpose",
    "permute", "slice", "select", "getitem", "cat", "slice_scatter", "select_scatter", "flip",
    "repeat",
}  # fmt: skip
_FILLED = {
    "zeros": 0.0, "ones": 1.0, "zeros_like": 0.0, "ones_like": 1.0, "new_zeros": 0.0,
    "new_ones": 1.0, "empty": math.nan, "empty_like": math.nan, "new_empty": math.nan,
}  # fmt: skip
_FILLED_WITH = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}
_PARTS = {
    "split", "split_with_sizes", "unbind", "chunk", "unsafe_split", "unsafe_split_with_sizes",
    "unsafe_chunk",
}  # fmt: skip
_NAMES = {
    "bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_not": "logical_not",
    "logical_xor": "ne", "bitwise_xor": "ne", "true_divide": "div", "multiply": "mul",
    "subtract": "sub", "negative": "neg", "sgn": "sign", "special_erf": "erf",
    "clamp_min": "maximum", "clamp_max": "minimum",
}  # fmt: skip
_REDUCTIONS = ("sum", "mean", "amax", "amin")
_LIST = "docs/your-own-recurrence.md lists what is"
_INSTEAD = {
    "cumsum": "multiply by a triangular matrix of ones",
    "index": "multiply by a permutation matrix",
}
_ALONE = "treat each sequence alone, as sum(dim=1) does"
# Operations f for which f(a) + f(b) differs from f(a + b).
_NOT_LINEAR = {
    "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "relu", "pow", "sign", "abs", *UNARY,
    *COMPARISONS,
} - {"copy", "neg"}  # fmt: skip


_ELEMENTWISE = {*UNARY, *BINARY, "clamp", "masked_fill", "where", "expand"}
_KNOWN = {*_SAME, *_MOVES, *_REDUCTIONS, *_ELEMENTWISE, "mm"}


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
        self._moves: dict[Node, list[tuple[Node, int]]] = {}
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
        shape = _shape(node)
        return math.prod(shape[1:]) if shape[:1] == [self.trace.batch] else None

    def _written(self, node: Node) -> str:
        """Return the shape of a node, for messages."""
        shape = node.meta["val"].shape
        return str(["B" if n == self.trace.batch else n for n in shape]).replace("'", "")

    def _columns(self, node: Node) -> int:
        width = self._width(node)
        if width is None:
            raise refusal(
                node,
                f"makes a tensor of the shape {self._written(node)}",
                "keep one row [B, features] for each sequence",
            )
        return width

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
            if len(shape) == 2 and shape[1] == self.trace.batch:
                return TURNED
        if name in _REDUCTIONS and self._sums_rows(node):
            if "call" in node.meta:  # by the step, not by its derivative
                raise refusal(node, "reads all sequences of the batch at once", _ALONE)
            self._root_nodes.append(node)
            return SUMMED
        if not _is_tensor(node):
            if name not in _PARTS:
                raise refusal(node, "is not compiled", _INSTEAD.get(name, _LIST))
            return ROWS
        value = node.meta["val"]
        self._columns(node)
        if value.dtype.is_complex:
            advice = "hold the real and the imaginary part in two tensors"
            raise refusal(node, f"computes rows in {value.dtype}", advice)
        if _NAMES.get(name, name) not in _KNOWN:
            raise refusal(node, "is not compiled", _INSTEAD.get(name, _LIST))
        allowed = torch.bool if name in COMPARISONS or name in _NAMES else self._dtype
        if name == "sum" and node.args[0].meta["val"].dtype is torch.bool:
            return ROWS  # how many are true, as the gradient of amax asks
        if value.dtype not in (self._dtype, torch.bool) or (
            value.dtype is torch.bool and value.dtype is not allowed and name in (*BINARY, *UNARY)
        ):
            advice = "stay in the dtype of the state"
            raise refusal(node, f"computes rows in {value.dtype}", advice)
        return ROWS

    def _sums_rows(self, node: Node) -> bool:
        """Return whether a sum runs over the sequences, with or without the columns."""
        dims = _reduced_axes(node)
        return not dims or -len(_shape(node.args[0])) in dims

    # ---- where columns are cut ------------------------------------------------------------------
    def _bounds(self, node: Node) -> list[tuple[int, int]]:
        cuts = sorted({0, self._columns(node), *self._cuts[node]})
        return list(itertools.pairwise(cuts))

    def _moved(self, node: Node) -> list[tuple[Node, int]]:
        """Return where an operation that only moves columns takes each of its columns from.

        It is computed once on the numbers of the columns.
        """
        if node not in self._moves:
            batch, call = self.trace.batch, node
            part = slice(None)
            if name_of(node) == "getitem":
                call, part = node.args
            taken = [
                (source, k) for source in call.all_input_nodes for k in range(self._columns(source))
            ]
            rows = len(taken) * torch.arange(batch, device="cpu")[:, None]
            numbers, low = {}, 0
            for source in call.all_input_nodes:
                number = torch.arange(low, low + self._columns(source), device="cpu")
                low += len(number)
                number = number + rows
                numbers[source] = number.reshape(source.meta["val"].shape)
            args, kwargs = fx.map_arg((call.args, call.kwargs), numbers.__getitem__)
            moved = call.target(*args, **kwargs)[part].reshape(batch, -1)
            if not torch.equal(moved, moved[:1] + rows):
                raise refusal(node, "moves values from one sequence to another", _ALONE)
            self._moves[node] = [taken[k] for k in moved[0]]
        return self._moves[node]

    def _find_cuts(self) -> dict[Node, set[int]]:
        """Return where the columns of each node are divided, given its arguments and its users."""
        rows = [n for n, kind in self._kinds.items() if kind == ROWS and _is_tensor(n)]
        cuts: dict[Node, set[int]] = {node: set() for node in rows}
        links: list[tuple[Node, int, Node, int, int]] = []

        def whole(a: Node, b: Node) -> None:
            if self._columns(a) == self._columns(b):
                links.append((a, 0, b, 0, self._columns(a)))

        def spread(node: Node, features: tuple[int, ...], small: Node) -> None:
            """Cut a node where the columns of a smaller one, which are repeated, do not go on."""
            columns = _repeated(_features(node, ROWS), features)
            step = int(features[-1] == _features(node, ROWS)[-1])
            ends = [k for k in range(1, len(columns)) if columns[k] - columns[k - 1] != step]
            cuts[node] |= set(ends)
            for low, high in itertools.pairwise([0, *ends, len(columns)]) if small in cuts else ():
                if step:
                    links.append((node, low, small, columns[low], high - low))
                else:
                    cuts[small] |= {columns[low], columns[low] + 1} - {0, self._columns(small)}

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
            if name in _MOVES and TURNED not in map(self._kinds.get, node.all_input_nodes):
                origins = self._moved(node)
                ends = [
                    k for k in range(1, len(origins))
                    if origins[k] != (origins[k - 1][0], origins[k - 1][1] + 1)
                ]  # fmt: skip
                for low, high in itertools.pairwise([0, *ends, len(origins)]):
                    links.append((node, low, *origins[low], high - low))
            elif name in _REDUCTIONS:
                spread(node.args[0], self._kept_axes(node), node)
            elif name in _SAME:
                whole(node.args[0], node)
            elif _NAMES.get(name, name) in _ELEMENTWISE:
                for source in node.all_input_nodes:
                    spread(node, _features(source, self._kinds[source]), source)
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

    # ---- values ---------------------------------------------------------------------------------
    def _operand(self, node: Node, arg: Any, low: int, high: int) -> Value:
        """Return the value of an operand at some columns of an elementwise operation."""
        if isinstance(arg, (int, float, bool)):
            return self.values.number(float(arg), high - low)
        if not isinstance(arg, fx.Node):
            raise Unsupported(f"{arg!r} beside rows is not compiled")
        if self._kinds[arg] == FIXED:
            if arg.meta["val"].numel() == 1:
                return self.values.exactly("scalar", (), high - low, arg)
        elif self._kinds[arg] != ROWS:
            raise refusal(arg, "is not compiled here")
        elif self._columns(arg) == 1:
            return self._of[arg][0]
        columns = _repeated(_features(node, ROWS), _features(arg, self._kinds[arg]))
        low, high = columns[low], columns[high - 1] + 1
        if self._kinds[arg] == FIXED:
            return self.values.exactly("vector", (), high - low, (arg, low, high))
        return dict(zip(self._bounds(arg), self._of[arg], strict=True))[low, high]

    def _sections(self, node: Node) -> list[Value]:
        """Return the values of a node of kind ``ROWS``."""
        name, bounds, make = name_of(node), self._bounds(node), self.values.make
        source: Any = node.args[0] if node.args else None
        if name in _FILLED or name in _FILLED_WITH:
            number = _fill(node)
            if number is None:
                raise refusal(node, "fills rows with a tensor")
            return [self.values.number(number, high - low) for low, high in bounds]
        if name in ("t", "transpose", "permute") and self._kinds[source] == TURNED:
            return self._of[source.args[0]]
        if name in _MOVES:
            found = []
            for low, high in bounds:
                source, start = self._moved(node)[low]
                at = dict(zip(self._bounds(source), self._of[source], strict=True))
                found.append(at[start, start + high - low])
            return found
        if name in _SAME:
            if _is_truth(node) and not _is_truth(source):
                return [
                    make("ne", (value, self.values.number(0.0, value.width)), value.width)
                    for value in self._of[source]
                ]
            return self._of[source]
        if name == "expand":
            return [
                make("copy", (self._operand(node, source, low, high),), high - low)
                for low, high in bounds
            ]
        if name == "mm":
            return self._product(node)
        if name in _REDUCTIONS:
            return self._over_columns(node, name)
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

    def _kept_axes(self, node: Node) -> tuple[int, ...]:
        """Return the features of the argument of a reduction, with 1 for what it reduces."""
        features = list(_features(node.args[0], ROWS))
        for axis in _reduced_axes(node):
            if -axis <= len(features):  # others have size 1
                features[axis] = 1
        return tuple(features)

    def _over_columns(self, node: Node, name: str) -> list[Value]:
        source, make = node.args[0], self.values.make
        over, joined = ("sum", "add") if name in ("sum", "mean") else ("largest", "maximum")
        kept, features = self._kept_axes(node), _features(source, ROWS)
        columns = _repeated(features, kept)
        totals: dict[int, Value] = {}
        for (low, _), value in zip(self._bounds(source), self._of[source], strict=True):
            if name == "amin":
                value = make("neg", (value,), value.width)
            if kept[-1] != features[-1]:
                value = make(over, (value,), 1)
            before = totals.get(columns[low])
            totals[columns[low]] = (
                value if before is None else make(joined, (before, value), value.width)
            )
        found = [totals[low] for low in sorted(totals)]
        if name == "amin":
            found = [make("neg", (total,), total.width) for total in found]
        if name == "mean":
            count = math.prod(features) // math.prod(kept)
            found = [make("div", (v, self.values.number(count, v.width)), v.width) for v in found]
        return found

    def _single(self, node: Node, name: str, low: int, high: int) -> Value:
        """Return columns of the result of an elementwise operation."""
        width, make = high - low, self.values.make
        args = [
            self._operand(node, arg, low, high)
            if isinstance(arg, (fx.Node, int, float, bool))
            else arg
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
        return None if value is None else self._operand(node, value, low, high)

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
    def reduced(self, node: Node, total: Tensor) -> Tensor:
        """Return a sum over the sequences [columns], summed over the node's other axes, too."""
        shape = node.args[0].meta["val"].shape
        shape = [1 if n == self.trace.batch else n for n in shape]
        return total.reshape(shape).sum(_reduced_axes(node) or None)

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


def _reduced_axes(node: Node) -> list[int]:
    """Return the axes of its argument that a reduction removes, below 0; none for all axes."""
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    axes = node.args[0].meta["val"].dim()
    return [dim if dim < 0 else dim - axes for dim in dims or ()]


def _shape(node: Node) -> list[int]:
    """Return the shape of a node, without axes of size 1 before that of the sequences."""
    shape = list(node.meta["val"].shape)
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _features(node: Node, kind: str) -> tuple[int, ...]:
    """Return the axes of a node's columns, at least one."""
    shape = _shape(node)
    return tuple(shape[1:] if kind == ROWS else shape) or (1,)


@functools.lru_cache(1024)
def _repeated(features: tuple[int, ...], small: tuple[int, ...]) -> list[int]:
    """Return the column of a smaller tensor that broadcasting puts at each column of a larger."""
    columns = torch.arange(math.prod(small), device="cpu").reshape(small)
    while columns.dim() > len(features) and columns.shape[0] == 1:
        columns = columns[0]
    found: list[int] = columns.expand(features).flatten().tolist()
    return found
