"""The reference backend: a recurrence in plain PyTorch, step by step.

Time is cut into tiles, and all layers of a stack process a tile before the next one. The tiles do
not depend on the memory policy, so every product has the same operands.

With ``memory="stored"`` autograd keeps the graph of every step. With "chunked" and "reversible" the
backward pass recomputes each chunk of time, the last one first. Weight gradients are then summed
within a chunk first, and differ from those of "stored" in the last digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_map_only, tree_unflatten

from anharmonic._checks import message
from anharmonic.ops.backend import in_autocast, resolve, state_bytes, transformed
from anharmonic.ops.equation import Equation

TILE = 64
"""Number of steps in a tile, which is also the unit of a chunk."""
_scanning = False
"""Whether recurrences run as scans; see ``as_scan``."""


class Steps(NamedTuple):
    """A time interval: x [n, B, F], elapsed [n, B] or None, valid [n, B, 1] or None."""

    x: Tensor
    elapsed: Tensor | None
    valid: Tensor | None

    def part(self, start: int, length: int) -> Steps:
        """Return up to ``length`` steps from ``start`` on."""
        stretch = slice(start, start + length)
        return Steps(*(None if t is None else t[stretch] for t in self))  # type: ignore[arg-type]

    def gaps(self) -> Sequence[Tensor | None]:
        """Return the elapsed time of every step, [B, 1] each, or None for even sampling."""
        if self.elapsed is None:
            return [None] * len(self.x)
        return self.elapsed.unsqueeze(-1).unbind(0)

    def running(self) -> Sequence[Tensor | None]:
        """Return the running sequences at every step, [B, 1] each, or None if all run."""
        return [None] * len(self.x) if self.valid is None else self.valid.unbind(0)


def run(
    equation: Equation,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    *,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    return_sequence: bool,
    memory: str,
) -> tuple[Any, ...]:
    """Run a stack in one direction under a memory policy.

    Args:
        equation: The model.
        x: Input.
        weights: The named tuple of every layer.
        state: Initial variables of every layer.
        lengths: Valid steps of each sequence; afterwards states stay constant and outputs are zero.
        masks: One factor per layer except the last, multiplied to its output at every step.
        elapsed: Time since the previous sample, in processing order.
        return_sequence: Whether to return the outputs.
        memory: The policy.

    Shape:
        x [T, B, F]; state [L, B, H] each; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns outputs [T, B, H] or None, and the variables of the final state.
    """
    valid = None if lengths is None else within(x, lengths)
    steps, start = Steps(x, elapsed, valid), equation.State(*state)
    on_grid = memory == "reversible"
    if on_grid:
        equation, weights = equation.on_grid(weights)  # type: ignore[attr-defined]
        start = equation.to_grid(start)  # type: ignore[attr-defined]
    equations = [equation.of_layer(k) for k in range(len(weights))]
    # The length of a scan is unknown.
    policy = (
        "stored" if _as_scan(x) else resolve(memory, return_sequence, state_bytes(len(x), start))
    )
    reason = transformed()
    if policy == "chunked" and (not torch.is_grad_enabled() or (reason and memory == "auto")):
        policy = "stored"  # nothing is saved, or a transform builds the graph
    stack = Stack(equations, masks, return_sequence, on_grid)
    if policy == "chunked" and not reason:
        unfit = _why_not_again(stack, weights, steps, start)
        if unfit and memory == "chunked":
            raise ValueError(
                message(
                    "memory='chunked' computes steps again, from their arguments alone", unfit,
                    "use memory='stored'",
                )
            )  # fmt: skip
        policy = "stored" if unfit else policy
    if policy == "stored":
        with without_autocast(x):
            output, end = stack.walk(weights, steps, start)
        return output, *(v.to(before.dtype) for v, before in zip(end, state, strict=True))
    if reason:
        raise ValueError(
            message(f"memory={policy!r} needs plain autograd", reason, "use memory='stored'")
        )
    # Tensors among the equation's numbers get gradients, like the weights.
    flat, form = tree_flatten((list(weights), [_tensor_fields(own) for own in equations]))
    plan = _Replay(stack, TILE if on_grid else chunk_length(len(x)), form, equation.State)
    output, *end = _Replayed.apply(plan, valid, x, elapsed, *start, *flat)  # type: ignore[no-untyped-call]
    return output, *(v.to(before.dtype) for v, before in zip(end, state, strict=True))


def within(x: Tensor, lengths: Tensor) -> Tensor:
    """Whether each step of x [T, B, F] lies within its sequence, [T, B, 1]."""
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    return (steps < lengths.to(x.device))[:, :, None]


def without_autocast(x: Tensor) -> Any:
    """Switch autocast off for x's device, because rounding errors accumulate over time."""
    if in_autocast(x):
        return torch.autocast(x.device.type, enabled=False)
    return contextlib.nullcontext()


