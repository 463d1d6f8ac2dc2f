"""LEM on a GPU: where its four recurrent matrices fit on chip, one program walks a few sequences.

Beyond that, a step is two products of the library and two kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.backend import run, scalar_values
from anharmonic.ops.gpu.elementary import (
    ROWS,
    block_of,
    fits_on_chip,
    launch,
    on_chip,
    sigmoid_of,
    tanh_of,
)
from anharmonic.ops.gpu.lem_on_chip import backward_on_chip, by_sigmoid, forward_on_chip, gate_of
from anharmonic.ops.gpu.parts import Model, Part, Sums
from anharmonic.ops.precision import add_product, operand


@triton.jit
def _half_step(
    pre: tl.tensor, old: tl.tensor, new: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    step: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    SECOND: tl.constexpr, CLIPPED: tl.constexpr, GATED: tl.constexpr,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """The new z, or (SECOND) the new y, behind its products; activations take their place."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row = at // hidden
    SECTIONS: tl.constexpr = 4 if GATED else 2
    row_at = row * (SECTIONS * hidden) + at % hidden
    gate_at = row_at + SECOND * hidden
    state_at = row_at + (SECTIONS - 2 + SECOND) * hidden
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    h = dt
    if HAS_ELAPSED:
        h = tl.load(elapsed + row, mask=inside, other=0.0) * dt
    gate = h
    if GATED:
        o = sigmoid_of(tl.load(pre + gate_at, mask=inside, other=0.0))
        tl.store(pre + gate_at, o, mask=inside)
        gate = gate_of(o, h, floor, CLIPPED)
    t = tanh_of(tl.load(pre + state_at, mask=inside, other=0.0))
    tl.store(pre + state_at, t, mask=inside)
    before = tl.load(old + at, mask=inside, other=0.0)
    after = tl.fma(gate, t - before, before)
    if HAS_LENGTHS:
        runs = step < tl.load(lengths + row, mask=inside, other=0)
        after = tl.where(runs, after, before)
    tl.store(new + at, after, mask=inside)


