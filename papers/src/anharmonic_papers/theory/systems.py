"""Systems that a LEM is to follow, step by step as they are defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from anharmonic_papers.theory.networks import TanhNetwork


def system_states(f: TanhNetwork, u: Tensor) -> Tensor:
    """φ_n = f(φ_{n-1}, u_n) from φ_0 = 0, u [T, p] -> [T, d]."""
    phi, found = f.output.new_zeros(len(f.output)), []
    for x in u:
        phi = f(phi, x)
        found.append(phi)
    return torch.stack(found)


def scales_states(
    fast: TanhNetwork, slow: Sequence[tuple[TanhNetwork, float]], u: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """φ_n and every ψ^j_n = (1-τ_j) ψ^j_{n-1} + τ_j G_j from zero, [T, d] and [T, d_j]."""
    phi = u.new_zeros(len(fast.output))
    psi = [u.new_zeros(len(G.output)) for G, _ in slow]
    fasts, slows = [], []
    for x in u:
        phi = fast(phi, *psi, x)
        new = [G(phi, *psi, x) for G, _ in slow]
        psi = [(1 - tau) * p + tau * q for (_, tau), p, q in zip(slow, psi, new, strict=True)]
        fasts.append(phi)
        slows.append(psi)
    return torch.stack(fasts), [torch.stack(one) for one in zip(*slows, strict=True)]


def multiscale_method_states(
    f: Callable[[Tensor], Tensor],
    g: Callable[[Tensor, Tensor], Tensor],
    sizes: tuple[int, int],
    *,
    micro: float,
    micro_steps: int,
    step: float,
    steps: int,
) -> tuple[Tensor, Tensor]:
    """The heterogeneous multiscale method: K micro steps of size δt, one macro step Δ; φ and ψ."""
    phi, psi = (torch.zeros(size, dtype=torch.float64) for size in sizes)
    fasts, slows = [], []
    for _ in range(steps):
        for _ in range(micro_steps):
            phi = phi + micro * (f(psi) - phi)
        psi = psi + step * g(phi, psi)
        fasts.append(phi)
        slows.append(psi)
    return torch.stack(fasts), torch.stack(slows)


def random_rnn(size: int, inputs: int) -> TanhNetwork:
    """A tanh RNN with normal weights as a system: f(h, u) = tanh(W h + V u + b)."""
    return TanhNetwork(
        torch.eye(size, dtype=torch.float64),
        (
            torch.randn(size, size, dtype=torch.float64) / math.sqrt(size),
            torch.randn(size, inputs, dtype=torch.float64),
        ),
        torch.randn(size, dtype=torch.float64),
    )