def chunk_length(steps: int) -> int:
    """Return the steps of a chunk in full tiles, near sqrt(T) / 2 (a step has about four states).

    Example:
        >>> chunk_length(100), chunk_length(1_000_000)
        (64, 512)
    """
    return TILE * max(1, round(math.sqrt(steps) / 2 / TILE))


def _tensor_fields(equation: Equation) -> dict[str, Tensor]:
    """Return the numbers of an equation that are tensors, by name."""
    if not dataclasses.is_dataclass(equation):
        return {}
    return {name: value for name, value in vars(equation).items() if isinstance(value, Tensor)}


def _with_numbers(equations: Sequence[Any], numbers: Sequence[dict[str, Tensor]]) -> list[Any]:
    """Return equations in which tensors take the place of some numbers."""
    return [
        dataclasses.replace(own, **changes) if changes else own
        for own, changes in zip(equations, numbers, strict=True)
    ]


def _why_not_again(stack: Stack, weights: Sequence[Any], steps: Steps, state: Any) -> str | None:
    """Return why the backward pass cannot compute the steps again; None if it can."""
    numbers = [_tensor_fields(own) for own in stack.equations]
    first, weights, state, numbers = _detached((steps.part(0, 1), list(weights), state, numbers))
    equations = _with_numbers(stack.equations, numbers)
    random = None if torch.compiler.is_compiling() else torch.get_rng_state()
    with without_autocast(first.x):
        _, end = stack._replace(equations=equations).walk(weights, first, state)
    if random is not None and not torch.equal(random, torch.get_rng_state()):
        torch.set_rng_state(random)
        return "a step that draws random numbers"
    if any(variable.requires_grad for variable in end):
        return "a step that reads another tensor that needs a gradient"
    return None


def _detached(tensors: Any) -> Any:
    return tree_map_only(Tensor, torch.Tensor.detach, tensors)


# ---- walking -------------------------------------------------------------------------------------
class Stack(NamedTuple):
    """Layers that process tiles of time together.

    Attributes:
        equations: One per layer.
        masks: Factors between layers, or None.
        return_sequence: Whether to return the outputs.
        on_grid: Whether states are on the grid of the reversible policy.
    """

    equations: Sequence[Equation]
    masks: Sequence[Tensor] | None
    return_sequence: bool
    on_grid: bool = False

    def walk(
        self, weights: Sequence[Any], steps: Steps, state: Any, *, back: bool = False
    ) -> tuple[Tensor | None, Any]:
        """Process ``steps``, or (``back``) recover the state before them.

        The state's variables are [L, B, H], the output is [n, B, H].
        """
        kind: Any = type(state)
        states = [kind._make(layer) for layer in zip(*(v.unbind(0) for v in state), strict=True)]
        tile, outputs = self.equations[0].tile, []
        # (The length of an exported graph is unknown; len(...) would fix it.)
        whole = _as_scan(steps.x) or tile is None
        for start in (0,) if whole else range(0, len(steps.x), tile or 1):
            part = steps if whole else steps.part(start, tile or 1)
            levels = [part.x]
            for k, (equation, w) in enumerate(zip(self.equations, weights, strict=True)):
                before = states[k]
                if back:
                    output, states[k] = _walk_back(equation, w, levels, before, part)
                elif self.on_grid:
                    output, states[k] = _walk_on_grid(equation, w, levels, before, part)
                else:
                    output, states[k] = walk(equation, w, levels, before, part)
                levels.append(self.hand_up(k, output, before, part.valid))
            if self.return_sequence:
                outputs.append(levels[-1])
        end = kind._make(torch.stack(variable) for variable in zip(*states, strict=True))
        return torch.cat(outputs) if self.return_sequence else None, end

    def hand_up(self, k: int, output: Tensor, before: Any, valid: Tensor | None) -> Tensor:
        """Return the input of the layer above k, or the stack's output for the top layer.

        ``before`` is the state of layer k before these steps.
        """
        is_top = k == len(self.equations) - 1
        if not is_top:
            output = self.equations[k].passed_up(output, before)
        if valid is not None:
            output = torch.where(valid, output, torch.zeros_like(output))
        return output if self.masks is None or is_top else output * self.masks[k]


def walk(
    equation: Equation, weights: Any, levels: Sequence[Tensor], state: Any, steps: Steps
) -> tuple[Tensor, Any]:
    """Run one layer over a few steps; return outputs [n, B, H] and the final state."""
    drive, w, dt = _prepared(equation, weights, levels)
    if _as_scan(levels[0]):
        return _scanned(equation, drive, w, dt, state, steps)
    outputs = []
    for u, gap, valid in zip(_unbound(drive), steps.gaps(), steps.running(), strict=True):
        new = equation.step(u, state, w, dt if gap is None else dt * gap)
        state = type(state)._make(map(keep, [valid] * len(state), new, state))
        outputs.append(state[0])
    return torch.stack(outputs), state


