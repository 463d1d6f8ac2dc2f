"""Gradient Gating, G² (thesis, chapter 8): its range and limits, and graphs with a node held fixed.

With ReLU and positive features, X' = A X - X without gating and X' = τ ⊙ (A X - X) with it; d is
the largest degree, Δ_1 the eccentricity of node 1, the first here, which is held; S = Σ_i X_i² of
the deviations from it.

Arguments: x [v, m], features, or deviations that are zero at the first node; edge_index, the graph;
coupling [v, v], A; times [K], ascending from 0; p, the exponent of the differences; steps of the
solver between two times.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks, _tensors
from anharmonic.nn import GradientGating
from anharmonic_papers.theory.graphcon import (
    EDGES,
    from_plain,
    near_constant,
    run,
    to_all_constants,
    to_one_constant,
)
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    eccentricity,
    features,
    gcn_matrix,
    joined,
    metropolis_matrix,
    neighbours,
    path,
    random_graph,
    random_walk_matrix,
    rows_sum_to_one,
    symmetric_stochastic,
)
from anharmonic_papers.theory.integrate import linear_flow, rk4
from anharmonic_papers.theory.statements import Case, Check, statement

claim = partial(statement, chapter="Gradient Gating")
of_layers = partial(claim, axis="layer n")
of_sum = partial(claim, tolerance=1e-9, axis="time t", quantity="S(t) = Σ X_i²")


class Mixing(nn.Module):
    """A X W of an example, W normally distributed."""

    def __init__(self, width: int, scale: float, seed: int) -> None:
        super().__init__()
        self.coupling = gcn_matrix(EDGES, 12)
        self.weight = scale * features(width, width, seed)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The mixture of nodes and features."""
        return self.coupling @ x @ self.weight


def saturating() -> Case:
    """Two hundred layers of large weights, features outside [-1, 1], and the range of tanh."""
    convs = [Mixing(3, 5.0, seed) for seed in range(200)]
    layer = GradientGating(convs, 200, activation="tanh", gate_activation="tanh")
    return layer, 3 * features(12, 3, 0), EDGES, -1.0, 1.0


def in_range(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float, start: Tensor
) -> Check:
    """Highest and (negative) lowest feature of every layer; start: the range asked of X^0."""
    xs, _ = run(layer, x, edge_index)
    top = torch.maximum(start.max(), torch.tensor(high))
    bottom = torch.minimum(start.min(), torch.tensor(low))
    probe = layer._sigma(torch.linspace(-50, 50, 10001, dtype=torch.float64))
    inside = bool((probe >= low).all() and (probe <= high).all())
    return Check(
        torch.stack([xs.amax((1, 2)), -xs.amin((1, 2))]),
        torch.stack([top, -bottom])[:, None],
        {"σ between the given values": inside},
    )


@of_layers("T 8.2.1", "corrected", saturating, "largest X; largest -X")
def g2_range(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float
) -> Check:
    """For σ between σ̲ and σ̄: min(min X^0, σ̲) ≤ X_ik^n ≤ max(max X^0, σ̄).

    The range of the initial features replaces [-1, 1]. For ReLU only the lower bound is finite.
    """
    return in_range(layer, x, edge_index, low, high, x)


@of_layers("T 8.2.1", "false", saturating, "largest X; largest -X")
def g2_range_printed(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float
) -> Check:
    """The same with min(-1, σ̲) and max(1, σ̄), whatever the initial features.

    Features that start outside [-1, 1] stay outside as long as their rate is small. The statement
    does not assume that they start inside.
    """
    return in_range(layer, x, edge_index, low, high, x.new_tensor([-1.0, 1.0]))


def mixing(**options: Any) -> Case:
    """Twenty layers with convolutions of their own."""
    convs = [Mixing(3, 0.7, seed) for seed in range(20)]
    return GradientGating(convs, 20, activation="tanh", **options), features(12, 3, 0), EDGES


def gates_open() -> Case:
    """Gate features that differ by at least 30 between any two nodes."""
    apart = MatrixCoupling(torch.zeros(12, 12).double(), drive=30.0 * (ramp(12) + 1))
    return mixing(gate_conv=apart)


