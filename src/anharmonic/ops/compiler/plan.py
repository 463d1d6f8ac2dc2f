"""What is computed where: sums of products fused, and what the backward pass finds saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import fx

from anharmonic.ops.compiler.sections import Root, Sections
from anharmonic.ops.compiler.values import Value, Values, needed


class Plan:
    """A step's values, ready to be written as C.

    Attributes:
        sections: Where they come from.
        state: The sections of the state before the step, one variable after another.
        inputs: Of the inputs.
        grad_new: Of the gradients that arrive.
        new: Of the state after the step.
        grad_state: Of the gradients of the state before the step.
        grad_inputs: Of the gradients of the inputs; empty for those that nobody wants.
        roots: The sums over rows.
        saved: What forward saves for backward.
    """

    def __init__(self, sections: Sections) -> None:
        self.sections, self._values = sections, sections.values
        trace = sections.trace
        self.state, self.inputs = sections.state, sections.inputs
        self.grad_new = sections.grad_new
        wanted = [
            found if node is not None else []
            for found, node in zip(sections.grad_inputs, trace.grad_inputs, strict=True)
        ]
        outputs = [*_flat(sections.new), *_flat(sections.grad_state), *_flat(wanted)]
        outputs += [v for root in sections.roots for v in _factors(root)]
        fused = _fuse(self._values, outputs)
        taken: set[Value] = set()

        def own(groups: Sequence[Sequence[Value]], backward: bool) -> list[list[Value]]:
            """The fused values; each output is a value that nothing else is.

            What backward gives and reads no gradient may be saved by forward: it is copied.
            """
            found: list[list[Value]] = []
            for group in groups:
                found.append([])
                for value in group:
                    value = fused[value]
                    early = backward and "gradient" not in value.reads
                    if value in taken or not value.args or early:
                        value = self._values.exactly("copy", (value,), value.width, len(taken))
                    taken.add(value)
                    found[-1].append(value)
            return found

        self.new = own(sections.new, False)
        self.grad_state = own(sections.grad_state, True)
        self.grad_inputs = own(wanted, True)
        self.roots = [
            Root(
                root.node,
                [fused[v] for v in root.left],
                None if root.right is None else [fused[v] for v in root.right],
            )
            for root in sections.roots
        ]
        self.saved = self._choose_saved()

    @property
    def fixed_nodes(self) -> list[fx.Node]:
        """What PyTorch computes before the loop: matrices, and what stands beside rows."""
        nodes = [node for node, _, _ in self.sections.matrices]
        for value in self.used():
            if value.op == "scalar":
                nodes.append(value.extra)
            elif value.op == "vector":
                nodes.append(value.extra[0])
        return list(dict.fromkeys(nodes))

    def used(self) -> list[Value]:
        """All values that are computed somewhere."""
        return needed([*_flat(self.new), *self.backward_outputs()])

    def backward_outputs(self) -> list[Value]:
        """What the backward pass computes."""
        return [
            *_flat(self.grad_state),
            *_flat(self.grad_inputs),
            *(v for root in self.roots for v in _factors(root)),
        ]

    def _choose_saved(self) -> list[Value]:
        """What backward reads of forward, and does not get by a few additions and products."""
        new = _flat(self.new)
        saved: dict[Value, None] = {}

        def save_for(values: Iterable[Value], sources: set[Value]) -> None:
            """Make sure that values can be had from sources and from what is saved."""
            known: dict[Value, bool] = {}
            for target in values:
                for value in needed([target], sources):
                    if value in known:
                        continue
                    if value in sources or value in saved or not value.reads:
                        known[value] = True
                    elif value.is_barrier:
                        known[value] = False
                    elif value.is_costly:
                        saved[value] = None
                        known[value] = True
                    else:
                        known[value] = all(known[arg] for arg in value.args)
                if not known[target]:
                    saved[target] = None
                    known[target] = True

        old = {*_flat(self.state), *_flat(self.inputs)}
        outputs = self.backward_outputs()
        reads = []
        for value in needed(outputs):
            if "gradient" in value.reads:
                reads += [arg for arg in value.args if "gradient" not in arg.reads]
        for value in outputs:
            if "gradient" not in value.reads:  # backward makes the copy, so its source is saved
                reads += value.args if value.op == "copy" else [value]
        save_for(reads, old | set(new))
        for value in new:  # the states themselves are computed again
            if value.is_barrier or value.is_costly:
                save_for([value], old)
            else:
                save_for(value.args, old)
        # What was saved on the way to something that is now saved itself is not read.
        behind = set(needed(new, set(saved)))
        behind |= set(needed(outputs, {*saved, *new, *_flat(self.state)}))
        return [value for value in saved if value in behind]


def _flat(groups: Iterable[Sequence[Value]]) -> list[Value]:
    return [value for group in groups for value in group]


def _factors(root: Root) -> list[Value]:
    return [*root.left, *(root.right or [])]


def _fuse(make: Values, outputs: Sequence[Value]) -> dict[Value, Value]:
    """Turn sums with products into products that add to what is there.

    Of the terms of a sum, products of the latest kind come last (inputs before states before
    gradients), so that what the input alone says is one value, computed for a whole tile.
    """
    live = needed(outputs)
    users: dict[Value, int] = {}
    for value in live:
        for arg in value.args:
            users[arg] = users.get(arg, 0) + 1
    wanted = set(outputs)
    done: dict[Value, Value] = {}

    def alone(value: Value) -> bool:
        return users.get(value, 0) == 1 and value not in wanted

    def is_term(value: Value) -> bool:
        return value.op == "product" and alone(value)

    def terms(value: Value) -> list[Value]:
        found: list[Value] = []
        stack = [value]
        while stack:
            term = stack.pop()
            splits = term.op == "add" and term.width > 1 and (term is value or alone(term))
            if splits and all(arg.width == term.width for arg in term.args):
                stack += reversed(term.args)
            else:
                found.append(term)
        return found

    def rank(value: Value) -> int:
        return 2 if "gradient" in value.reads else 1 if "state" in value.reads else 0

    def added(parts: list[Value], width: int) -> Value:
        """The sum of terms, which are not yet fused."""
        products = [term for term in parts if is_term(term)]
        latest = max(map(rank, products), default=-1)
        products = [term for term in products if rank(term) == latest]
        rest = [term for term in parts if term not in products]
        start = None
        if any(map(is_term, rest)):
            early = [term for term in rest if rank(term) < latest]
            start = added(early, width)
            rest = [term for term in rest if term not in early]
        for term in sorted(rest, key=rank):
            value = fuse(term)
            start = value if start is None else make.make("add", (start, value), width)
        if products and start is not None and start.op in ("in", "number", "scalar"):
            start = make.exactly("copy", (start,), width, "start")
        if not products:
            assert start is not None
            return start
        sections = [
            (fuse(section), matrix)
            for term in products
            for section, matrix in zip(term.args, term.extra[1], strict=True)
        ]
        return make.product(start, sections, width)

    def fuse(value: Value) -> Value:
        if value not in done:
            parts = terms(value) if value.op == "add" else []
            if any(map(is_term, parts)):
                done[value] = added(parts, value.width)
            elif not value.args:
                done[value] = value
            else:
                args = [fuse(arg) for arg in value.args]
                done[value] = make.exactly(value.op, args, value.width, value.extra)
        return done[value]

    inside = {value for value in live if not (value.op in ("add", "product") and alone(value))}
    for value in live:
        if value in inside:
            fuse(value)
    for value in outputs:
        fuse(value)
    return done
