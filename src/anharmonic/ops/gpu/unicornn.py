"""UnICORNN on a GPU: every neuron of every sequence walks through time by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.backend import run, scalar_values
from anharmonic.ops.gpu.elementary import block_of, launch, tanh_of
from anharmonic.ops.gpu.on_grid import grid_walk, to_grid
from anharmonic.ops.gpu.parts import Model, Part, Sums

AHEAD = tl.constexpr(16)
"""Steps that are fetched ahead."""


@triton.jit
def _forward(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, size: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row, batch = at // hidden, tl.cast(total // hidden, tl.int64)
    stride = tl.cast(total, tl.int64)
    w = tl.load(weight + at % hidden, mask=inside, other=0.0)
    h0 = tl.load(size + at % hidden, mask=inside, other=0.0)
    alpha = tl.load(scalars)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = at * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=inside, other=0)
    for n in tl.range(0, steps, num_stages=AHEAD):
        here = stride * n + at
        x = tl.load(acts + here, mask=inside, other=0.0)
        h = h0
        if HAS_ELAPSED:
            h = tl.load(elapsed + (batch * n + row), mask=inside, other=0.0) * h0
        t = tanh_of(tl.fma(w, y_n, x))
        z_new = tl.fma(-h, tl.fma(alpha, y_n, t), z_n)
        y_new = tl.fma(h, z_new, y_n)
        if HAS_LENGTHS:
            runs = first + n < length
            z_new = tl.where(runs, z_new, z_n)
            y_new = tl.where(runs, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(acts + here, t, mask=inside)
        tl.store(y + (here + stride), y_n, mask=inside)
        tl.store(z + (here + stride), z_n, mask=inside)


@triton.jit
def _backward(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight: tl.tensor, size: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    sum_w: tl.tensor, sum_h: tl.tensor, sum_alpha: tl.tensor,
    steps: tl.tensor, first: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr,
    BY_GAP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row, batch = at // hidden, tl.cast(total // hidden, tl.int64)
    stride = tl.cast(total, tl.int64)
    w = tl.load(weight + at % hidden, mask=inside, other=0.0)
    h0 = tl.load(size + at % hidden, mask=inside, other=0.0)
    alpha = tl.load(scalars)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = at * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=inside, other=0)
    by_w = w * 0.0
    by_h0 = w * 0.0
    by_alpha = w * 0.0
    for k in tl.range(0, steps, num_stages=AHEAD):
        n = steps - 1 - k
        here = stride * n + at
        t = tl.load(acts + here, mask=inside, other=0.0)
        y_old = tl.load(y + here, mask=inside, other=0.0)
        z_new = tl.load(z + (here + stride), mask=inside, other=0.0)
        e = 1.0
        h = h0
        if HAS_ELAPSED:
            e = tl.load(elapsed + (batch * n + row), mask=inside, other=0.0)
            h = e * h0
        if HAS_GRAD:
            p += tl.load(grad + here, mask=inside, other=0.0)
        q_new = tl.fma(h, p, q)
        hq = h * q_new
        by_h = p * z_new - q_new * tl.fma(alpha, y_old, t)
        a = -hq * (1.0 - t * t)
        p_new = tl.fma(-alpha, hq, tl.fma(a, w, p))
        if HAS_LENGTHS:
            runs = first + n < length
            q_new = tl.where(runs, q_new, q)
            p_new = tl.where(runs, p_new, p)
            a = tl.where(runs, a, 0.0)
            by_h = tl.where(runs, by_h, 0.0)
            hq = tl.where(runs, hq, 0.0)
        tl.store(g + here, a, mask=inside)
        if BY_GAP:
            tl.store(by_gap + here, h0 * by_h, mask=inside)
        by_w = tl.fma(a, y_old, by_w)
        by_h0 = tl.fma(by_h, e, by_h0)
        by_alpha = tl.fma(-hq, y_old, by_alpha)
        p = p_new
        q = q_new
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)
    tl.store(sum_w + at, tl.load(sum_w + at, mask=inside, other=0.0) + by_w, mask=inside)
    tl.store(sum_h + at, tl.load(sum_h + at, mask=inside, other=0.0) + by_h0, mask=inside)
    total_alpha = tl.load(sum_alpha + at, mask=inside, other=0.0) + by_alpha
    tl.store(sum_alpha + at, total_alpha, mask=inside)


class _UnICORNN(Model):
    """Weights of a layer: V, b, Λ, w, h; scalars: α; saved of a step: its tanh."""

    recurrent = 2
    elementwise_sums = 3

    def forward(self, part: Part) -> None:
        total, block, flags = _cut(part)
        launch(
            _forward, triton.cdiv(total, block), part.acts, part.y, part.z, *part.weights,
            part.scalars, part.elapsed, part.lengths, len(part.acts), part.first,
            part.y.shape[-1], total, **flags,
        )  # fmt: skip

    def backward(self, part: Part, sums: Sums) -> None:
        total, block, flags = _cut(part)
        launch(
            _backward, triton.cdiv(total, block), part.acts, part.y, part.z, *part.weights,
            part.scalars, part.elapsed, part.lengths, sums.grad, sums.grad_y, sums.grad_z, sums.g,
            sums.by_gap, *sums.elementwise, len(part.acts), part.first, part.y.shape[-1], total,
            HAS_GRAD=sums.grad is not None, BY_GAP=sums.by_gap is not None, **flags,
        )  # fmt: skip

    def add_weight_gradients(self, part: Part, sums: Sums, grads: list[Tensor]) -> None:
        """Nothing here: neurons do not meet."""

    def finish(self, elementwise: Tensor, grads: list[Tensor], scalars: Tensor) -> None:
        w, h, alpha = elementwise.sum(1)
        grads[0].copy_(w)
        grads[1].copy_(h)
        scalars.add_(alpha.sum())


class _OnGrid(_UnICORNN):
    """The same with states on the fixed-point grid of ``unicornn/grid.py``."""

    grid = True

    def forward(self, part: Part) -> None:
        self._walk(part, back=False)

    def undo(self, part: Part) -> None:
        self._walk(part, back=True)

    def _walk(self, part: Part, back: bool) -> None:
        total, block, flags = _cut(part)
        assert part.grid_y is not None and part.grid_z is not None
        launch(
            grid_walk, triton.cdiv(total, block), part.acts, part.y, part.z, *part.weights,
            part.scalars, part.elapsed, part.lengths, part.grid_y, part.grid_z, len(part.acts),
            part.first, part.y.shape[-1], total, BACK=back, **flags,
        )  # fmt: skip

    def to_grid(self, state: Tensor) -> Tensor:
        return to_grid(state)


def _cut(part: Part) -> tuple[int, int, dict[str, Any]]:
    """Independent elements, elements of a block, and the flags of a launch."""
    total = part.y[0].numel()
    block = block_of(total)
    return total, block, {
        "HAS_ELAPSED": part.elapsed is not None,
        "HAS_LENGTHS": part.lengths is not None,
        "BLOCK": block,
        "warps": block // 32,
    }  # fmt: skip


MODELS = {"unicornn": _UnICORNN(), "unicornn_grid": _OnGrid()}


def unicornn_triton(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float | Tensor],
    frequency: float | Tensor,
    skipped_layers: int | None,
    memory: str,
    grid: bool = False,
    **shared: tl.tensor,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.unicornn`` on a GPU."""
    flat = []
    for (V, w, b, c, skip), step in zip(weights, dt, strict=True):
        flat += [V, b, skip, w, step * torch.sigmoid(c.float())]
    model = "unicornn_grid" if grid or memory == "reversible" else "unicornn"
    values = scalar_values(x, [frequency])
    return run(model, x, flat, y0, z0, values, skip=skipped_layers or 0, memory=memory, **shared)
