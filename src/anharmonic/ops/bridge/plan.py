"""How a call of the C library is cut: blocks of batch rows, tiles of time, and what is saved.

Nothing here depends on the number of threads, and only what is saved on the memory policy: every
sum runs over the same tiles, so that neither changes a bit of the result. Plain integer arithmetic,
so that it also works on the symbolic sizes of a compiler. A call is planned once, before its
operator, and forward and backward read the same ``Plan``.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from anharmonic.ops.memory import resolve

ROW_UNIT = 16
"""Saved rows are padded to a multiple of this (KEPT_UNIT in csrc/chain.h)."""
_BLOCK_ROWS = 8
_MOST_BLOCKS = 32
_MOST_GRADIENT_BYTES = 64 * 2**20
_TILE_ELEMENTS = 16384
_LONGEST_TILE = 64

NOTHING, ALL, CHECKPOINTS, END = range(4)
"""What is saved between forward and backward (enum an_keep in csrc/anharmonic.h)."""


class Sizes(NamedTuple):
    """Sizes of a call; `activations` counts what a stored walk saves per neuron and step."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    layers: int
    real_bytes: int
    activations: int


class Saved(NamedTuple):
    """What is saved: a mode, the steps between saved states, and the bytes of all that."""

    mode: int
    checkpoint: int
    bytes: int


class Plan(NamedTuple):
    """A call in integers, which is how operators carry it.

    Attributes:
        model: One of the models of ``call``.
        skip: S of UnICORNN's residual stacking; 0 for none.
        return_sequence: Whether the output is wanted.
        grid: Whether states live on the fixed-point grid.
        block: Batch rows that walk together; 0 for a call that is planned when it runs.
        tile: Steps that are processed together.
        keep: What is saved between forward and backward (NOTHING, ALL, CHECKPOINTS or END).
        checkpoint: Steps between saved states.
        saved_bytes: The bytes of all that.
    """

    model: int
    skip: int
    return_sequence: int
    grid: int
    block: int
    tile: int
    keep: int
    checkpoint: int
    saved_bytes: int


def plan_call(
    model: int, sizes: Sizes, memory: str | None, return_sequence: bool, skip: int, grid: bool
) -> Plan:
    """Plans a call; ``memory`` is the policy, None where there is no backward pass.

    Example:
        >>> plan_call(3, Sizes(1000, 32, 1, 128, 1, 4, 1), "auto", True, 0, False)[4:8]
        (8, 16, 1, 16)
    """
    row = (sizes.hidden + ROW_UNIT - 1) // ROW_UNIT * ROW_UNIT
    block = block_rows(sizes)
    fitting = _TILE_ELEMENTS // (block * row)  # as many steps as keep a tile of states in cache
    tile = min(max(fitting, 8), _LONGEST_TILE, sizes.steps)
    saved = Saved(NOTHING, tile, 0)
    if memory is not None:
        policy = "stored" if memory == "auto" else memory
        saved = saved_states(sizes, policy, row, tile, grid)
        if memory == "auto" and resolve(memory, return_sequence, saved.bytes) == "chunked":
            saved = saved_states(sizes, "chunked", row, tile, grid)
    return Plan(model, skip, int(return_sequence), int(grid), block, tile, *saved)


plan_again = functools.lru_cache(maxsize=256)(plan_call)
"""``plan_call``, which remembers its last plans: a training loop makes the same calls again."""


def block_rows(sizes: Sizes) -> int:
    """Batch rows that walk together, on one thread; each block sums weight gradients of its own.

    Example:
        >>> [block_rows(Sizes(100, batch, 1, 32, 1, 4, 1)) for batch in (1, 8, 32, 1000)]
        [1, 4, 8, 32]
    """
    batch = sizes.batch
    rows = min(_BLOCK_ROWS, (batch + 1) // 2)
    if batch > _MOST_BLOCKS * _BLOCK_ROWS:
        rows = -(-batch // (_MOST_BLOCKS * _BLOCK_ROWS)) * _BLOCK_ROWS
    weights = 5 * sizes.layers * sizes.hidden * (sizes.hidden + sizes.inputs)
    while -(-batch // rows) * weights * sizes.real_bytes > _MOST_GRADIENT_BYTES and rows < batch:
        rows *= 2
    return rows


def saved_states(sizes: Sizes, policy: str, row: int, tile: int, grid: bool) -> Saved:
    """What a policy saves.

    Args:
        sizes: The call.
        policy: "stored", "chunked" or "reversible".
        row: Numbers of a saved row.
        tile: Steps of a tile.
        grid: Whether states are doubles on the grid.

    Example:
        >>> sizes = Sizes(10_000, 1, 1, 16, 1, 4, 1)
        >>> [saved_states(sizes, policy, 16, 64, False).bytes for policy in ("stored", "chunked")]
        [660096, 10112]
    """
    states = 2 * sizes.layers * sizes.batch * row * (8 if grid else sizes.real_bytes)
    if policy == "reversible":
        return Saved(END, sizes.steps, states)
    every = sizes.layers * sizes.batch * row * sizes.activations * sizes.real_bytes
    if policy == "stored":
        count = -(-sizes.steps // tile)
        return Saved(ALL, tile, count * states + sizes.steps * every)
    # Saved are T / K states of 2 numbers; a chunk that is walked again takes K steps of
    # activations, or K / tile states where none are stored: the sum is smallest at these K.
    if sizes.activations:
        best = math.sqrt(2 * sizes.steps / sizes.activations)
    else:
        best = math.sqrt(sizes.steps * tile)
    length = tile * max(1, round(best / tile))
    return Saved(CHECKPOINTS, length, -(-sizes.steps // length) * states)