def _walk_on_grid(
    equation: Any, weights: Any, levels: Sequence[Tensor], state: Any, steps: Steps
) -> tuple[Tensor, Any]:
    """``walk`` with states on the grid of the reversible policy."""
    drive, w, dt = _prepared(equation, weights, levels)
    dtype, states = levels[-1].dtype, []
    outputs = [state[0].to(dtype)]
    for u, gap, valid in zip(_unbound(drive), steps.gaps(), steps.running(), strict=True):
        new = equation.step_on_grid(u, state, outputs[-1], w, dt if gap is None else dt * gap)
        state = type(state)._make(map(keep, [valid] * len(state), new, state))
        states.append(state)
        outputs.append(state[0].to(dtype))
    equation.check_on_grid(states)
    return torch.stack(outputs[1:]), state


def _walk_back(
    equation: Any, weights: Any, levels: Sequence[Tensor], state: Any, steps: Steps
) -> tuple[Tensor, Any]:
    """Recover the state before these steps on the grid, bit for bit."""
    drive, w, dt = _prepared(equation, weights, levels)
    outputs = []
    rows = list(zip(_unbound(drive), steps.gaps(), steps.running(), strict=True))
    for u, gap, valid in reversed(rows):
        outputs.append(state[0].to(levels[-1].dtype))
        old = equation.step_back_on_grid(u, state, w, dt if gap is None else dt * gap)
        state = type(state)._make(map(keep, [valid] * len(state), old, state))
    return torch.stack(outputs[::-1]), state


def _prepared(equation: Equation, weights: Any, levels: Sequence[Tensor]) -> tuple[Any, Any, Any]:
    """Return the drive of a time interval, what its steps have in common, and their size."""
    drive = equation.drive(equation.source(levels), weights)
    return drive, equation.prepare(weights), equation.step_size(weights)


def _unbound(drive: Any) -> Iterator[Any]:
    """Return the drive of every step."""
    if isinstance(drive, Tensor):
        yield from drive.unbind(0)
    else:
        yield from map(type(drive)._make, zip(*(part.unbind(0) for part in drive), strict=True))


def _scanned(
    equation: Equation, drive: Any, w: Any, dt: Any, state: Any, steps: Steps
) -> tuple[Tensor, Any]:
    """Run the steps as one loop of the exported graph, for any number of steps."""
    from torch._higher_order_ops.scan import scan

    kind, size, uneven = type(state), len(state), steps.elapsed is not None
    # `prepare` may return two views of one weight, which would count as aliases.
    w = tree_map_only(Tensor, torch.clone, w)
    xs = [drive] if isinstance(drive, Tensor) else list(drive)
    parts = len(xs)
    if steps.elapsed is not None:
        xs.append(steps.elapsed.unsqueeze(-1))
    if steps.valid is not None:
        xs.append(steps.valid)

    def one(before: tuple[Tensor, ...], x: list[Tensor]) -> tuple[Any, Tensor]:
        u = x[0] if isinstance(drive, Tensor) else type(drive)._make(x[:parts])
        new = equation.step(u, kind._make(before), w, dt * x[parts] if uneven else dt)
        valid = x[-1] if steps.valid is not None else None
        after = tuple(map(keep, [valid] * size, new, before))
        # scan requires that its results do not alias the carried state.
        return tuple(t.clone() for t in after), after[0].clone()

    end, output = scan(one, tuple(t.clone() for t in state), [t.clone() for t in xs])
    return output, kind._make(end)


def scanning() -> bool:
    """Whether recurrences run as scans."""
    return _scanning


def _as_scan(x: Tensor) -> bool:
    """Whether to run a scan over x: in ``as_scan``, or for export with a free length."""
    free = torch.compiler.is_exporting() and isinstance(x.shape[0], torch.SymInt)
    return _scanning or free


@contextlib.contextmanager
def as_scan() -> Iterator[None]:
    """Run recurrences within the block as ``torch`` scans, loops that ``torch.export`` keeps.

    The backend must be "reference", whose steps are visible to PyTorch.
    """
    global _scanning
    before, _scanning = _scanning, True
    try:
        yield
    finally:
        _scanning = before


