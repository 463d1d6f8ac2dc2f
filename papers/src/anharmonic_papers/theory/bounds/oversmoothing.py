"""What the papers say oversmoothing is (thesis, chapters 6 to 8), with both models as cases.

D is the Dirichlet energy (6.2), (1/v) Σ_iΣ_{j∈N_i}|X_i - X_j|².

What the checks take, unless they say otherwise:

    x: Features.
    edge_index: The graph.
    coupling: A.
    times: Where to look.
    damping: α.

Shape: coupling [v, v]; x [v, m]; times, measured and bound [K].
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from anharmonic_papers.theory.bounds.graphcon_energy import features, oscillation
from anharmonic_papers.theory.graphs import (
    difference_sum,
    joined,
    laplacian_values,
    metropolis_matrix,
    neighbours,
    random_graph,
)
from anharmonic_papers.theory.integrate import linear_flow
from anharmonic_papers.theory.statements import Check, statement

_EDGES = random_graph(12, 8, seed=0)
_TIMES = torch.linspace(0, 80, 81, dtype=torch.float64)


def dirichlet(x: Tensor, coupling: Tensor) -> Tensor:
    """D of features [..., v, m] on the graph that a coupling joins."""
    return difference_sum(x, joined(coupling)) / x.shape[-2]


def _slowest_mode() -> Tensor:
    """The second eigenvector of the Laplacian, for which the inequality is an equation."""
    weights = neighbours(_EDGES, 12)
    modes: Tensor = torch.linalg.eigh(torch.diag(weights.sum(1)) - weights)[1]
    return modes[:, 1:2]


@statement(
    "similarity-zero",
    number="T 6.0.1, 7.2.2",
    chapter="GraphCON",
    claim="D(X) = 0 exactly on constant features of a connected graph: with λ the second smallest "
    "eigenvalue of the Laplacian, D(X) ≥ (2λ/v) Σ_i|X_i - mean|².",
    state="holds",
    example=lambda: similarity_zero(_slowest_mode(), _EDGES),
    remark="The paper asks for zero exactly on constants; the inequality says how far from zero "
    "D is elsewhere.",
)
def similarity_zero(x: Tensor, edge_index: Tensor) -> Check:
    """D against the distance from the constants.

    Shape: x [v, m]; measured and bound are numbers.
    """
    weights = neighbours(edge_index, len(x))
    values = laplacian_values(weights)
    apart = (x - x.mean(0)).square().sum()
    return Check(
        measured=difference_sum(x, weights) / len(x),
        bound=2 * values[1] / len(x) * apart,
        relation=">=",
        assumptions={"connected": bool(values[1] > 1e-12)},
        quantity="D(X)",
    )


def _subadditive(x: Tensor, y: Tensor, edge_index: Tensor, power: float) -> Check:
    weights = neighbours(edge_index, len(x))
    measure = [(difference_sum(z, weights) / len(x)) ** power for z in (x + y, x, y)]
    return Check(measured=measure[0], bound=measure[1] + measure[2], quantity="μ(X + Y)")


@statement(
    "similarity-subadditive",
    number="T 6.0.1, 7.2.2",
    chapter="GraphCON",
    claim="√D is subadditive, so that it is a node-similarity measure.",
    state="corrected",
    example=lambda: similarity_subadditive(features(12, 3, 0), 2 * features(12, 3, 0), _EDGES),
    remark="The square root, not D itself.",
)
def similarity_subadditive(x: Tensor, y: Tensor, edge_index: Tensor) -> Check:
    """√D of a sum against the sum of √D.

    Args:
        y: Other features.

    Shape: x, y [v, m]; measured and bound are numbers.
    """
    return _subadditive(x, y, edge_index, 0.5)


@statement(
    "similarity-subadditive-printed",
    number="T 6.0.1, 7.2.2",
    chapter="GraphCON",
    claim="D itself is subadditive.",
    state="false",
    example=lambda: similarity_subadditive_printed(features(12, 3, 0), features(12, 3, 0), _EDGES),
    remark="D(2X) = 4 D(X), which is more than 2 D(X).",
)
def similarity_subadditive_printed(x: Tensor, y: Tensor, edge_index: Tensor) -> Check:
    """D of a sum against the sum of D; arguments as ``similarity_subadditive``."""
    return _subadditive(x, y, edge_index, 1.0)


def _to_one_constant(xs: Tensor, coupling: Tensor, times: Tensor) -> Check:
    energy = dirichlet(xs, coupling)
    quarters = [part.max() for part in energy.tensor_split(4)]
    rate = (energy[0] / energy[-1]).log() / (times[-1] - times[0]) / 2
    return Check(
        measured=xs.flatten(1).norm(dim=1),
        bound=100 * xs[0].norm() * (-rate * times).exp(),
        assumptions={
            "D decays exponentially": all(b < 0.1 * a for a, b in itertools.pairwise(quarters))
        },
        places=times,
        axis="time t",
        quantity="distance from c",
    )


def _to_all_constants(xs: Tensor, coupling: Tensor, times: Tensor) -> Check:
    weights = joined(coupling)
    values = laplacian_values(weights)
    apart = (xs - xs.mean(1, keepdim=True)).square().sum((1, 2))
    energy = difference_sum(xs, weights)
    return Check(
        measured=torch.stack([apart, energy]),
        bound=torch.stack([energy / (2 * values[1]), 2 * values[-1] * apart]),
        assumptions={"connected": bool(values[1] > 1e-12)},
        places=times,
        axis="time t",
        quantity="squared distance from the constants; v D",
    )


def _ungated(coupling: Tensor, x: Tensor, times: Tensor) -> Tensor:
    return linear_flow(coupling - torch.eye(len(x), dtype=x.dtype), x, times)


def _near_constant() -> tuple[Tensor, Tensor, Tensor]:
    return metropolis_matrix(_EDGES, 12), 0.1 * features(12, 1, 0), _TIMES


@statement(
    "oversmoothing-point-printed",
    number="T 7.2.3",
    chapter="GraphCON",
    claim="If D decays exponentially, some (c, 0) is exponentially stable: what starts near c "
    "comes to c at that rate.",
    state="false",
    example=lambda: oversmoothing_point_printed(*_near_constant(), 0.5),
    remark="In the linearised system D decays like e^(-αt), while features started near c end at "
    "another constant. The converse, that exponential stability means oversmoothing, stands.",
)
def oversmoothing_point_printed(
    coupling: Tensor, x: Tensor, times: Tensor, damping: float
) -> Check:
    """The distance from c against the exponential at which D decays.

    Args:
        x: Features X(0) as distances from c; the velocities start at zero.
    """
    return _to_one_constant(oscillation(coupling, x, 0 * x, times, damping)[0], coupling, times)


@statement(
    "oversmoothing-set",
    number="T 7.2.3",
    chapter="GraphCON",
    claim="D decays exponentially iff the distance to the set of constant features does: "
    "Σ|X_i - mean|² ≤ v D/(2λ) and v D ≤ 2λ_max Σ|X_i - mean|².",
    state="corrected",
    example=lambda: oversmoothing_set(*_near_constant(), 0.5),
    remark="The set of constants in place of a single one.",
)
def oversmoothing_set(coupling: Tensor, x: Tensor, times: Tensor, damping: float) -> Check:
    """The squared distance to the constants and v D, each bounded by the other, along a solution.

    Args:
        x: Features X(0); the velocities start at zero.

    Shape: coupling [v, v]; x [v, m]; times [K]; measured and bound [2, K].
    """
    return _to_all_constants(oscillation(coupling, x, 0 * x, times, damping)[0], coupling, times)


@statement(
    "g2-oversmoothing-point-printed",
    number="T 8.2.2",
    chapter="Gradient Gating",
    claim="If D decays exponentially, some constant c is exponentially stable.",
    state="false",
    example=lambda: gating_point_printed(*_near_constant()),
    remark="As for T 7.2.3, here without gating: features end at their mean, not at c.",
)
def gating_point_printed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """The distance from c along X' = A X - X, against the exponential at which D decays.

    Args:
        x: Features X(0) as distances from c.
    """
    return _to_one_constant(_ungated(coupling, x, times), coupling, times)


@statement(
    "g2-oversmoothing-set",
    number="T 8.2.2",
    chapter="Gradient Gating",
    claim="D decays exponentially iff the distance to the set of constant features does.",
    state="corrected",
    example=lambda: gating_set(*_near_constant()),
    remark="As for T 7.2.3.",
)
def gating_set(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """Both distances along X' = A X - X, each bounded by the other.

    Args:
        x: Features X(0).

    Shape: coupling [v, v]; x [v, m]; times [K]; measured and bound [2, K].
    """
    return _to_all_constants(_ungated(coupling, x, times), coupling, times)
