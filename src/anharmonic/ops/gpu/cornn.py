"""coRNN on a GPU: where both recurrent matrices fit on chip, one program walks a few sequences.

Beyond that, a step is two products of the library and one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from anharmonic.ops.gpu.backend import run, scalar_values
from anharmonic.ops.gpu.cornn_on_chip import backward_on_chip, carried_back, forward_on_chip, moved
from anharmonic.ops.gpu.elementary import ROWS, block_of, fits_on_chip, launch, on_chip, tanh_of
from anharmonic.ops.gpu.parts import Model, Part, Sums
from anharmonic.ops.precision import add_product, operand


@triton.jit
def _step(
    pre: tl.tensor, y: tl.tensor, z: tl.tensor, y_next: tl.tensor, z_next: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    step: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One step behind its products: tanh in their place, and the new states."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    dt, gamma, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    y_n = tl.load(y + at, mask=inside, other=0.0)
    z_n = tl.load(z + at, mask=inside, other=0.0)
    h = dt
    if HAS_ELAPSED:
        h = tl.load(elapsed + at // hidden, mask=inside, other=0.0) * dt
    t = tanh_of(tl.load(pre + at, mask=inside, other=0.0))
    z_new = moved(y_n, z_n, t, h, gamma, epsilon, IMPLICIT)
    y_new = tl.fma(h, z_new, y_n)
    if HAS_LENGTHS:
        runs = step < tl.load(lengths + at // hidden, mask=inside, other=0)
        z_new = tl.where(runs, z_new, z_n)
        y_new = tl.where(runs, y_new, y_n)
    tl.store(pre + at, t, mask=inside)
    tl.store(y_next + at, y_new, mask=inside)
    tl.store(z_next + at, z_new, mask=inside)


@triton.jit
def _step_back(
    acts: tl.tensor, y: tl.tensor, z: tl.tensor, z_next: tl.tensor,
    scalars: tl.tensor, elapsed: tl.tensor, lengths: tl.tensor,
    grad: tl.tensor, grad_y: tl.tensor, grad_z: tl.tensor, g: tl.tensor, by_gap: tl.tensor,
    sum_dt: tl.tensor, sum_gamma: tl.tensor, sum_epsilon: tl.tensor,
    step: tl.tensor, hidden: tl.tensor, total: tl.tensor,
    IMPLICIT: tl.constexpr, HAS_ELAPSED: tl.constexpr, HAS_LENGTHS: tl.constexpr,
    HAS_GRAD: tl.constexpr, BY_GAP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """One step back before its products."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    dt, gamma, epsilon = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2)
    p = tl.load(grad_y + at, mask=inside, other=0.0)
    q = tl.load(grad_z + at, mask=inside, other=0.0)
    t = tl.load(acts + at, mask=inside, other=0.0)
    y_old = tl.load(y + at, mask=inside, other=0.0)
    z_old = tl.load(z + at, mask=inside, other=0.0)
    z_new = tl.load(z_next + at, mask=inside, other=0.0)
    h = dt
    e = 1.0
    if HAS_ELAPSED:
        e = tl.load(elapsed + at // hidden, mask=inside, other=0.0)
        h = e * dt
    if HAS_GRAD:
        p += tl.load(grad + at, mask=inside, other=0.0)
    p_new, q_new, a, by_h, for_gamma, for_epsilon = carried_back(
        p, q, t, y_old, z_old, z_new, h, gamma, epsilon, IMPLICIT
    )
    if HAS_LENGTHS:
        runs = step < tl.load(lengths + at // hidden, mask=inside, other=0)
        p_new = tl.where(runs, p_new, p)
        q_new = tl.where(runs, q_new, q)
        a = tl.where(runs, a, 0.0)
        by_h = tl.where(runs, by_h, 0.0)
        for_gamma = tl.where(runs, for_gamma, 0.0)
        for_epsilon = tl.where(runs, for_epsilon, 0.0)
    tl.store(g + at, a, mask=inside)
    if BY_GAP:
        tl.store(by_gap + at, dt * by_h, mask=inside)
    tl.store(grad_y + at, p_new, mask=inside)
    tl.store(grad_z + at, q_new, mask=inside)
    by_dt = tl.fma(by_h, e, tl.load(sum_dt + at, mask=inside, other=0.0))
    tl.store(sum_dt + at, by_dt, mask=inside)
    for_gamma += tl.load(sum_gamma + at, mask=inside, other=0.0)
    tl.store(sum_gamma + at, for_gamma, mask=inside)
    for_epsilon += tl.load(sum_epsilon + at, mask=inside, other=0.0)
    tl.store(sum_epsilon + at, for_epsilon, mask=inside)


class _CoRNN(Model):
    """Weights of a layer: V, b, none, W, 𝒲; scalars: dt, γ, ε; saved of a step: tanh A."""

    recurrent = 2
    elementwise_sums = 3

    def __init__(self, implicit: bool) -> None:
        self.implicit = implicit

    def forward(self, part: Part) -> None:
        n, batch, hidden = part.acts.shape
        flags = {
            "IMPLICIT": self.implicit,
            "HAS_ELAPSED": part.elapsed is not None,
            "HAS_LENGTHS": part.lengths is not None,
        }
        matrices = [operand(w, part.precision) for w in part.weights]
        if fits_on_chip(hidden, part.precision):
            launch(
                forward_on_chip, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, *matrices,
                part.scalars, part.elapsed, part.lengths, n, part.first, batch, hidden,
                **flags, **on_chip(hidden, part.precision, 1),
            )  # fmt: skip
            return
        total = batch * hidden
        block = block_of(total)
        for s in range(n):
            for state, matrix in zip((part.y[s], part.z[s]), matrices, strict=True):
                add_product(part.acts[s], operand(state, part.precision), matrix.t())
            launch(
                _step, triton.cdiv(total, block), part.acts[s], part.y[s], part.z[s],
                part.y[s + 1], part.z[s + 1], part.scalars,
                None if part.elapsed is None else part.elapsed[s], part.lengths, part.first + s,
                hidden, total, warps=block // 32, BLOCK=block, **flags,
            )  # fmt: skip

    def backward(self, part: Part, sums: Sums) -> None:
        n, batch, hidden = part.acts.shape
        flags = {
            "IMPLICIT": self.implicit,
            "HAS_ELAPSED": part.elapsed is not None,
            "HAS_LENGTHS": part.lengths is not None,
            "HAS_GRAD": sums.grad is not None,
            "BY_GAP": sums.by_gap is not None,
        }
        matrices = [operand(w, part.precision) for w in part.weights]
        if fits_on_chip(hidden, part.precision):
            launch(
                backward_on_chip, triton.cdiv(batch, ROWS), part.acts, part.y, part.z, *matrices,
                part.scalars, part.elapsed, part.lengths, sums.grad, sums.grad_y, sums.grad_z,
                sums.g, sums.by_gap, *sums.elementwise, n, part.first, batch, hidden, **flags,
                **on_chip(hidden, part.precision, 1),
            )  # fmt: skip
            return
        total = batch * hidden
        block = block_of(total)
        for s in reversed(range(n)):
            launch(
                _step_back, triton.cdiv(total, block), part.acts[s], part.y[s], part.z[s],
                part.z[s + 1], part.scalars, None if part.elapsed is None else part.elapsed[s],
                part.lengths, None if sums.grad is None else sums.grad[s], sums.grad_y,
                sums.grad_z, sums.g[s], None if sums.by_gap is None else sums.by_gap[s],
                *sums.elementwise, part.first + s, hidden, total, warps=block // 32, BLOCK=block,
                **flags,
            )  # fmt: skip
            g = operand(sums.g[s], part.precision)
            for grad, matrix in zip((sums.grad_y, sums.grad_z), matrices, strict=True):
                add_product(grad, g, matrix)

    def add_weight_gradients(self, part: Part, sums: Sums, grads: list[Tensor]) -> None:
        g = operand(sums.g.flatten(0, 1).t(), part.precision)
        for grad, state in zip(grads, (part.y, part.z), strict=True):
            add_product(grad, g, operand(state[:-1].flatten(0, 1), part.precision))

    def finish(self, elementwise: Tensor, grads: list[Tensor], scalars: Tensor) -> None:
        scalars.add_(elementwise.sum((1, 2)))


MODELS = {"cornn_explicit": _CoRNN(implicit=False), "cornn_implicit": _CoRNN(implicit=True)}


def cornn_triton(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.cornn`` on a GPU."""
    flat = [w for (V, W, W_z, b) in weights for w in (V, b, None, W, W_z)]
    values = scalar_values(x, [dt, frequency, damping])
    return run(f"cornn_{scheme}", x, flat, y0, z0, values, **shared)
