"""What is kept for the backward pass: every state, a state now and then, or the last one only.

- *stored*: whatever the backward pass needs of every step. In the reference this is plain autograd.
- *chunked*: the states at the start of every chunk of time; a chunk is walked again when its
  gradient is due. Memory grows with T / K + K for chunks of K steps.
- *reversible*: the end states only, for recurrences whose steps can be undone bit for bit.

The outputs are the same bits in stored and chunked. In the reference, weight gradients are summed
within a chunk first, so that they differ from stored ones in the last places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import choice, message
from anharmonic.ops.dispatch import transformed
from anharmonic.ops.replay import Plan, replayed
from anharmonic.ops.steps import TILE, Steps, Walk, walk_stack

GRID_LIMIT = 2.0**10
"""States of the reversible policy are smaller (GRID_LIMIT in csrc/unicornn.h)."""
POLICIES = ("auto", "stored", "chunked", "reversible")
STORED_WITH_OUTPUT = 2**30
"""Bytes of states that auto stores where the caller holds the whole output anyway."""
STORED_WITHOUT_OUTPUT = 8 * 2**20
"""Bytes of states that auto stores where only the end is asked for."""


def checked_policy(memory: str, *, invertible: bool, bidirectional: bool) -> str:
    """Checks the name of a policy and that it fits the recurrence; returns it.

    Raises:
        ValueError: If there is no such policy, or it is reversible and the steps cannot be undone.

    Example:
        >>> checked_policy("chunked", invertible=False, bidirectional=True)
        'chunked'
    """
    choice("memory", memory, POLICIES)
    if memory == "reversible" and (bidirectional or not invertible):
        raise ValueError(
            message(
                "memory='reversible' needs UnICORNN in one direction, or "
                "MultiLayerNeuralOscillator likewise with tanh and symplectic Euler: "
                "steps that can be undone",
                "bidirectional=True" if invertible else "another model",
                "use memory='chunked'",
            )
        )
    return memory


def off_grid(found: str) -> OverflowError:
    """The error of a state that leaves the grid of the reversible policy.

    Args:
        found: What was found.

    Example:
        >>> str(off_grid("a state of 5000"))[:60]
        "with memory='reversible' states must stay within the grid, |"
    """
    return OverflowError(
        message(
            f"with memory='reversible' states must stay within the grid, |y|, |z| < {GRID_LIMIT:g}",
            found,
            "use a smaller dt, scale the input, or take memory='chunked'",
        )
    )


def resolve(memory: str, whole: bool, stored_bytes: int) -> str:
    """Turns "auto" into "stored" or "chunked"; other policies stay.

    Args:
        memory: One of ``POLICIES``.
        whole: Whether the whole output is asked for (the caller then holds as much anyway).
        stored_bytes: What storing all states takes.

    Example:
        >>> resolve("auto", True, 10**9), resolve("auto", False, 10**9)
        ('stored', 'chunked')
    """
    if memory != "auto":
        return memory
    limit = STORED_WITH_OUTPUT if whole else STORED_WITHOUT_OUTPUT
    return "stored" if stored_bytes <= limit else "chunked"


def state_bytes(steps: int, y0: Tensor) -> int:
    """Bytes of y and z of all layers [L, B, H] at all steps.

    Example:
        >>> state_bytes(100, torch.zeros(2, 8, 32))
        409600
    """
    return 2 * steps * y0.numel() * y0.element_size()


def walk_chain(
    walk: Walk,
    x: Tensor,
    weights: Sequence[tuple[Any, ...]],
    y0: Tensor,
    z0: Tensor,
    *,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
    undo: Walk | None = None,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Walks a stack in one direction under a memory policy: the body of every reference chain.

    Args:
        walk: Runs one layer over a few steps.
        x: Input.
        weights: What ``walk`` gets for each layer: tensors, numbers or None.
        y0: Initial y of every layer.
        z0: Initial z of every layer.
        lengths: Valid steps of each sequence; beyond them states stand still and outputs are zero.
        masks: One factor per layer but the last, multiplied to its output at every step.
        elapsed: Time since the previous sample, in walking order.
        whole: Whether the outputs are wanted.
        memory: The policy; "reversible" needs ``undo``.
        undo: Runs one layer back: takes the states after these steps, returns those before.

    Shape:
        x [T, B, F]; y0, z0 [L, B, H]; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns outputs [T, B, H] or None, final y and z [L, B, H].
    """
    valid = None
    if lengths is not None:
        running = torch.arange(len(x), device=x.device)[:, None] < lengths.to(x.device)
        valid = running[:, :, None]
    steps = Steps(x, elapsed, valid)
    policy = resolve(memory, whole, state_bytes(len(x), y0))
    reason = transformed()
    if policy == "chunked" and (not torch.is_grad_enabled() or (reason and memory == "auto")):
        policy = "stored"  # nothing is kept at all, or the graph is not ours to build
    if policy == "stored":
        return walk_stack(walk, weights, masks, steps, y0, z0, whole)
    if reason:
        raise ValueError(
            message(f"memory={policy!r} needs plain autograd", reason, "use memory='stored'")
        )
    length = TILE if undo is not None else chunk_length(len(x))
    return replayed(Plan(walk, undo, masks, whole, length), steps, y0, z0, weights)


def chunk_length(steps: int) -> int:
    """Steps of a chunk, whole tiles: near sqrt(T) / 2, since a graph step keeps about four states.

    Example:
        >>> chunk_length(100), chunk_length(1_000_000)
        (64, 512)
    """
    return TILE * max(1, round(math.sqrt(steps) / 2 / TILE))
