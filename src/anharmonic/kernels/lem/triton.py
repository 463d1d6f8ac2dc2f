"""LEM on a GPU: where its four recurrent matrices fit on chip, one program walks a few sequences.

Beyond that, a step is two products of the library and two kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.kernels.elementary import (
    ROWS,
    block_of,
    fits_on_chip,
    launch,
    on_chip,
    sigmoid_of,
    tanh_of,
)
from anharmonic.kernels.precision import add_product, operand
from anharmonic.kernels.tiles import Model, Part, Sums
from anharmonic.kernels.triton import run, scalar_values

AHEAD = tl.constexpr(3)


@triton.jit
def _gate(o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr) -> tl.tensor:
    """A gate from its sigmoid."""
    gate = h * o
    if CLIPPED:
        gate = tl.where(gate < floor, floor, tl.where(gate > 1.0, 1.0, gate))
    return gate


@triton.jit
def _by_sigmoid(
    by_gate: tl.tensor, o: tl.tensor, h: tl.tensor, floor: tl.tensor, CLIPPED: tl.constexpr
) -> tl.tensor:
    """The gradient of a gate, 0 where it is clipped."""
    if CLIPPED:
        return tl.where((h * o < floor) | (h * o > 1.0), 0.0, by_gate)
    else:
        return by_gate


@triton.jit
def _forward(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    filled = (inner[:, None] < hidden) & (column[None, :] < hidden)
    turned = column[None, :] * hidden + inner[:, None]
    SECTIONS: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    at_acts = row[:, None] * (SECTIONS * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = tl.load(weight_y + turned, mask=filled, other=0.0)
        W_2 = tl.load(weight_y + (block + turned), mask=filled, other=0.0)
    W_z = tl.load(weight_y + ((SECTIONS - 2) * block + turned), mask=filled, other=0.0)
    W_y = tl.load(weight_z + turned, mask=filled, other=0.0)
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for n in tl.range(0, steps, num_stages=AHEAD):
        here = stride * n + at
        drive = acts + (stride * SECTIONS * n + at_acts)
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        state = y_n.to(W_y.dtype)
        x_z = tl.load(drive + (SECTIONS - 2) * hidden, mask=inside, other=0.0)
        x_y = tl.load(drive + (SECTIONS - 1) * hidden, mask=inside, other=0.0)
        t_z = tanh_of(tl.dot(state, W_z, x_z, input_precision=PRECISION))
        a = h
        e = h
        if GATED:
            x_1 = tl.load(drive, mask=inside, other=0.0)
            x_2 = tl.load(drive + hidden, mask=inside, other=0.0)
            o_1 = sigmoid_of(tl.dot(state, W_1, x_1, input_precision=PRECISION))
            o_2 = sigmoid_of(tl.dot(state, W_2, x_2, input_precision=PRECISION))
            a = _gate(o_1, h, floor, CLIPPED)
            e = _gate(o_2, h, floor, CLIPPED)
            tl.store(drive, o_1, mask=inside)
            tl.store(drive + hidden, o_2, mask=inside)
        z_new = tl.fma(a, t_z - z_n, z_n)
        t_y = tanh_of(tl.dot(z_new.to(W_y.dtype), W_y, x_y, input_precision=PRECISION))
        y_new = tl.fma(e, t_y - y_n, y_n)
        if HAS_LENGTHS:
            runs = (first + n < length)[:, None]
            z_new = tl.where(runs, z_new, z_n)
            y_new = tl.where(runs, y_new, y_n)
        y_n = y_new
        z_n = z_new
        tl.store(drive + (SECTIONS - 2) * hidden, t_z, mask=inside)
        tl.store(drive + (SECTIONS - 1) * hidden, t_y, mask=inside)
        tl.store(y + (here + stride), y_n, mask=inside)
        tl.store(z + (here + stride), z_n, mask=inside)


@triton.jit
def _backward(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, weight_y: tl.tensor, weight_z: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    steps: tl.tensor, first: tl.tensor, batch: tl.tensor, hidden: tl.tensor,
    CLIPPED: tl.constexpr, GATED: tl.constexpr, HAS_ELAPSED: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, HAS_GRAD: tl.constexpr, BY_GAP: tl.constexpr,
    PRECISION: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr,
) -> None:  # fmt: skip
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column, inner = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    inside = (row[:, None] < batch) & (column[None, :] < hidden)
    filled = (inner[:, None] < hidden) & (column[None, :] < hidden)
    straight = inner[:, None] * hidden + column[None, :]
    SECTIONS: tl.constexpr = 4 if GATED else 2
    at = row[:, None] * hidden + column[None, :]
    at_acts = row[:, None] * (SECTIONS * hidden) + column[None, :]
    stride = tl.cast(batch, tl.int64) * hidden
    block = hidden * hidden
    if GATED:
        W_1 = tl.load(weight_y + straight, mask=filled, other=0.0)
        W_2 = tl.load(weight_y + (block + straight), mask=filled, other=0.0)
    W_z = tl.load(weight_y + ((SECTIONS - 2) * block + straight), mask=filled, other=0.0)
    W_y = tl.load(weight_z + straight, mask=filled, other=0.0)
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    length = row * 0
    if HAS_LENGTHS:
        length = tl.load(lengths + row, mask=row < batch, other=0)
    for k in tl.range(0, steps, num_stages=AHEAD):
        n = steps - 1 - k
        here = stride * n + at
        kept = stride * SECTIONS * n + at_acts
        y_old = tl.load(y + here, mask=inside, other=0.0)
        z_old = tl.load(z + here, mask=inside, other=0.0)
        t_z = tl.load(acts + (kept + (SECTIONS - 2) * hidden), mask=inside, other=0.0)
        t_y = tl.load(acts + (kept + (SECTIONS - 1) * hidden), mask=inside, other=0.0)
        runs = inside
        if HAS_LENGTHS:
            runs = inside & (first + n < length)[:, None]
        h = dt
        if HAS_ELAPSED:
            gap = elapsed + (tl.cast(batch, tl.int64) * n + row)
            h = (tl.load(gap, mask=row < batch, other=0.0) * dt)[:, None]
        if HAS_GRAD:
            p += tl.load(grad + here, mask=inside, other=0.0)
        e = h
        by_h = p * (t_y - y_old)
        if GATED:
            o_2 = tl.load(acts + (kept + hidden), mask=inside, other=0.0)
            e = _gate(o_2, h, floor, CLIPPED)
            by_h = _by_sigmoid(by_h, o_2, h, floor, CLIPPED) * o_2
            g_2 = tl.where(runs, h * by_h * (1.0 - o_2), 0.0)
            tl.store(g + (kept + hidden), g_2, mask=inside)
        g_y = tl.where(runs, p * e * (1.0 - t_y * t_y), 0.0)
        tl.store(g + (kept + (SECTIONS - 1) * hidden), g_y, mask=inside)
        p = tl.where(runs, tl.fma(-p, e, p), p)
        q = tl.dot(g_y.to(W_y.dtype), W_y, q, input_precision=PRECISION)
        a = h
        also_h = q * (t_z - z_old)
        if GATED:
            o_1 = tl.load(acts + kept, mask=inside, other=0.0)
            a = _gate(o_1, h, floor, CLIPPED)
            also_h = _by_sigmoid(also_h, o_1, h, floor, CLIPPED) * o_1
            g_1 = tl.where(runs, h * also_h * (1.0 - o_1), 0.0)
            tl.store(g + kept, g_1, mask=inside)
            p = tl.dot(g_1.to(W_y.dtype), W_1, p, input_precision=PRECISION)
            p = tl.dot(g_2.to(W_y.dtype), W_2, p, input_precision=PRECISION)
        g_z = tl.where(runs, q * a * (1.0 - t_z * t_z), 0.0)
        tl.store(g + (kept + (SECTIONS - 2) * hidden), g_z, mask=inside)
        q = tl.where(runs, tl.fma(-q, a, q), q)
        p = tl.dot(g_z.to(W_y.dtype), W_z, p, input_precision=PRECISION)
        if BY_GAP:
            tl.store(by_gap + here, tl.where(runs, dt * (by_h + also_h), 0.0), mask=inside)
    tl.store(grad_y + at, p, mask=inside)
    tl.store(grad_z + at, q, mask=inside)


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
    kept = row * (SECTIONS * hidden) + at % hidden
    gate_at = kept + SECOND * hidden
    state_at = kept + (SECTIONS - 2 + SECOND) * hidden
    dt, floor = tl.load(scalars), tl.load(scalars + 1)
    h = dt
    if HAS_ELAPSED:
        h = tl.load(elapsed + row, mask=inside, other=0.0) * dt
    gate = h
    if GATED:
        o = sigmoid_of(tl.load(pre + gate_at, mask=inside, other=0.0))
        tl.store(pre + gate_at, o, mask=inside)
        gate = _gate(o, h, floor, CLIPPED)
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
    kept = row * (SECTIONS * hidden) + at % hidden
    gate_at = kept + SECOND * hidden
    state_at = kept + (SECTIONS - 2 + SECOND) * hidden
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
        gate = _gate(o, h, floor, CLIPPED)
        by_h = _by_sigmoid(by_h, o, h, floor, CLIPPED) * o
        tl.store(g + gate_at, tl.where(runs, h * by_h * (1.0 - o), 0.0), mask=inside)
    tl.store(g + state_at, tl.where(runs, p * gate * (1.0 - t * t), 0.0), mask=inside)
    tl.store(carried + at, tl.where(runs, tl.fma(-p, gate, p), p), mask=inside)
    if BY_GAP:
        gap = tl.where(runs, dt * by_h, 0.0)
        if SECOND == 0:
            gap += tl.load(by_gap + at, mask=inside, other=0.0)
        tl.store(by_gap + at, gap, mask=inside)


class _LEM(Model):
    """Weights of a layer: V, b, none, W, Wy; scalars: dt, gate floor; kept: all activations."""

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
                _forward, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, W, W_y,
                part.scalars, part.elapsed, part.lengths, n, part.first, batch, hidden,
                **flags, **on_chip(hidden, part.precision),
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
                _backward, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, W, W_y,
                part.scalars, part.elapsed, part.lengths, sums.grad, sums.grad_y, sums.grad_z,
                sums.g, sums.by_gap, n, part.first, batch, hidden, HAS_GRAD=has_grad, **flags,
                **on_chip(hidden, part.precision),
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
    """The chain of ``kernels.lem`` on a GPU."""
    name = "lem" if gate_floor is None else "lem_clipped"
    if not multiscale:
        name = "lem_single_scale"
    flat = [w for (V, W, W_y, b) in weights for w in (V, b, None, W, W_y)]
    values = scalar_values(x, [dt, gate_floor or 0.0])
    return run(name, x, flat, y0, z0, values, **shared)
