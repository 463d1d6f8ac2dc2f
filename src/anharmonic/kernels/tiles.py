"""A stack of layers tile by tile through time, on a device: what the Triton kernels have in common.

A model's kernels know one layer over one tile (`Model`); here are layers, input products, what is
kept for the backward pass, and weight gradients. A tile has the same steps whatever the memory
policy, so that all policies give the same bits.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic.kernels.precision import add_product, library_products, operand, product

_SHORTEST_TILE, _LONGEST_TILE = 256, 4096


def tile_steps(steps: int) -> int:
    """Steps of a tile: near 4 sqrt(T), and enough to hide what it costs to start a kernel.

    Example:
        >>> [tile_steps(steps) for steps in (5, 1000, 17_984, 1_000_000)]
        [5, 256, 512, 3968]
    """
    length = 64 * int(math.sqrt(steps) / 16)
    return min(max(length, _SHORTEST_TILE), _LONGEST_TILE, steps)


def kept_shape(
    steps: int, batch: int, hidden: int, layers: int, sections: int, policy: str
) -> tuple[int, ...]:
    """The shape of what is kept between forward and backward.

    Args:
        steps: T.
        batch: B.
        hidden: H.
        layers: L.
        sections: Activations a model keeps per neuron and step.
        policy: "nothing", "stored", "chunked" or "reversible".

    Example:
        >>> [kept_shape(1000, 2, 3, 1, 1, policy) for policy in ("stored", "chunked")]
        [(18012,), (4, 2, 1, 2, 3)]
    """
    if policy == "nothing":
        return (0,)
    if policy == "stored":
        return (layers * batch * hidden * (2 * (steps + 1) + sections * steps),)
    ends = (2, layers, batch, hidden)
    return ends if policy == "reversible" else (-(-steps // tile_steps(steps)), *ends)


class Part(NamedTuple):
    """One layer over one tile of n steps.

    Attributes:
        weights: Those of the recurrence.
        scalars: The model's numbers.
        acts: The drive; the forward pass puts the activations in its place.
        y, z: States; slot 0 holds the state before the tile.
        elapsed: Time since the previous sample, or None.
        lengths: Valid steps of each sequence (int32), or None.
        first: The tile's first step.
        precision: Of products.
        grid_y, grid_z: The state on the grid, moved in place, or None.

    Shape:
        acts [n, B, S * H]; y, z [n + 1, B, H]; elapsed [n, B]; grid_y, grid_z [B, H].
    """

    weights: Sequence[Tensor]
    scalars: Tensor
    acts: Tensor
    y: Tensor
    z: Tensor
    elapsed: Tensor | None
    lengths: Tensor | None
    first: int
    precision: str
    grid_y: Tensor | None = None
    grid_z: Tensor | None = None


class Sums(NamedTuple):
    """The gradients of a part.

    Attributes:
        grad: Of the outputs, or None where there is none.
        grad_y, grad_z: Of the state after the tile; the backward pass puts that before in place.
        g: Room for the gradient of the drive.
        by_gap: Room for the gradient of every neuron's elapsed time, or None.
        elementwise: Sums over time that the kernels add to.

    Shape:
        grad, by_gap [n, B, H]; grad_y, grad_z [B, H]; g [n, B, S * H]; elementwise [K, B, H].
    """

    grad: Tensor | None
    grad_y: Tensor
    grad_z: Tensor
    g: Tensor
    by_gap: Tensor | None
    elementwise: Tensor


class Model:
    """What a model's kernels do; a layer's weights are V, b, Λ and then ``recurrent`` of its own.

    Attributes:
        sections: Drives per neuron, and activations kept of a step.
        recurrent: Weights behind V, b and Λ.
        elementwise_sums: Sums over time that the backward kernel makes per neuron and sequence.
        grid: Whether states live on a fixed-point grid, which ``undo`` walks back.
    """

    sections = 1
    recurrent = 0
    elementwise_sums = 0
    grid = False

    def forward(self, part: Part) -> None:
        """Walks one layer over one tile."""
        raise NotImplementedError

    def backward(self, part: Part, sums: Sums) -> None:
        """Carries gradients back through one layer over one tile."""
        raise NotImplementedError

    def undo(self, part: Part) -> None:
        """Walks back on the grid."""
        raise NotImplementedError

    def add_weight_gradients(self, part: Part, sums: Sums, grads: list[Tensor]) -> None:
        """Adds one tile to the gradients of the recurrent matrices."""
        raise NotImplementedError

    def finish(self, elementwise: Tensor, grads: list[Tensor], scalars: Tensor) -> None:
        """Makes gradients of elementwise weights and scalars of the sums [K, B, H]."""
        raise NotImplementedError

    def to_grid(self, state: Tensor) -> Tensor:
        """A float32 state on the grid."""
        raise NotImplementedError

    def from_grid(self, state: Tensor) -> Tensor:
        """A state on the grid as float32."""
        raise NotImplementedError


def sections_of(name: str) -> int:
    """Activations that a model keeps per neuron and step; known without Triton.

    Example:
        >>> sections_of("cornn_explicit"), sections_of("lem")
        (1, 4)
    """
    if name.startswith("lem"):
        return 2 if name == "lem_single_scale" else 4
    return 1


def model_of(name: str) -> Model:
    """The kernels of a model, which need Triton."""
    module = importlib.import_module(f"anharmonic.kernels.{name.partition('_')[0]}.triton")
    found: Model = module.MODELS[name]
    return found


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
        self.tile = tile_steps(self.steps)
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
            count = math.prod(states)
            self.states = saved[:count].view(states)
            self.acts = saved[count:].view(self.layers, length, self.batch, wide)
        else:
            self.states = x.new_empty(states, dtype=torch.float32)
            shape = (self.layers, length, self.batch, wide)
            self.acts = x.new_empty(shape, dtype=torch.float32)
        self.grid: Tensor | None = None

    def part(self, layer: int, first: int) -> Part:
        """One layer over the tile that starts at a step."""
        n, at = min(self.tile, self.steps - first), first if self.stored else 0
        y, z = self.states[:, layer, at : at + n + 1]
        grid = (None, None) if self.grid is None else self.grid[:, layer]
        return Part(
            self.recurrent[layer], self.values, self.acts[layer, at : at + n], y, z,
            None if self.elapsed is None else self.elapsed[first : first + n],
            self.lengths, first, self.precision, *grid,
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
        if source.dtype is torch.float32:
            torch.mm(source, matrix, out=drive)
        else:
            drive.copy_(product(source, matrix))
        if b.numel():
            drive.add_(b)
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
    whole: bool,
    policy: str,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Output (empty unless ``whole``), final y, final z, and what is kept."""
    steps, batch, _ = x.shape
    layers, _, hidden = y0.shape
    output, y_n, z_n, saved = results(x, y0, name, whole, policy)
    walk = Walk(
        x, weights, y0, values, elapsed, lengths, masks, name, skip, policy, precision, saved
    )
    model, states = walk.model, walk.states
    start = torch.stack([y0, z0]).float()
    if model.grid:
        walk.grid = model.to_grid(start)
    else:
        states[:, :, 0] = start
    with library_products(precision):
        for first in range(0, steps, walk.tile):
            if policy == "chunked":
                now = states[:, :, 0] if walk.grid is None else walk.grid
                saved[first // walk.tile].copy_(now)
            levels = walk.through(first)
            n = min(walk.tile, steps - first)
            if whole:
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
    x: Tensor, y0: Tensor, name: str, whole: bool, policy: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Empty output (of size 0 unless ``whole``), final y, final z, and what is kept."""
    steps, batch, _ = x.shape
    layers, _, hidden = y0.shape
    shape = kept_shape(steps, batch, hidden, layers, sections_of(name), policy)
    whole_numbers = name.endswith("_grid") and policy != "stored"
    kind = torch.int64 if whole_numbers else torch.float32
    return (
        y0.new_empty((steps, batch, hidden) if whole else (0,)),
        y0.new_empty(y0.shape),
        y0.new_empty(y0.shape),
        y0.new_empty(shape, dtype=kind),
    )


def backward(
    grad_output: Tensor | None,
    grad_y: Tensor | None,
    grad_z: Tensor | None,
    saved: Tensor,
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
    needs_x: bool,
    needs_elapsed: bool,
) -> list[Tensor]:
    """Gradients of x, y0, z0, scalars, elapsed and weights; those not needed have size 0."""
    walk = Walk(
        x, weights, y0, values, elapsed, lengths, masks, name, skip, policy, precision, saved
    )
    model, states, layers = walk.model, walk.states, walk.layers
    shape = (layers, walk.batch, walk.hidden)
    floats = {"dtype": torch.float32}
    carried = [
        y0.new_zeros(shape, **floats) if grad is None else grad.to(torch.float32, copy=True)
        for grad in (grad_y, grad_z)
    ]
    carried = [grad.contiguous() for grad in carried]
    grads = [w.new_zeros(w.shape, **floats) for w in weights]
    per = 3 + model.recurrent
    elementwise = y0.new_zeros((layers, model.elementwise_sums, *shape[1:]), **floats)
    grad_x = x.new_empty(x.shape if needs_x else (0,))
    grad_elapsed = y0.new_zeros(elapsed.shape if elapsed is not None and needs_elapsed else (0,),
                                **floats)  # fmt: skip
    if policy == "reversible":
        walk.grid = saved.clone()
    with library_products(precision):
        for first in reversed(range(0, walk.steps, walk.tile)):
            n = min(walk.tile, walk.steps - first)
            if policy == "chunked":
                if model.grid:
                    walk.grid = saved[first // walk.tile].clone()
                else:
                    states[:, :, 0] = saved[first // walk.tile]
            if walk.stored:
                levels = [walk.source(first)]
                levels += [walk.level(k, walk.part(k, first)) for k in range(layers - 1)]
            else:
                levels = walk.through(first, back=policy == "reversible")
            runs = walk.runs(first, n)
            due: list[Tensor | None] = [None] * (layers + 1)
            if grad_output is not None:
                due[layers] = grad_output[first : first + n].float()
            for layer in reversed(range(layers)):
                part, grad = walk.part(layer, first), due[layer + 1]
                if grad is not None:
                    if layer < len(masks):
                        grad = grad * masks[layer]
                    if runs is not None:
                        grad = torch.where(runs, grad, 0.0)
                    grad = grad.contiguous()
                sums = Sums(
                    grad, carried[0][layer], carried[1][layer],
                    part.acts.new_empty(part.acts.shape),
                    part.acts.new_empty((n, *shape[1:])) if grad_elapsed.numel() else None,
                    elementwise[layer],
                )  # fmt: skip
                model.backward(part, sums)
                if sums.by_gap is not None:
                    grad_elapsed[first : first + n] += sums.by_gap.sum(-1)
                own = grads[layer * per : (layer + 1) * per]
                model.add_weight_gradients(part, sums, own[3:])
                _through_inputs(walk, layer, levels, due, sums.g, own, needs_x)
            if needs_x:
                assert due[0] is not None
                grad_x[first : first + n] = due[0]
    grad_values = torch.zeros_like(values)
    for layer in range(layers):
        own = grads[layer * per + 3 : (layer + 1) * per]
        model.finish(elementwise[layer], own, grad_values)
    kinds = zip(grads, weights, strict=True)
    return [
        grad_x, *(grad.to(y0.dtype) for grad in carried), grad_values,
        grad_elapsed if elapsed is None else grad_elapsed.to(elapsed.dtype),
        *(grad.to(w.dtype) for grad, w in kinds),
    ]  # fmt: skip


def _through_inputs(
    walk: Walk,
    layer: int,
    levels: list[Tensor],
    due: list[Tensor | None],
    g: Tensor,
    grads: list[Tensor],
    needs_x: bool,
) -> None:
    """From the gradient of a layer's drive to those of V, b, Λ and the levels below."""
    back = walk.rows(g)
    V, _, skip = walk.inputs[layer]
    sources = [(layer, V, grads[0])]
    if skip.numel():
        sources.append((layer - walk.skip, skip, grads[2]))
    for level, matrix, grad in sources:
        add_product(grad, back.t(), walk.rows(levels[level]))
        if level > 0 or needs_x:
            down = product(back, operand(matrix, walk.precision)).view(*g.shape[:2], -1)
            before = due[level]
            due[level] = down if before is None else before + down
    if grads[1].numel():
        grads[1] += g.sum((0, 1))
