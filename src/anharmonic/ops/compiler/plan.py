"""Plan a step: fuse sums of products and choose the values saved for the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anharmonic.ops.compiler.sections import Root, Sections
from anharmonic.ops.compiler.values import Value, Values, flat, needed


class Plan:
    """The values of a step, fused and ready to be written as C.

    ``state``, ``inputs``, ``grad_new``, ``new``, ``grad_state``, ``grad_inputs`` and ``roots`` are
    those of ``Sections``. The gradients of inputs that were not requested are empty. ``saved`` are
    the values that the forward pass saves for the backward pass.
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
        outputs = [*flat(sections.new), *flat(sections.grad_state), *flat(wanted)]
        outputs += [v for root in sections.roots for v in root.factors]
        fused = _fuse(self._values, outputs)
        taken: set[Value] = set()

        def own(groups: Sequence[Sequence[Value]], backward: bool) -> list[list[Value]]:
            """Return the fused values; each output is a distinct value.

            A backward output that depends on no gradient may be saved by the forward pass, so it
            is copied.
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

    def backward_outputs(self) -> list[Value]:
        """Return the values that the backward pass computes."""
        return [
            *flat(self.grad_state),
            *flat(self.grad_inputs),
            *(v for root in self.roots for v in root.factors),
        ]

    def _choose_saved(self) -> list[Value]:
        """Choose the forward values that the backward pass reads and cannot cheaply recompute."""
        new = flat(self.new)
        saved: dict[Value, None] = {}

        def save_for(values: Iterable[Value], sources: set[Value]) -> None:
            """Save more values until ``values`` follow from the sources and the saved values."""
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

        old = {*flat(self.state), *flat(self.inputs)}
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
        # A value is not read if it was saved only to compute one that is now saved itself.
        behind = set(needed(new, set(saved)))
        behind |= set(needed(outputs, {*saved, *new, *flat(self.state)}))
        return [value for value in saved if value in behind]


def _fuse(make: Values, outputs: Sequence[Value]) -> dict[Value, Value]:
    """Turn sums with products into products that accumulate onto a value.

    Products are ordered by the kind they depend on: inputs, then states, then gradients.
    Everything that depends on the input alone is thus one value, computed for a whole tile.
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
        """Return the sum of terms that are not yet fused."""
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

    for value in live:
        if value.op not in ("add", "product") or not alone(value):
            fuse(value)
    for value in outputs:
        fuse(value)
    return done
