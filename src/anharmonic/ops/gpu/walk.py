"""Run a stack of layers on a GPU, tile by tile through time.

A ``Model`` runs one layer over one tile. This module runs the layers, computes their input products
and saves values for the backward pass. The number of steps in a tile does not depend on the memory
policy, so all policies give bitwise equal results.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from anharmonic.ops.gpu.products import add_product, library_products, operand, product

if TYPE_CHECKING:
    from anharmonic.ops.gpu.elementary import Model

_SHORTEST_TILE, _LONGEST_TILE = 256, 8192
_FEWEST_NUMBERS = 2**19
_WEIGHTS = 5
"""The number of weights of a layer: V, b and Λ, then two recurrent weights."""


def model_of(name: str) -> Model:
    """Return the kernels of a model, which need Triton."""
    module = importlib.import_module(f"anharmonic.ops.gpu.{name.partition('_')[0]}")
    model: Model = module.MODELS[name]
    return model


def tile_steps(steps: int, batch: int, hidden: int) -> int:
    """Return the number of steps of a tile: near 8 sqrt(T), more for small steps.

    Example:
        >>> tile_steps(1000, 128, 256), tile_steps(17_984, 8, 32), tile_steps(1_000_000, 8, 256)
        (256, 2048, 8000)
    """
    length = max(64 * int(math.sqrt(steps) / 8), _FEWEST_NUMBERS // (batch * hidden))
    return min(max(length, _SHORTEST_TILE), _LONGEST_TILE, steps)


def empty_results(
    x: Tensor, weights: Sequence[Tensor], y0: Tensor, return_sequence: bool, policy: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Allocate the output, the final y and z, and the saved states and activations.

    The output has size 0 unless ``return_sequence``. The policy *stored* saves everything.
    *chunked* saves the states before each tile. *nothing* saves nothing and permits no gradients.

    Example:
        >>> x, V, y0 = torch.zeros(1000, 64, 2), torch.zeros(64, 2), torch.zeros(1, 64, 64)
        >>> for policy in ("nothing", "stored", "chunked"):
        ...     *_, states, acts = empty_results(x, [V], y0, False, policy)
        ...     print(list(states.shape), list(acts.shape))
        [2, 1, 0, 64, 64] [1, 0, 64, 64]
        [2, 1, 1001, 64, 64] [1, 1000, 64, 64]
        [2, 1, 4, 64, 64] [1, 0, 64, 64]
    """
    steps, batch, _ = x.shape
    layers, _, hidden = y0.shape
    slots = 0
    if policy != "nothing":
        slots = steps + 1 if policy == "stored" else -(-steps // tile_steps(steps, batch, hidden))
    acts = (layers, steps if policy == "stored" else 0, batch, weights[0].shape[0])
    return (
        y0.new_empty((steps, batch, hidden) if return_sequence else (0,)),
        y0.new_empty(y0.shape),
        y0.new_empty(y0.shape),
        y0.new_empty((2, layers, slots, batch, hidden), dtype=torch.float32),
        y0.new_empty(acts, dtype=torch.float32),
    )


def like_gradients(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    scalars: Tensor,
    elapsed: Tensor | None,
    needs_x: bool,
    needs_elapsed: bool,
) -> list[Tensor]:
    """Return tensors shaped as the gradients of ``backward``, with size 0 if not needed."""
    nothing = y0.new_empty(0)
    gaps = elapsed if needs_elapsed and elapsed is not None else nothing
    return [x if needs_x else nothing, y0, y0, scalars, gaps, *weights]


class Walk:
    """The data and functions shared by the forward and the backward pass of one call."""

    def __init__(
        self,
        x: Tensor,
        weights: Sequence[Tensor],
        y0: Tensor,
        scalars: Tensor,
        elapsed: Tensor | None,
        lengths: Tensor | None,
        masks: Sequence[Tensor],
        name: str,
        skip: int,
        policy: str,
        precision: str,
        states: Tensor,
        acts: Tensor,
    ) -> None:
        self.x, self.scalars, self.lengths, self.masks = x, scalars, lengths, masks
        self.model, self.skip, self.precision = model_of(name), skip, precision
        self.elapsed = None if elapsed is None else elapsed.float().contiguous()
        self.steps, self.batch, _ = x.shape
        self.layers, _, self.hidden = y0.shape
        self.tile = tile_steps(self.steps, self.batch, self.hidden)
        self.stored = policy == "stored"
        if not self.stored:
            states = states.new_empty((2, self.layers, self.tile + 1, self.batch, self.hidden))
            acts = acts.new_empty((self.layers, self.tile, *acts.shape[2:]))
        self.states, self.acts = states, acts
        floats = [w.float().contiguous() for w in weights]
        layers = [floats[k : k + _WEIGHTS] for k in range(0, len(floats), _WEIGHTS)]
        self.inputs = [layer[:3] for layer in layers]
        self.recurrent = [
            [operand(w, precision) if w.dim() == 2 else w for w in layer[3:]] for layer in layers
        ]

    def tile_of(self, layer: int, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return activations [n, B, drives * H] and states [n + 1, B, H] of a layer over a tile."""
        n, slot = min(self.tile, self.steps - first), first if self.stored else 0
        y, z = self.states[:, layer, slot : slot + n + 1]
        return self.acts[layer, slot : slot + n], y, z

    def run(self, layer: int, first: int, gradients: Sequence[Tensor | None] = ()) -> None:
        """Compute the states and activations of a tile, or propagate ``gradients`` back through it.

        The first gradient is that of the outputs, or None if it is zero. The kernel writes the
        others: the gradients of y and z, which change from after the tile to before it; of the
        drive; of every neuron's elapsed time, or None; and the sums over time.
        """
        acts, y, z = self.tile_of(layer, first)
        elapsed = None if self.elapsed is None else self.elapsed[first : first + self.tile]
        arguments = [
            acts, y, z, *self.recurrent[layer], self.scalars, elapsed, self.lengths, *gradients,
            len(acts), first, self.batch, self.hidden,
        ]  # fmt: skip
        flags = {"HAS_ELAPSED": elapsed is not None, "HAS_LENGTHS": self.lengths is not None}
        if gradients:
            flags |= {"HAS_GRAD": gradients[0] is not None, "HAS_GAPS": gradients[4] is not None}
        self.model.launch(bool(gradients), self.precision, arguments, **flags)

    def levels(self, first: int, run: bool) -> list[Tensor]:
        """Return the float32 input of each layer over a tile; with ``run``, compute all states.

        The last entry is the output of the top layer, if it was computed.
        """
        levels = [self.x[first : first + self.tile].float()]
        for layer in range(self.layers if run else self.layers - 1):
            acts, y, _ = self.tile_of(layer, first)
            if run:
                self.drive(layer, levels, acts)
                self.run(layer, first)
            level = self.until_the_end(y[1:], first)
            levels.append(level * self.masks[layer] if layer < len(self.masks) else level)
        return levels

    def until_the_end(self, value: Tensor, first: int) -> Tensor:
        """Set the steps after the end of each sequence to zero, in [n, B, H]."""
        if self.lengths is None:
            return value
        steps = torch.arange(first, first + len(value), device=value.device)
        return torch.where((steps[:, None] < self.lengths)[:, :, None], value, 0.0)

    def drive(self, layer: int, levels: list[Tensor], acts: Tensor) -> None:
        """Write V u + b and the layer's skip connections into ``acts``."""
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

    def drive_back(
        self,
        layer: int,
        first: int,
        levels: list[Tensor],
        grad_levels: list[Tensor | None],
        grad_drive: Tensor,
        grads: list[Tensor],
        needs_x: bool,
    ) -> None:
        """Propagate the gradient of a drive to a layer's matrices, its b and the levels below."""
        back = self.rows(grad_drive)
        _, y, z = self.tile_of(layer, first)
        for grad, (g, state) in zip(grads[3:], self.model.operands(back.t(), y, z), strict=False):
            add_product(grad, g, self.rows(state))
        V, b, skip = self.inputs[layer]
        sources = [(layer, V, grads[0])]
        if skip.numel():
            sources.append((layer - self.skip, skip, grads[2]))
        for level, matrix, grad in sources:
            add_product(grad, back.t(), self.rows(levels[level]))
            if level > 0 or needs_x:
                down = product(back, operand(matrix, self.precision))
                down = down.view(*grad_drive.shape[:2], -1)
                before = grad_levels[level]
                grad_levels[level] = down if before is None else before + down
        if b.numel():
            grads[1] += grad_drive.sum((0, 1))

    def rows(self, value: Tensor) -> Tensor:
        """Return [n, B, F] as an operand [n * B, F]."""
        return operand(value.reshape(-1, value.shape[-1]), self.precision)


def forward(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    z0: Tensor,
    scalars: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    name: str,
    skip: int,
    return_sequence: bool,
    policy: str,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Run the stack and return the results that ``empty_results`` describes."""
    results = empty_results(x, weights, y0, return_sequence, policy)
    output, y_n, z_n, saved, acts = results
    walk = Walk(
        x, weights, y0, scalars, elapsed, lengths, masks, name, skip, policy, precision, saved, acts
    )
    walk.states[:, :, 0] = torch.stack([y0, z0])
    with library_products(precision, x.device):
        for first in range(0, walk.steps, walk.tile):
            if policy == "chunked":
                saved[:, :, first // walk.tile] = walk.states[:, :, 0]
            level = walk.levels(first, run=True)[-1]
            if return_sequence:
                output[first : first + len(level)] = level
            end = walk.states[:, :, len(level) + (first if walk.stored else 0)]
            if not walk.stored:
                walk.states[:, :, 0] = end
    y_n.copy_(end[0])
    z_n.copy_(end[1])
    return results


def backward(
    grad_output: Tensor | None,
    grad_y: Tensor | None,
    grad_z: Tensor | None,
    saved: Tensor,
    acts: Tensor,
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    scalars: Tensor,
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
    """Return the gradients of x, y0, z0, scalars, elapsed and weights as in ``like_gradients``."""
    walk = Walk(
        x, weights, y0, scalars, elapsed, lengths, masks, name, skip, policy, precision, saved, acts
    )
    like = like_gradients(x, weights, y0, scalars, elapsed, needs_x, needs_elapsed)
    results = [t.new_zeros(t.shape, dtype=torch.float32) for t in like]
    grad_x, *carried, grad_scalars, grad_elapsed = results[:5]
    grads = [results[k : k + _WEIGHTS] for k in range(5, len(results), _WEIGHTS)]
    for total, grad in zip(carried, (grad_y, grad_z), strict=True):
        if grad is not None:
            total.copy_(grad)
    sums = y0.new_zeros((walk.layers, walk.model.sums, *y0.shape[1:]), dtype=torch.float32)
    timed = grad_elapsed.numel() > 0
    with library_products(precision, x.device):
        for first in reversed(range(0, walk.steps, walk.tile)):
            steps = slice(first, first + walk.tile)
            if policy == "chunked":
                walk.states[:, :, 0] = saved[:, :, first // walk.tile]
            levels = walk.levels(first, run=not walk.stored)
            grad_levels: list[Tensor | None] = [None] * (walk.layers + 1)
            if grad_output is not None:
                grad_levels[-1] = grad_output[steps].float()
            for layer in reversed(range(walk.layers)):
                tile, y, _ = walk.tile_of(layer, first)
                grad = grad_levels[layer + 1]
                if grad is not None:
                    if layer < len(masks):
                        grad = grad * masks[layer]
                    grad = walk.until_the_end(grad, first).contiguous()
                grad_drive = torch.empty_like(tile)
                gaps = torch.empty_like(y[1:]) if timed else None
                ends = [total[layer] for total in carried]
                walk.run(layer, first, [grad, *ends, grad_drive, gaps, *sums[layer]])
                if gaps is not None:
                    grad_elapsed[steps] += gaps.sum(-1)
                own = grads[layer]
                walk.drive_back(layer, first, levels, grad_levels, grad_drive, own, needs_x)
            if needs_x and grad_levels[0] is not None:
                grad_x[steps] = grad_levels[0]
    for layer in range(walk.layers):
        walk.model.add_sums(grads[layer][3:], grad_scalars, sums[layer])
    return [grad.to(t.dtype) for grad, t in zip(results, like, strict=True)]
