"""The loop that every reference recurrence shares: tile by tile through time, all layers together.

A recurrence only knows how to walk one layer over a few steps (a ``Walk``). Time is cut into the
same tiles whatever is kept for the backward pass, so that every product has the same operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

TILE = 64
"""Steps whose input product is made at once."""


class Steps(NamedTuple):
    """A stretch of time: x [n, B, F], elapsed [n, B] or None, valid [n, B, 1] or None."""

    x: Tensor
    elapsed: Tensor | None
    valid: Tensor | None

    def part(self, start: int, length: int) -> Steps:
        """The ``length`` steps (or what is left of them) from ``start`` on."""
        stretch = slice(start, start + length)
        return Steps(
            self.x[stretch],
            None if self.elapsed is None else self.elapsed[stretch],
            None if self.valid is None else self.valid[stretch],
        )

    def gaps(self) -> Sequence[Tensor | None]:
        """The elapsed time of every step, [B, 1] each, or None where time is even."""
        if self.elapsed is None:
            return [None] * len(self.x)
        return self.elapsed.unsqueeze(-1).unbind(0)

    def holds(self) -> Sequence[Tensor | None]:
        """Which sequences still run at every step, [B, 1] each, or None where all do."""
        return [None] * len(self.x) if self.valid is None else self.valid.unbind(0)


Walk = Callable[
    [tuple[Any, ...], list[Tensor], Tensor, Tensor, Steps], tuple[Tensor, Tensor, Tensor]
]
"""``walk(weight, levels, y, z, steps)`` -> outputs [n, B, H], y, z [B, H] after these steps.

``levels[-1]`` is the layer's input, ``levels[-1 - s]`` the input s layers below.
"""


def walk_stack(
    walk: Walk,
    weights: Sequence[tuple[Any, ...]],
    masks: Sequence[Tensor] | None,
    steps: Steps,
    y: Tensor,
    z: Tensor,
    whole: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Walks a stack over ``steps``; y, z [L, B, H]; outputs [n, B, H] if ``whole``, else None."""
    ys, zs = list(y.unbind(0)), list(z.unbind(0))
    outputs = []
    for start in range(0, len(steps.x), TILE):
        tile = steps.part(start, TILE)
        levels = [tile.x]
        for layer, weight in enumerate(weights):
            level, ys[layer], zs[layer] = walk(weight, levels, ys[layer], zs[layer], tile)
            if tile.valid is not None:
                level = torch.where(tile.valid, level, torch.zeros_like(level))
            if masks is not None and layer < len(weights) - 1:
                level = level * masks[layer]
            levels.append(level)
        if whole:
            outputs.append(levels[-1])
    return torch.cat(outputs) if whole else None, torch.stack(ys), torch.stack(zs)


def keep(valid: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """The new state where a sequence still runs, the old one beyond its end.

    Example:
        >>> keep(None, torch.ones(1), torch.zeros(1))
        tensor([1.])
    """
    return new if valid is None else torch.where(valid, new, old)
