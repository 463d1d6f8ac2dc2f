"""What is saved for the backward pass: every state, a state now and then, or the last one only.

- *stored*: whatever the backward pass needs of every step. In the reference this is plain autograd.
- *chunked*: the states at the start of every chunk of time; a chunk is walked again when its
  gradient is due. Memory grows with T / K + K for chunks of K steps.
- *reversible*: the end states only, for recurrences whose steps can be undone bit for bit.

The outputs are the same bits in stored and chunked. In the reference, weight gradients are summed
within a chunk first, so that they differ from stored ones in the last places.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from anharmonic._checks import choice, message, require

GRID_LIMIT = 2.0**10
"""States of the reversible policy are smaller (GRID_LIMIT in csrc/unicornn.h)."""
POLICIES = ("auto", "stored", "chunked", "reversible")
STORED_WITH_OUTPUT = 2**30
"""Bytes of states that auto stores where the caller holds all outputs anyway."""
STORED_WITHOUT_OUTPUT = 8 * 2**20
"""Bytes of states that auto stores where only the end is asked for."""


def checked_policy(memory: str, *, invertible: bool, bidirectional: bool) -> str:
    """Check the name of a policy and that it fits the recurrence; return it."""
    choice("memory", memory, POLICIES)
    if memory == "reversible":
        advice = "use memory='chunked'"
        require(
            invertible, "memory", memory,
            "another policy for this model (steps that can be undone: those of UnICORNN, and of "
            "MultiLayerNeuralOscillator with tanh and symplectic Euler)", advice,
        )  # fmt: skip
        require(not bidirectional, "bidirectional", True, "False with memory='reversible'", advice)
    return memory


def off_grid(found: str) -> OverflowError:
    """Return the error of a state that leaves the grid of the reversible policy."""
    return OverflowError(
        message(
            f"with memory='reversible' states must stay within the grid, |y|, |z| < {GRID_LIMIT:g}",
            found,
            "use a smaller dt, scale the input, or take memory='chunked'",
        )
    )


def resolve(memory: str, return_sequence: bool, stored_bytes: int) -> str:
    """Turns "auto" into "stored" or "chunked"; other policies stay.

    Args:
        memory: One of ``POLICIES``.
        return_sequence: Whether the output at all steps is asked for (the caller then holds as
            much anyway).
        stored_bytes: What storing all states takes.

    Example:
        >>> resolve("auto", True, 10**9), resolve("auto", False, 10**9)
        ('stored', 'chunked')
    """
    if memory != "auto":
        return memory
    limit = STORED_WITH_OUTPUT if return_sequence else STORED_WITHOUT_OUTPUT
    return "stored" if stored_bytes <= limit else "chunked"


def state_bytes(steps: int, state: Sequence[Tensor]) -> int:
    """Bytes of a state, all layers [L, B, H] of each variable, at all steps.

    Example:
        >>> import torch
        >>> state_bytes(100, (torch.zeros(2, 8, 32), torch.zeros(2, 8, 32)))
        409600
    """
    return steps * sum(variable.numel() * variable.element_size() for variable in state)
