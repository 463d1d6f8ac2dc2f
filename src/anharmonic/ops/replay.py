"""A stack walked under a memory policy: with a graph of every step, or walked again when due.

Without every state (``memory="chunked"`` or ``"reversible"``) the backward pass walks each chunk of
time again, the last one first. Weight gradients are summed within a chunk first, and differ from
those of ``"stored"`` in the last places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.dispatch import transformed
from anharmonic.ops.memory import resolve, state_bytes
from anharmonic.ops.recurrence import TILE, Steps, Walk, scanning, walk_stack


def run_chain(
    walk: Walk,
    x: Tensor,
    weights: Sequence[Any],
    state: Any,
    *,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    return_sequence: bool,
    memory: str,
    undo: Walk | None = None,
    tile: int = TILE,
) -> tuple[Any, ...]:
    """Runs a stack in one direction under a memory policy: the body of every reference.

    Args:
        walk: Runs one layer over a few steps.
        x: Input.
        weights: What ``walk`` gets for each layer: a named tuple of tensors, numbers or None.
        state: Initial variables of every layer.
        lengths: Valid steps of each sequence; beyond them states stand still and outputs are zero.
        masks: One factor per layer but the last, multiplied to its output at every step.
        elapsed: Time since the previous sample, in walking order.
        return_sequence: Whether the outputs are wanted.
        memory: The policy; "reversible" needs ``undo``.
        undo: Runs one layer back: takes the state after these steps, returns that before.
        tile: Steps whose input product is made at once.

    Shape:
        x [T, B, F]; state [L, B, H] each; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns outputs [T, B, H] or None, and the variables of the final state.
    """
    valid = None
    if lengths is not None:
        running = torch.arange(x.shape[0], device=x.device)[:, None] < lengths.to(x.device)
        valid = running[:, :, None]
    steps = Steps(x, elapsed, valid)
    stored = scanning()  # whose length is not known
    policy = "stored" if stored else resolve(memory, return_sequence, state_bytes(len(x), state))
    reason = transformed()
    if policy == "chunked" and (not torch.is_grad_enabled() or (reason and memory == "auto")):
        policy = "stored"  # nothing is saved at all, or the graph is not ours to build
    if policy == "stored":
        output, end = walk_stack(walk, weights, masks, steps, state, return_sequence, tile)
        return output, *end
    if reason:
        raise ValueError(
            message(f"memory={policy!r} needs plain autograd", reason, "use memory='stored'")
        )
    length = TILE if undo is not None else chunk_length(len(x))
    flat = [value for weight in weights for value in weight]
    plan = _Replay(
        walk, undo, masks, return_sequence, length, [type(w) for w in weights], type(state)
    )
    return tuple(_Replayed.apply(plan, valid, x, elapsed, *state, *flat))  # type: ignore[no-untyped-call]


def chunk_length(steps: int) -> int:
    """Steps of a chunk, full tiles: near sqrt(T) / 2, since a graph step holds about four states.

    Example:
        >>> chunk_length(100), chunk_length(1_000_000)
        (64, 512)
    """
    return TILE * max(1, round(math.sqrt(steps) / 2 / TILE))


class _Replay(NamedTuple):
    """How a chain is walked without a graph and walked again.

    Attributes:
        walk: Runs one layer over a few steps.
        undo: Runs it back and so finds where a chunk started; None if the starts are saved.
        masks: Factors between layers, or None.
        return_sequence: Whether the outputs are wanted.
        length: Steps of a chunk.
        kinds: The named tuple of every layer's weights.
        state: The named tuple of the state.
    """

    walk: Walk
    undo: Walk | None
    masks: Sequence[Tensor] | None
    return_sequence: bool
    length: int
    kinds: list[Any]
    state: Any

    @property
    def variables(self) -> int:
        return len(self.state._fields)

    def run(
        self,
        walk: Walk,
        flat: Sequence[Any],
        steps: Steps,
        state: Sequence[Tensor],
        return_sequence: bool,
    ) -> tuple[Tensor | None, Any]:
        """Walks one chunk; ``flat`` holds the weights of all layers one after another."""
        values = iter(flat)
        weights = [kind(*(next(values) for _ in kind._fields)) for kind in self.kinds]
        # Autocast may be on in one pass and off in the other: it is off in both.
        with torch.autocast(steps.x.device.type, enabled=False):
            return walk_stack(walk, weights, self.masks, steps, self.state(*state), return_sequence)


class _Replayed(torch.autograd.Function):
    """A chain as one node of the graph, whose backward pass walks chunk by chunk again."""

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
            if plan.undo is None:
                ctx.starts.append([variable.clone() for variable in state])
            part = Steps(x, elapsed, valid).part(start, plan.length)
            output, state = plan.run(plan.walk, flat, part, state, plan.return_sequence)
            if output is not None:
                outputs.append(output)
        if plan.undo is not None:
            ctx.end = [variable.clone() for variable in state]
        return torch.cat(outputs) if plan.return_sequence else None, *state

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, *grad_end: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        plan: _Replay = ctx.plan
        if torch.is_grad_enabled():  # create_graph=True; a result without graph would pass unseen
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
        state = ctx.starts[-1] if plan.undo is None else ctx.end
        for start in reversed(range(0, len(x), plan.length)):
            chunk = slice(start, start + plan.length)
            part: Any = Steps(x, elapsed, ctx.valid).part(start, plan.length)
            if plan.undo is None:
                state = ctx.starts[start // plan.length]
            else:
                _, state = plan.run(plan.undo, flat, part, state, False)
            inputs = [variable.requires_grad_() for variable in state]
            inputs += [part.x.requires_grad_()] if x_needs else []
            inputs += [part.elapsed.requires_grad_()] if elapsed_needs else []
            with torch.enable_grad(), torch.autocast(x.device.type, enabled=False):
                output, end = plan.run(plan.walk, flat, part, state, plan.return_sequence)
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