@of_layers("(8.4), τ = 1", "holds", gates_open, "distance from the plain network")
def g2_limit_plain(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """Where all rates are 1, G² is the plain network X^n = σ(F(X^{n-1}))."""
    _, tau = run(layer, x, edge_index)
    return from_plain(layer, x, edge_index, {"τ = 1": bool((tau == 1).all())})


@of_layers(
    "T 8.4, a = 0", "holds", lambda: mixing(rate_exponent=0.0), "distance from the plain network"
)
def g2_limit_exponent(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """With the rates to the power a = 0, G² is the plain network without gating."""
    return from_plain(layer, x, edge_index, {"a = 0": layer.rate_exponent == 0})


@of_layers(
    "(8.9)",
    "corrected",
    lambda: (
        GradientGating(MatrixCoupling(gcn_matrix(EDGES, 12)), 30, p=1.5),
        features(12, 2, 0).abs(),
        EDGES,
    ),
    "distance from Euler's step",
)
def g2_euler(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """(8.4) is Euler's step of size 1 for X' = τ(t) ⊙ (σ(F(X(t))) - X(t)), with τ_ik = tanh(Σ_j
    |τ̂_jk - τ̂_ik|^p).

    The last line of (8.9) has X^{n-1} in place of X(t).
    """
    source, target = edge_index
    gaps = []
    xs, _ = run(layer, x, edge_index)
    with torch.no_grad():
        for before, after in itertools.pairwise(xs):
            coupling = layer.convs[0](before, edge_index)
            gate = layer._gate_sigma(coupling)
            apart = (gate[source] - gate[target]).abs() ** layer.p
            rate = torch.zeros_like(x).index_add(0, target, apart).tanh()
            step = before + rate * (layer._sigma(coupling) - before)
            gaps.append((after - step).abs().max())
    met = {
        "F̂ = F, independent of n": layer.gate_convs is None and len(layer.convs) == 1,
        "sum over neighbours, one rate per channel, a = 1": layer.aggr == "sum"
        and not layer.single_rate
        and layer.rate_exponent == 1,
    }
    return Check(torch.stack(gaps), 1e-13 * xs.abs().max(), met)


def ungated(coupling: Tensor, x: Tensor, times: Tensor) -> Tensor:
    """The solution of X' = A X - X."""
    return linear_flow(coupling - torch.eye(len(x), dtype=x.dtype), x, times)


@claim("T 8.2.2", "false", near_constant, "distance from c", axis="time t")
def g2_oversmoothing_point_printed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """If D decays exponentially, some constant c is exponentially stable.

    The counterexample is that of T 7.2.3, without gating. Features end at their mean, not at c.
    """
    return to_one_constant(ungated(coupling, x, times), coupling, times)


@claim(
    "T 8.2.2", "corrected", near_constant, "squared distance from the constants; v D", axis="time t"
)
def g2_oversmoothing_set(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """D decays exponentially iff the distance to the set of constant features does.

    It measures the distance to the set of constants, as for T 7.2.3.
    """
    return to_all_constants(ungated(coupling, x, times), coupling, times)


def held(coupling: Tensor, x: Tensor) -> dict[str, bool]:
    """What T 8.2.3 and 8.2.5 assume."""
    met = {"A ≥ 0": bool((coupling >= 0).all()), "node 1 held": anchored(x)}
    return symmetric_stochastic(coupling) | met


def anchored(x: Tensor) -> bool:
    """Whether the first node is held at zero."""
    return bool((x[0] == 0).all())


def sizes(coupling: Tensor) -> tuple[Tensor, Tensor, int]:
    """The least coupling of an edge a, the largest degree d and Δ_1."""
    weights = joined(coupling)
    far = eccentricity(weights.nonzero().T, len(coupling))
    return coupling[weights > 0].min(), weights.sum(1).max(), far


def ramp(nodes: int) -> Tensor:
    """Features i - 1, [nodes, 1]."""
    return torch.arange(nodes, dtype=torch.float64)[:, None]


def deviations(nodes: int, seed: int) -> Tensor:
    """Normally distributed features less those of the first node, [nodes, 1]."""
    x = features(nodes, 1, seed)
    return x - x[0]


def long_path() -> Case:
    """A path of 20 nodes, a ramp on it, and times."""
    return metropolis_matrix(path(20), 20), ramp(20), torch.linspace(0, 600, 61).double()


def decay(coupling: Tensor, x: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
    """S of the linear system with the first node held, and its matrix without that node."""
    reduced = coupling[1:, 1:] - torch.eye(len(x) - 1, dtype=x.dtype)
    return linear_flow(reduced, x[1:], times).square().sum((1, 2)), reduced


@of_sum("T 8.2.3", "corrected", long_path)
def g2_no_gating(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """Without gating, A symmetric with rows of sum 1 and at least a on edges, one node held: S(t) ≤
    S(0) e^(-2at/(v Δ_1)).

    The corrected Poincaré constant replaces d Δ_1. The rate is taken as 1, although p = 0 literally
    makes it tanh(d).
    """
    least, _, far = sizes(coupling)
    bound = x.square().sum() * (-2 * least / (len(x) * far) * times).exp()
    return Check(decay(coupling, x, times)[0], bound, held(coupling, x), times)


@of_sum("T 8.2.3", "false", long_path)
def g2_no_gating_printed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """The same with the rate a/(d Δ_1).

    The proof uses T 8.2.4, which is false. The path of 20 nodes decays more slowly.
    """
    least, degree, far = sizes(coupling)
    bound = x.square().sum() * (-least / (degree * far) * times).exp()
    return Check(decay(coupling, x, times)[0], bound, held(coupling, x), times)


def poincare(x: Tensor, edge_index: Tensor, constant: Tensor | float) -> Check:
    """The sum of squares against a constant times the differences between neighbours."""
    bound = constant * difference_sum(x, neighbours(edge_index, len(x)))
    return Check(x.square().sum(), bound, {"Y_1 = 0": anchored(x), "connected": True})


@claim("T 8.2.4", "corrected", lambda: (ramp(20) / 2, path(20)), "Σ Y_i²")
def g2_poincare(x: Tensor, edge_index: Tensor) -> Check:
    """Y_1 = 0 on a connected graph implies ΣY_i² ≤ (v Δ_1/2) Σ_iΣ_{j∈N_i}|Y_j - Y_i|².

    v/2 replaces d, because an edge may lie on the shortest paths of up to v - 1 nodes.
    """
    return poincare(x, edge_index, len(x) * eccentricity(edge_index, len(x)) / 2)


@claim("T 8.2.4", "false", lambda: (ramp(20), path(20)), "Σ Y_i²")
def g2_poincare_printed(x: Tensor, edge_index: Tensor) -> Check:
    """The same with d Δ_1 in place of v Δ_1/2.

    Counterexample: the path with Y_i = i - 1. At v = 20 the left side is 2470 and the right side
    1444. At v = 40 they are 20540 and 6084.
    """
    degree = neighbours(edge_index, len(x)).sum(1).max()
    return poincare(x, edge_index, degree * eccentricity(edge_index, len(x)))


def slow_times(end: float, points: int) -> Tensor:
    """Times from 0 to ``end``, evenly spaced on the axis log(1 + t)."""
    return torch.linspace(0, math.log(1 + end), points, dtype=torch.float64).expm1()


def slowly(field: Callable[[Tensor], Tensor], x: Tensor, times: Tensor, steps: int) -> Tensor:
    """Solve X' = field(X) on the axis s = log(1 + t), where an algebraic decay is smooth."""
    states = rk4(lambda z, s: s.exp() * field(z), x, times.log1p(), steps)
    finite, advice = bool(states.isfinite().all()), "take more steps, or smaller features"
    _checks.require(finite, "steps", steps, "so many that the solution stays finite", advice)
    return states


def differences(x: Tensor, weights: Tensor, p: float) -> Tensor:
    """Σ_{j∈N_i}|X_j - X_i|^p of scalar features, [v, 1]."""
    _tensors.has_shape("x", x, (len(x), 1), "the statement is about scalar features")
    return (weights * (x - x.T).abs() ** p).sum(1, keepdim=True)


def gated(
    coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int, constant: Tensor
) -> Check:
    """S of the quasi-linearised system with T1 = 0, against its bound with the constant C."""
    weights = joined(coupling)

    def field(z: Tensor) -> Tensor:
        rate = differences(z, weights, p)
        mixed = coupling * (rate + rate.T) / 2
        moved = (mixed * (z.T - z)).sum(1, keepdim=True)
        return torch.cat([0 * moved[:1], moved[1:]])

    total = slowly(field, x, times, steps).square().sum((1, 2))
    bound = total[0] * (2 / (2 + p * constant * total[0] ** (p / 2) * times)) ** (2 / p)
    return Check(total, bound, held(coupling, x) | {"p > 0": p > 0}, times)


@of_sum(
    "T 8.2.5",
    "corrected",
    lambda: (metropolis_matrix(path(2), 2), ramp(2), 2.0, slow_times(1e5, 41)),
)
def g2_gated_decay(coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10) -> Check:
    """With gating, S(t) ≤ S(0)(2/(2 + pC S(0)^(p/2) t))^(2/p), C = a/((d v)^(p/2) (v
    Δ_1/2)^(p/2+1)).

    It has the corrected Poincaré constant. In the quasi-linear form tanh is dropped, and with it
    T1, the part of dS/dt that comes from unequal rates. So the coupling here is A_ij(τ_i + τ_j)/2.
    An upper bound alone does not exclude fast decay (see g2-gated-lower).
    """
    (least, degree, far), v = sizes(coupling), len(x)
    constant = least / ((degree * v) ** (p / 2) * torch.tensor(v * far / 2) ** (p / 2 + 1))
    return gated(coupling, x, p, times, steps, constant)


@of_sum(
    "T 8.2.5",
    "false",
    lambda: (metropolis_matrix(path(40), 40), ramp(40) / 40, 2.0, slow_times(3e4, 41), 15),
)
def g2_gated_decay_printed(
    coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10
) -> Check:
    """The same with C = a/(d^(p+1) v^(p/2) Δ_1^((p+2)/2)).

    The proof uses T 8.2.4, which is false. A ramp on the path of 40 nodes decays more slowly.
    """
    least, degree, far = sizes(coupling)
    constant = least / ((degree * len(x)) ** (p / 2) * (degree * far) ** (p / 2 + 1))
    return gated(coupling, x, p, times, steps, constant)


@claim(
    "T 8.2.5",
    "corrected",
    lambda: (random_walk_matrix(path(2), 2), 1 + 0.3 * ramp(2), 2.0, slow_times(1e4, 41)),
    "Σ_iΣ_j |X_j - X_i|²",
    relation=">=",
    tolerance=1e-9,
    axis="time t",
)
def g2_gated_lower(coupling: Tensor, x: Tensor, p: float, times: Tensor, steps: int = 10) -> Check:
    """Gating never lets D = Σ_iΣ_{j∈N_i}|X_j - X_i|² of positive features decay exponentially: D(t)
    ≥ (D(0)^(-p/2) + (p/2) K t)^(-2/p), K = 4d√(v d), for every A with rows of sum 1.

    The paper's argument lacks this lower bound. It needs neither a held node nor symmetry.
    """
    weights = joined(coupling)

    def field(z: Tensor) -> Tensor:
        return differences(z, weights, p).tanh() * ((coupling @ z).relu() - z)

    energy = difference_sum(slowly(field, x, times, steps), weights)
    degree = weights.sum(1).max()
    constant = 4 * degree * (len(x) * degree).sqrt()
    bound = (energy[0] ** (-p / 2) + p / 2 * constant * times) ** (-2 / p)
    met = {
        "A ≥ 0": bool((coupling >= 0).all()),
        "features positive": bool((x > 0).all()),
        "p > 0": p > 0,
    }
    return Check(energy, bound, met | rows_sum_to_one(coupling.sum(1)), times)


@of_sum(
    "T 8.2.6",
    "open",
    lambda: (
        random_walk_matrix(random_graph(10, 6, seed=0), 10),
        deviations(10, 0),
        torch.linspace(0, 60, 61).double(),
    ),
    tolerance=1e-6,
)
def g2_relaxed(coupling: Tensor, x: Tensor, times: Tensor) -> Check:
    """The assumptions of T 8.2.3 can be relaxed (A not symmetric, no node held): S still decays
    exponentially, S(t) ≤ κ² S(0) e^(-2rt), r the spectral gap, κ the eigenvectors' condition.

    The thesis gives no formula. Only the symmetry is relaxed: A_ij = 1/d_i, and one node is held.
    """
    total, reduced = decay(coupling, x, times)
    values, vectors = torch.linalg.eig(reduced)
    gap = -values.real.max()
    bound = torch.linalg.cond(vectors) ** 2 * total[0] * (-2 * gap * times).exp()
    met = {"spectral gap r > 0": bool(gap > 0), "node 1 held": anchored(x)}
    return Check(total, bound, rows_sum_to_one(coupling.sum(1)) | met, times)
