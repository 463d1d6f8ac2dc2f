"""What the papers prove about graphs with a node held fixed, without gating (section 8.2).

ReLU and positive features, so that X' = A X - X; d is the largest degree, Δ_1 the eccentricity of
node 1, the first here, which is held; S = Σ_i X_i² of the deviations from it.

What the checks take, unless they say otherwise:

    x: Perturbations, zero at the first node.
    coupling: A.
    times: Where to look.

Shape: coupling [v, v]; x [v, m]; times, measured and bound [K].
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic_papers.theory.bounds.graphcon_energy import features, symmetric_stochastic
from anharmonic_papers.theory.graphs import (
    difference_sum,
    eccentricity,
    joined,
    metropolis_matrix,
    neighbours,
    path,
    random_graph,
    random_walk_matrix,
)
from anharmonic_papers.theory.integrate import linear_flow
from anharmonic_papers.theory.statements import Check, statement

_EDGES = random_graph(10, 6, seed=0)


def anchored(x: Tensor) -> bool:
    """Whether the first node is held at zero."""
    return bool((x[0] == 0).all())


def edges_of(coupling: Tensor) -> Tensor:
    """The edges of the graph that a coupling joins."""
    return joined(coupling).nonzero().T


def _poincare(x: Tensor, edge_index: Tensor, printed: bool) -> Check:
    nodes = len(x)
    weights = neighbours(edge_index, nodes)
    far = eccentricity(edge_index, nodes)
    constant = weights.sum(1).max() * far if printed else nodes * far / 2
    return Check(
        measured=x.square().sum(),
        bound=constant * difference_sum(x, weights),
        assumptions={"Y_1 = 0": anchored(x), "connected": True},
        quantity="Σ Y_i²",
    )


def ramp(nodes: int) -> Tensor:
    """Features i - 1, [nodes, 1]."""
    return torch.arange(nodes, dtype=torch.float64)[:, None]


@statement(
    "g2-poincare",
    number="T 8.2.4",
    chapter="Gradient Gating",
    claim="Y_1 = 0 on a connected graph implies ΣY_i² ≤ (v Δ_1/2) Σ_iΣ_{j∈N_i}|Y_j - Y_i|².",
    state="corrected",
    example=lambda: poincare(ramp(20) / 2, path(20)),
    remark="v/2 in place of d: an edge may lie on the shortest paths of up to v - 1 nodes.",
)
def poincare(x: Tensor, edge_index: Tensor) -> Check:
    """The sum of squares against the differences between neighbours.

    Args:
        x: Y, zero at the first node.
        edge_index: The graph.

    Shape: x [v, m]; measured and bound are numbers.
    """
    return _poincare(x, edge_index, printed=False)


@statement(
    "g2-poincare-printed",
    number="T 8.2.4",
    chapter="Gradient Gating",
    claim="The same with d Δ_1 in place of v Δ_1/2.",
    state="false",
    example=lambda: poincare_printed(ramp(20), path(20)),
    remark="The path with Y_i = i - 1: 2470 against 1444 at v = 20, 20540 against 6084 at v = 40.",
)
def poincare_printed(x: Tensor, edge_index: Tensor) -> Check:
    """The sum of squares against the printed bound; arguments as ``poincare``."""
    return _poincare(x, edge_index, printed=True)


def _ungated(coupling: Tensor, x: Tensor, times: Tensor, printed: bool) -> Check:
    edges, nodes = edges_of(coupling), len(x)
    reduced = coupling[1:, 1:] - torch.eye(nodes - 1, dtype=x.dtype)
    total = linear_flow(reduced, x[1:], times).square().sum((1, 2))
    least = coupling[joined(coupling) > 0].min()
    far, degree = eccentricity(edges, nodes), joined(coupling).sum(1).max()
    rate = least / (degree * far) if printed else 2 * least / (nodes * far)
    return Check(
        measured=total,
        bound=x.square().sum() * (-rate * times).exp(),
        assumptions={
            **symmetric_stochastic(coupling),
            "A ≥ 0": bool((coupling >= 0).all()),
            "node 1 held": anchored(x),
        },
        tolerance=1e-9,
        places=times,
        axis="time t",
        quantity="S(t) = Σ X_i²",
    )


@statement(
    "g2-no-gating",
    number="T 8.2.3",
    chapter="Gradient Gating",
    claim="Without gating, A symmetric with rows of sum 1 and at least a on edges, one node held: "
    "S(t) ≤ S(0) e^(-2at/(v Δ_1)).",
    state="corrected",
    example=lambda: no_gating(
        metropolis_matrix(path(20), 20), ramp(20), torch.linspace(0, 600, 61).double()
    ),
    remark="With the corrected Poincaré constant in place of d Δ_1. The rate is taken as 1; "
    "literally, p = 0 makes it tanh(d).",
)
def no_gating(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """S of the linearised system, by the matrix exponential without the first row."""
    return _ungated(coupling, x, times, printed=False)


@statement(
    "g2-no-gating-printed",
    number="T 8.2.3",
    chapter="Gradient Gating",
    claim="The same with the rate a/(d Δ_1).",
    state="false",
    example=lambda: no_gating_printed(
        metropolis_matrix(path(20), 20), ramp(20), torch.linspace(0, 600, 61).double()
    ),
    remark="It rests on T 8.2.4; the path of 20 nodes decays more slowly.",
)
def no_gating_printed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """S against the printed rate; arguments as ``no_gating``."""
    return _ungated(coupling, x, times, printed=True)


def deviations(nodes: int, seed: int) -> Tensor:
    """Normally distributed features less those of the first node, [nodes, 1]."""
    x = features(nodes, 1, seed)
    return x - x[0]


@statement(
    "g2-relaxed",
    number="T 8.2.6",
    chapter="Gradient Gating",
    claim="The assumptions of T 8.2.3 can be relaxed (A not symmetric, no node held): S still "
    "decays exponentially, S(t) ≤ κ² S(0) e^(-2rt), r the spectral gap, κ the eigenvectors' "
    "condition.",
    state="open",
    example=lambda: relaxed(
        random_walk_matrix(_EDGES, 10), deviations(10, 0), torch.linspace(0, 60, 61).double()
    ),
    remark="The remark gives no formula; tried here with A_ij = 1/d_i and one node held.",
)
def relaxed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """S of the linearised system with an asymmetric coupling, against its spectral bound."""
    reduced = coupling[1:, 1:] - torch.eye(len(x) - 1, dtype=x.dtype)
    values, vectors = torch.linalg.eig(reduced)
    total = linear_flow(reduced, x[1:], times).square().sum((1, 2))
    gap = -values.real.max()
    return Check(
        measured=total,
        bound=torch.linalg.cond(vectors) ** 2 * total[0] * (-2 * gap * times).exp(),
        assumptions={
            "rows of A sum to 1": bool((coupling.sum(1) - 1).abs().max() < 1e-10),
            "spectral gap r > 0": bool(gap > 0),
            "node 1 held": anchored(x),
        },
        tolerance=1e-6,
        places=times,
        axis="time t",
        quantity="S(t) = Σ X_i²",
    )