def keep(valid: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """Return the new state for running sequences, the old one beyond a sequence's end.

    Example:
        >>> keep(None, torch.ones(1), torch.zeros(1))
        tensor([1.])
    """
    return new if valid is None else torch.where(valid, new, old)


# ---- computing again in the backward pass -------------------------------------------------------
class _Replay(NamedTuple):
    """A stack that runs in chunks without a graph; ``form`` is that of its flattened tensors."""

    stack: Stack
    length: int
    form: TreeSpec
    state: Any

    @property
    def variables(self) -> int:
        return len(self.state._fields)

    def walk(
        self, flat: Sequence[Any], steps: Steps, state: Sequence[Tensor], *, back: bool = False
    ) -> tuple[Tensor | None, Any]:
        """Run one chunk with flattened weights and numbers."""
        weights, numbers = tree_unflatten(flat, self.form)
        stack = self.stack._replace(equations=_with_numbers(self.stack.equations, numbers))
        if back:
            stack = stack._replace(return_sequence=False)
        # Switch autocast off in both passes, as it may be on in only one.
        with torch.autocast(steps.x.device.type, enabled=False):
            return stack.walk(weights, steps, self.state(*state), back=back)


class _Replayed(torch.autograd.Function):
    """A stack as one node of the graph, whose backward pass recomputes chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: _Replay,
        valid: Tensor | None,
        x: Tensor,
        elapsed: Tensor | None,
        *state_and_weights: Any,
    ) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        state: Sequence[Tensor] = state_and_weights[: plan.variables]
        flat = state_and_weights[plan.variables :]
        ctx.plan, ctx.valid = plan, valid
        ctx.save_for_backward(*(t if isinstance(t, Tensor) else None for t in (x, elapsed, *flat)))
        ctx.numbers = [None if isinstance(t, Tensor) else t for t in flat]
        ctx.starts, outputs = [], []
        for start in range(0, len(x), plan.length):
            if not plan.stack.on_grid:
                ctx.starts.append([variable.clone() for variable in state])
            part = Steps(x, elapsed, valid).part(start, plan.length)
            output, state = plan.walk(flat, part, state)
            if output is not None:
                outputs.append(output)
        if plan.stack.on_grid:
            ctx.end = [variable.clone() for variable in state]
        return torch.cat(outputs) if plan.stack.return_sequence else None, *state

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, *grad_end: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        plan: _Replay = ctx.plan
        if (
            torch.is_grad_enabled()
        ):  # create_graph=True; a result without a graph would go unnoticed
            raise RuntimeError(
                message(
                    "second derivatives need every state",
                    "create_graph=True with states computed again",
                    "make the layer with memory='stored'",
                )
            )
        tensors: list[Any] = [None if t is None else t.detach() for t in ctx.saved_tensors]
        x, elapsed, *saved = tensors
        x_needs, elapsed_needs, *needed = ctx.needs_input_grad[2:]
        flat_needs = needed[plan.variables :]
        flat = [n if t is None else t for t, n in zip(saved, ctx.numbers, strict=True)]
        leaves = [t.requires_grad_() for t, needs in zip(flat, flat_needs, strict=True) if needs]
        sums: list[Any] = [None] * len(leaves)
        grad_x = torch.empty_like(x) if x_needs else None
        grad_elapsed = torch.empty_like(elapsed) if elapsed_needs else None
        grad_state: Sequence[Tensor | None] = grad_end
        state = ctx.end if plan.stack.on_grid else ctx.starts[-1]
        for start in reversed(range(0, len(x), plan.length)):
            chunk = slice(start, start + plan.length)
            part: Any = Steps(x, elapsed, ctx.valid).part(start, plan.length)
            if plan.stack.on_grid:
                _, state = plan.walk(flat, part, state, back=True)
            else:
                state = ctx.starts[start // plan.length]
            inputs = [variable.requires_grad_() for variable in state]
            inputs += [part.x.requires_grad_()] if x_needs else []
            inputs += [part.elapsed.requires_grad_()] if elapsed_needs else []
            with torch.enable_grad(), torch.autocast(x.device.type, enabled=False):
                output, end = plan.walk(flat, part, state)
                wanted = (None if grad_output is None else grad_output[chunk], *grad_state)
                pairs = [p for p in zip((output, *end), wanted, strict=True) if p[1] is not None]
                ends, end_grads = zip(*pairs, strict=True)
                grads = list(
                    torch.autograd.grad(ends, [*inputs, *leaves], end_grads, materialize_grads=True)
                )
            grad_state = [grads.pop(0) for _ in state]
            if grad_x is not None:
                grad_x[chunk] = grads.pop(0)
            if grad_elapsed is not None:
                grad_elapsed[chunk] = grads.pop(0)
            sums = [g if s is None else s + g for s, g in zip(sums, grads, strict=True)]
            state = [variable.detach() for variable in state]
        grad_of = iter(sums)
        flat_grads = [next(grad_of) if needs else None for needs in flat_needs]
        return None, None, grad_x, grad_elapsed, *grad_state, *flat_grads