@triton.jit
def _half_step_back(
    acts: tl.tensor, old: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, carried: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    step: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    SECOND: tl.constexpr, CLIPPED: tl.constexpr, GATED: tl.constexpr,
    HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr,
    BY_GAP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Back through a half step, before its products."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    row = at // hidden
    SECTIONS: tl.constexpr = 4 if GATED else 2
    row_at = row * (SECTIONS * hidden) + at % hidden
    gate_at = row_at + SECOND * hidden
    state_at = row_at + (SECTIONS - 2 + SECOND) * hidden
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    h = dt
    if HAS_ELAPSED:
        h = tl.load(elapsed + row, mask=inside, other=0.0) * dt
    runs = inside
    if HAS_LENGTHS:
        runs = inside & (step < tl.load(lengths + row, mask=inside, other=0))
    p = tl.load(carried + at, mask=inside, other=0.0)
    if HAS_GRAD:
        p += tl.load(grad + at, mask=inside, other=0.0)
    t = tl.load(acts + state_at, mask=inside, other=0.0)
    by_h = p * (t - tl.load(old + at, mask=inside, other=0.0))
    gate = h
    if GATED:
        o = tl.load(acts + gate_at, mask=inside, other=0.0)
        gate = gate_of(o, h, floor, CLIPPED)
        by_h = by_sigmoid(by_h, o, h, floor, CLIPPED) * o
        tl.store(g + gate_at, tl.where(runs, h * by_h * (1.0 - o), 0.0), mask=inside)
    tl.store(g + state_at, tl.where(runs, p * gate * (1.0 - t * t), 0.0), mask=inside)
    tl.store(carried + at, tl.where(runs, tl.fma(-p, gate, p), p), mask=inside)
    if BY_GAP:
        gap = tl.where(runs, dt * by_h, 0.0)
        if SECOND == 0:
            gap += tl.load(by_gap + at, mask=inside, other=0.0)
        tl.store(by_gap + at, gap, mask=inside)


class _LEM(Model):
    """Weights of a layer: V, b, none, W, Wy; scalars: dt, gate floor; saved: all activations."""

    recurrent = 2

    def __init__(self, gated: bool = True, clipped: bool = False) -> None:
        self.sections = 4 if gated else 2
        self.gated, self.clipped = gated, clipped

    def forward(self, part: Part) -> None:
        n, batch, wide = part.acts.shape
        hidden = wide // self.sections
        W, W_y = (operand(w, part.precision) for w in part.weights)
        flags = self._flags(part)
        if fits_on_chip(hidden, part.precision):
            launch(
                forward_on_chip, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, W, W_y,
                part.scalars, part.elapsed, part.lengths, n, part.first, batch, hidden,
                **flags, **on_chip(hidden, part.precision, self.sections),
            )  # fmt: skip
            return
        total = batch * hidden
        block = block_of(total)
        first = wide - hidden
        for s in range(n):
            gap = None if part.elapsed is None else part.elapsed[s]
            pre = part.acts[s]
            turns = ((pre[:, :first], part.y, W, part.z), (pre[:, first:], part.z, W_y, part.y))
            for second, (drive, source, matrix, state) in enumerate(turns):
                given = source[s + second]
                add_product(drive, operand(given, part.precision), matrix.t())
                launch(
                    _half_step, triton.cdiv(total, block), pre, state[s], state[s + 1],
                    part.scalars, gap, part.lengths, part.first + s, hidden, total,
                    SECOND=second, BLOCK=block, warps=block // 32, **flags,
                )  # fmt: skip

    def backward(self, part: Part, sums: Sums) -> None:
        n, batch, wide = part.acts.shape
        hidden = wide // self.sections
        W, W_y = (operand(w, part.precision) for w in part.weights)
        flags = {**self._flags(part), "BY_GAP": sums.by_gap is not None}
        has_grad = sums.grad is not None
        if fits_on_chip(hidden, part.precision):
            launch(
                backward_on_chip, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, W, W_y,
                part.scalars, part.elapsed, part.lengths, sums.grad, sums.grad_y, sums.grad_z,
                sums.g, sums.by_gap, n, part.first, batch, hidden, HAS_GRAD=has_grad, **flags,
                **on_chip(hidden, part.precision, self.sections),
            )  # fmt: skip
            return
        total = batch * hidden
        block = block_of(total)
        first = wide - hidden
        for s in reversed(range(n)):
            gap = None if part.elapsed is None else part.elapsed[s]
            by_gap = None if sums.by_gap is None else sums.by_gap[s]
            g = sums.g[s]
            turns = (
                (part.y, sums.grad_y, g[:, first:], W_y, sums.grad_z),
                (part.z, sums.grad_z, g[:, :first], W, sums.grad_y),
            )
            for second, (state, carried, due, matrix, other) in zip((1, 0), turns, strict=True):
                grad = sums.grad[s] if sums.grad is not None and second else None
                launch(
                    _half_step_back, triton.cdiv(total, block), part.acts[s], state[s],
                    part.scalars, gap, part.lengths, grad, carried, g, by_gap, part.first + s,
                    hidden, total, SECOND=second, HAS_GRAD=grad is not None, BLOCK=block,
                    warps=block // 32, **flags,
                )  # fmt: skip
                add_product(other, operand(due, part.precision), matrix)

    def _flags(self, part: Part) -> dict[str, Any]:
        return {
            "CLIPPED": self.clipped,
            "GATED": self.gated,
            "HAS_ELAPSED": part.elapsed is not None,
            "HAS_LENGTHS": part.lengths is not None,
        }

    def add_weight_gradients(self, part: Part, sums: Sums, grads: list[Tensor]) -> None:
        g = operand(sums.g.flatten(0, 1).t(), part.precision)
        first = len(g) // self.sections * (self.sections - 1)
        sources = (part.y[:-1], part.z[1:])
        for grad, rows, state in zip(grads, (g[:first], g[first:]), sources, strict=True):
            add_product(grad, rows, operand(state.flatten(0, 1), part.precision))

    def finish(self, elementwise: Tensor, grads: list[Tensor], scalars: Tensor) -> None:
        """Nothing here: there are no elementwise weights."""


MODELS = {
    "lem": _LEM(),
    "lem_clipped": _LEM(clipped=True),
    "lem_single_scale": _LEM(gated=False),
}


def lem_triton(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.lem`` on a GPU."""
    name = "lem" if gate_floor is None else "lem_clipped"
    if not multiscale:
        name = "lem_single_scale"
    flat = [w for (V, W, W_y, b) in weights for w in (V, b, None, W, W_y)]
    values = scalar_values(x, [dt, gate_floor or 0.0])
    return run(name, x, flat, y0, z0, values, **shared)
