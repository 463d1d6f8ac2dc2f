"""A stack of layers tile by tile through time, on a device: what the Triton kernels have in common.

A model's kernels know one layer over one tile (`parts.Model`); here are layers, input products and
what is saved for the backward pass. A tile has the same steps whatever the memory policy, so that
all policies give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic.ops.gpu.parts import (
    Part,
    model_of,
    saved_shape,
    sections_of,
    stored_states,
    tile_steps,
)
from anharmonic.ops.precision import add_product, library_products, operand, product


class Walk:
    """One call: everything that forward and backward have in common."""

    def __init__(
        self,
        x: Tensor,
        weights: Sequence[Tensor],
        y0: Tensor,
        values: Tensor,
        elapsed: Tensor | None,
        lengths: Tensor | None,
        masks: Sequence[Tensor],
        name: str,
        skip: int,
        policy: str,
        precision: str,
        saved: Tensor,
    ) -> None:
        self.x, self.masks, self.skip = x, masks, skip
        self.model, self.policy, self.precision = model_of(name), policy, precision
        self.elapsed = None if elapsed is None else elapsed.float().contiguous()
        self.lengths, self.values = lengths, values
        self.steps, self.batch, _ = x.shape
        self.layers, _, self.hidden = y0.shape
        self.tile = tile_steps(self.steps, self.batch, self.hidden)
        per = 3 + self.model.recurrent
        floats = [w.float().contiguous() for w in weights]
        rows = [floats[k : k + per] for k in range(0, len(floats), per)]
        self.inputs = [row[:3] for row in rows]
        self.recurrent = [row[3:] for row in rows]
        self.stored = policy == "stored"
        length = self.steps if self.stored else self.tile
        wide = self.model.sections * self.hidden
        states = (2, self.layers, length + 1, self.batch, self.hidden)
        if self.stored:
            self.states = saved[: math.prod(states)].view(states)
            behind = stored_states(self.steps, self.batch, self.hidden, self.layers)
            self.acts = saved[behind:].view(self.layers, length, self.batch, wide)
        else:
            self.states = x.new_empty(states, dtype=torch.float32)
            shape = (self.layers, length, self.batch, wide)
            self.acts = x.new_empty(shape, dtype=torch.float32)
        self.of_layer = list(zip(*self.states.unbind(0), self.acts, strict=True))
        self.grid: Tensor | None = None

    def part(self, layer: int, first: int) -> Part:
        """One layer over the tile that starts at a step."""
        n, at = min(self.tile, self.steps - first), first if self.stored else 0
        y, z, acts = self.of_layer[layer]
        return Part(
            self.recurrent[layer], self.values, acts.narrow(0, at, n), y.narrow(0, at, n + 1),
            z.narrow(0, at, n + 1),
            None if self.elapsed is None else self.elapsed.narrow(0, first, n),
            self.lengths, first, self.precision,
            *((None, None) if self.grid is None else self.grid[:, layer]),
        )  # fmt: skip

    def runs(self, first: int, n: int) -> Tensor | None:
        """Which sequences still run [n, B, 1]; None where all do."""
        if self.lengths is None:
            return None
        steps = torch.arange(first, first + n, device=self.x.device)
        return (steps[:, None] < self.lengths)[:, :, None]

    def source(self, first: int) -> Tensor:
        """The input over a tile, float32."""
        return self.x[first : first + self.tile].float()

    def level(self, layer: int, part: Part) -> Tensor:
        """What a layer gives over a tile [n, B, H]."""
        level, runs = part.y[1:], self.runs(part.first, len(part.acts))
        if runs is not None:
            level = torch.where(runs, level, 0.0)
        return level * self.masks[layer] if layer < len(self.masks) else level

    def drive(self, layer: int, levels: list[Tensor], acts: Tensor) -> None:
        """Writes V u + b (and what skips into the layer) over a tile into ``acts``."""
        V, b, skip = self.inputs[layer]
        drive = acts.view(-1, acts.shape[-1])
        source, matrix = self.rows(levels[layer]), operand(V, self.precision).t()
        if source.dtype is not torch.float32:
            drive.copy_(product(source, matrix))
            if b.numel():
                drive.add_(b)
        elif b.numel():
            torch.addmm(b, source, matrix, out=drive)
        else:
            torch.mm(source, matrix, out=drive)
        if skip.numel():
            source = self.rows(levels[layer - self.skip])
            add_product(drive, source, operand(skip, self.precision).t())

    def rows(self, value: Tensor) -> Tensor:
        """A [n, B, F] as an operand [n * B, F]."""
        return operand(value.reshape(-1, value.shape[-1]), self.precision)

    def through(self, first: int, back: bool = False) -> list[Tensor]:
        """Walks all layers over a tile, or undoes that; returns the level of each."""
        levels = [self.source(first)]
        for layer in range(self.layers):
            part = self.part(layer, first)
            self.drive(layer, levels, part.acts)
            (self.model.undo if back else self.model.forward)(part)
            levels.append(self.level(layer, part))
        return levels


def forward(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    z0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    name: str,
    skip: int,
    return_sequence: bool,
    policy: str,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Output (empty unless ``return_sequence``), final y, final z, and what is saved."""
    steps = len(x)
    output, y_n, z_n, saved = results(x, y0, name, return_sequence, policy)
    walk = Walk(
        x, weights, y0, values, elapsed, lengths, masks, name, skip, policy, precision, saved
    )
    model, states = walk.model, walk.states
    start = torch.stack([y0, z0]).float()
    if model.grid:
        walk.grid = model.to_grid(start)
    else:
        states[:, :, 0] = start
    with library_products(precision, x.device):
        for first in range(0, steps, walk.tile):
            if policy == "chunked":
                now = states[:, :, 0] if walk.grid is None else walk.grid
                saved[first // walk.tile].copy_(now)
            levels = walk.through(first)
            n = min(walk.tile, steps - first)
            if return_sequence:
                output[first : first + n] = levels[-1]
            end = states[:, :, (first if walk.stored else 0) + n]
            if not walk.stored and first + n < steps:
                states[:, :, 0] = end
    if policy == "reversible":
        assert walk.grid is not None
        saved.copy_(walk.grid)
    y_n.copy_(end[0])
    z_n.copy_(end[1])
    return output, y_n, z_n, saved


def results(
    x: Tensor, y0: Tensor, name: str, return_sequence: bool, policy: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Empty output (of size 0 unless ``return_sequence``), final y, final z, and what is saved."""
    steps, batch, _ = x.shape
    layers, _, hidden = y0.shape
    shape = saved_shape(steps, batch, hidden, layers, sections_of(name), policy)
    holds_integers = name.endswith("_grid") and policy != "stored"
    kind = torch.int64 if holds_integers else torch.float32
    return (
        y0.new_empty((steps, batch, hidden) if return_sequence else (0,)),
        y0.new_empty(y0.shape),
        y0.new_empty(y0.shape),
        y0.new_empty(shape, dtype=kind),
    )
