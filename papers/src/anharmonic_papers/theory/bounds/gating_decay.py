"""What the papers prove about how fast gated nodes grow alike (thesis, section 8.2).

Scalar positive features and ReLU, so that X' = τ ⊙ (A X - X); d is the largest degree, Δ_1 the
eccentricity of node 1, the first here, which is held; S = Σ_i X_i² of the deviations from it.

What the checks take, unless they say otherwise:

    coupling: A.
    p: Exponent of the differences.
    times: Where to look, from 0 (see ``slow_times``).
    steps: Steps of the solver between two times.

Shape: coupling [v, v]; x [v, 1]; times, measured and bound [K].
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic import _checks, _tensors
from anharmonic_papers.theory.bounds.graphcon_energy import symmetric_stochastic
from anharmonic_papers.theory.bounds.held_node import anchored, edges_of, ramp
from anharmonic_papers.theory.graphs import (
    difference_sum,
    eccentricity,
    joined,
    metropolis_matrix,
    path,
    random_graph,
    random_walk_matrix,
)
from anharmonic_papers.theory.integrate import rk4
from anharmonic_papers.theory.statements import Check, statement

_EDGES = random_graph(10, 6, seed=0)


def slow_times(end: float, points: int) -> Tensor:
    """Times from 0 to ``end``, evenly spaced on the axis log(1 + t)."""
    return (
        torch.linspace(0, 1, points, dtype=torch.float64)
        .mul(torch.tensor(1 + end).double().log())
        .expm1()
    )


def _slowly(field: Callable[[Tensor], Tensor], x: Tensor, times: Tensor, steps: int) -> Tensor:
    """Solves X' = field(X) on the axis s = log(1 + t), where an algebraic decay is smooth."""
    states = rk4(lambda z, s: s.exp() * field(z), x, times.log1p(), steps)
    if not states.isfinite().all():
        raise ValueError(
            _checks.message(
                "the solution must stay finite",
                f"not so with steps={steps}",
                "take more steps between two times, or smaller features",
            )
        )
    return states


def _differences(x: Tensor, weights: Tensor, p: float) -> Tensor:
    """Σ_{j∈N_i}|X_j - X_i|^p of scalar features, [v, 1]."""
    return (weights * (x - x.T).abs() ** p).sum(1, keepdim=True)


def _column(x: Tensor) -> None:
    _tensors.has_shape("x", x, (len(x), 1), "the statement is about scalar features")


def _gated(
    coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int, printed: bool
) -> Check:
    _column(x)
    weights, nodes = joined(coupling), len(x)

    def field(z: Tensor) -> Tensor:
        rate = _differences(z, weights, p)
        mixed = coupling * (rate + rate.T) / 2
        moved = (mixed * (z.T - z)).sum(1, keepdim=True)
        return torch.cat([0 * moved[:1], moved[1:]])

    total = _slowly(field, x, times, steps).square().sum((1, 2))
    least, degree = coupling[weights > 0].min(), weights.sum(1).max()
    far = eccentricity(edges_of(coupling), nodes)
    poincare = degree * far if printed else torch.tensor(nodes * far / 2)
    constant = least / ((degree * nodes) ** (p / 2) * poincare ** (p / 2 + 1))
    return Check(
        measured=total,
        bound=total[0] * (2 / (2 + p * constant * total[0] ** (p / 2) * times)) ** (2 / p),
        assumptions={
            **symmetric_stochastic(coupling),
            "A ≥ 0": bool((coupling >= 0).all()),
            "node 1 held": anchored(x),
            "p > 0": p > 0,
        },
        tolerance=1e-9,
        places=times,
        axis="time t",
        quantity="S(t) = Σ X_i²",
    )


@statement(
    "g2-gated-decay",
    number="T 8.2.5",
    chapter="Gradient Gating",
    claim="With gating, S(t) ≤ S(0)(2/(2 + pC S(0)^(p/2) t))^(2/p), "
    "C = a/((d v)^(p/2) (v Δ_1/2)^(p/2+1)).",
    state="corrected",
    example=lambda: gated_decay(metropolis_matrix(path(2), 2), ramp(2), 2.0, slow_times(1e5, 41)),
    remark="With the corrected Poincaré constant. Quasi-linear: tanh dropped, and with it T1, the "
    "part of dS/dt that comes from unequal rates; so the coupling here is A_ij(τ_i + τ_j)/2. An "
    "upper bound alone does not exclude fast decay: see g2-gated-lower.",
)
def gated_decay(coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10) -> Check:
    """S of the quasi-linearised system with T1 = 0, against its bound.

    Args:
        x: Perturbations, zero at the first node.
    """
    return _gated(coupling, x, p, times, steps, printed=False)


@statement(
    "g2-gated-decay-printed",
    number="T 8.2.5",
    chapter="Gradient Gating",
    claim="The same with C = a/(d^(p+1) v^(p/2) Δ_1^((p+2)/2)).",
    state="false",
    example=lambda: gated_decay_printed(
        metropolis_matrix(path(40), 40), ramp(40) / 40, 2.0, slow_times(3e4, 41), 15
    ),
    remark="It rests on T 8.2.4: a ramp on the path of 40 nodes decays more slowly.",
)
def gated_decay_printed(
    coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10
) -> Check:
    """S against the printed bound; arguments as ``gated_decay``."""
    return _gated(coupling, x, p, times, steps, printed=True)


@statement(
    "g2-gated-lower",
    number="T 8.2.5",
    chapter="Gradient Gating",
    claim="Gating never lets D = Σ_iΣ_{j∈N_i}|X_j - X_i|² of positive features decay exponentially:"
    " D(t) ≥ (D(0)^(-p/2) + (p/2) K t)^(-2/p), K = 4d√(v d), for every A with rows of sum 1.",
    state="corrected",
    example=lambda: gated_lower(
        random_walk_matrix(path(2), 2), 1 + 0.3 * ramp(2), 2.0, slow_times(1e4, 41)
    ),
    remark="The lower bound that the paper's argument lacks; no node held, no symmetry.",
)
def gated_lower(coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10) -> Check:
    """D along X' = tanh(Σ_j|X_j - X_i|^p)(ReLU(A X) - X), against its lower bound.

    Args:
        x: Positive features.
    """
    _column(x)
    weights = joined(coupling)

    def field(z: Tensor) -> Tensor:
        return _differences(z, weights, p).tanh() * ((coupling @ z).relu() - z)

    energy = difference_sum(_slowly(field, x, times, steps), weights)
    degree = weights.sum(1).max()
    constant = 4 * degree * (len(x) * degree).sqrt()
    return Check(
        measured=energy,
        bound=(energy[0] ** (-p / 2) + p / 2 * constant * times) ** (-2 / p),
        relation=">=",
        tolerance=1e-9,
        assumptions={
            "A ≥ 0": bool((coupling >= 0).all()),
            "rows of A sum to 1": bool((coupling.sum(1) - 1).abs().max() < 1e-10),
            "features positive": bool((x > 0).all()),
            "p > 0": p > 0,
        },
        places=times,
        axis="time t",
        quantity="Σ_iΣ_j |X_j - X_i|²",
    )
