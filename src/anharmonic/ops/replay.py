"""A walk without a graph, whose backward pass walks chunk by chunk again: the last chunk first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.steps import Steps, Walk, walk_stack


class Plan(NamedTuple):
    """How a walk is replayed.

    Attributes:
        walk: Runs one layer over a few steps.
        undo: Runs it back and so finds where a chunk started; None if the starts are kept.
        masks: Factors between layers, or None.
        whole: Whether the outputs are wanted.
        length: Steps of a chunk.
    """

    walk: Walk
    undo: Walk | None
    masks: Sequence[Tensor] | None
    whole: bool
    length: int


def replayed(
    plan: Plan, steps: Steps, y: Tensor, z: Tensor, weights: Sequence[tuple[Any, ...]]
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Walks ``steps`` from the states y, z [L, B, H] and keeps no graph of it."""
    sizes = [len(weight) for weight in weights]
    flat = [value for weight in weights for value in weight]
    output, y, z = _Replayed.apply(plan, sizes, steps.valid, steps.x, steps.elapsed, y, z, *flat)  # type: ignore[no-untyped-call]
    return output, y, z


def _walk(
    plan: Plan,
    walk: Walk,
    sizes: list[int],
    flat: Sequence[Any],
    steps: Steps,
    y: Tensor,
    z: Tensor,
    whole: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Walks one chunk; ``flat`` holds the weights of all layers one after another."""
    values = iter(flat)
    weights = [tuple(next(values) for _ in range(size)) for size in sizes]
    # Autocast may be on in one pass and off in the other: it is off in both.
    with torch.autocast(steps.x.device.type, enabled=False):
        return walk_stack(walk, weights, plan.masks, steps, y, z, whole)


class _Replayed(torch.autograd.Function):
    """``replayed`` as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        sizes: list[int],
        valid: Tensor | None,
        x: Tensor,
        elapsed: Tensor | None,
        y: Tensor,
        z: Tensor,
        *flat: Any,
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.plan, ctx.sizes, ctx.valid = plan, sizes, valid
        ctx.save_for_backward(*(t if isinstance(t, Tensor) else None for t in (x, elapsed, *flat)))
        ctx.numbers = [None if isinstance(t, Tensor) else t for t in flat]
        ctx.starts, outputs = [], []
        for start in range(0, len(x), plan.length):
            if plan.undo is None:
                ctx.starts.append((y.clone(), z.clone()))
            part = Steps(x, elapsed, valid).part(start, plan.length)
            output, y, z = _walk(plan, plan.walk, sizes, flat, part, y, z, plan.whole)
            if output is not None:
                outputs.append(output)
        if plan.undo is not None:
            ctx.end = (y.clone(), z.clone())
        return torch.cat(outputs) if plan.whole else None, y, z

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.plan
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
        x_needs, elapsed_needs, _, _, *flat_needs = ctx.needs_input_grad[3:]
        flat = [n if t is None else t for t, n in zip(saved, ctx.numbers, strict=True)]
        leaves = [t.requires_grad_() for t, needs in zip(flat, flat_needs, strict=True) if needs]
        sums: list[Any] = [None] * len(leaves)
        grad_x = torch.empty_like(x) if x_needs else None
        grad_elapsed = torch.empty_like(elapsed) if elapsed_needs else None
        y, z = ctx.starts[-1] if plan.undo is None else ctx.end
        for start in reversed(range(0, len(x), plan.length)):
            chunk = slice(start, start + plan.length)
            part: Any = Steps(x, elapsed, ctx.valid).part(start, plan.length)
            if plan.undo is None:
                y, z = ctx.starts[start // plan.length]
            else:
                _, y, z = _walk(plan, plan.undo, ctx.sizes, flat, part, y, z, False)
            inputs = [y.requires_grad_(), z.requires_grad_()]
            inputs += [part.x.requires_grad_()] if x_needs else []
            inputs += [part.elapsed.requires_grad_()] if elapsed_needs else []
            wanted = (None if grad_output is None else grad_output[chunk], grad_y, grad_z)
            with torch.enable_grad(), torch.autocast(x.device.type, enabled=False):
                reached = _walk(plan, plan.walk, ctx.sizes, flat, part, y, z, plan.whole)
                pairs = [p for p in zip(reached, wanted, strict=True) if p[1] is not None]
                ends, end_grads = zip(*pairs, strict=True)
                grad_y, grad_z, *grads = torch.autograd.grad(
                    ends, [*inputs, *leaves], end_grads, materialize_grads=True
                )
            if grad_x is not None:
                grad_x[chunk] = grads.pop(0)
            if grad_elapsed is not None:
                grad_elapsed[chunk] = grads.pop(0)
            sums = [g if s is None else s + g for s, g in zip(sums, grads, strict=True)]
            y, z = y.detach(), z.detach()
        grad_of = iter(sums)
        flat_grads = [next(grad_of) if needs else None for needs in flat_needs]
        return None, None, None, grad_x, grad_elapsed, grad_y, grad_z, *flat_grads
