r"""GraphCON (thesis, chapters 6 and 7): energy, states, gradients, and what oversmoothing is.

Letters: v nodes, m features, L or N layers. σ is the activation, α the damping, γ the frequency.
Near constant positive features, with ReLU and γ = 1, the system is linear: X'' = A X - X - α X'.
D is the Dirichlet energy (6.2), (1/v) Σ_iΣ_{j∈N_i}|X_i - X_j|².

Statements on gradients have scalar features, the operator of GCN (7.5) with one weight w^l per
layer, α = γ = 1, and the loss J = (1/2v) Σ_i |X_i^N - X̄_i|².

Arguments: x [v, m], features X^0 or X(0); y [v, m], velocities; edge_index, the graph; coupling
[v, v], A; times [K], from 0 and ascending; damping, α; target [v, 1], X̄. Layers have one shared
convolution unless a statement has one weight per layer.
"""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import jvp

from anharmonic import StabilityWarning, _checks, _tensors
from anharmonic.nn import AttentionCoupling, GradientGating, GraphCON
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    cycle,
    difference_sum,
    features,
    gcn_matrix,
    joined,
    laplacian_values,
    metropolis_matrix,
    neighbours,
    path,
    random_graph,
    random_walk_matrix,
    rows_sum_to_one,
    symmetric_stochastic,
    undirected,
)
from anharmonic_papers.theory.integrate import linear_flow
from anharmonic_papers.theory.layers import passed_on, seeded, step_numbers
from anharmonic_papers.theory.statements import Case, Check, statement

claim = partial(statement, chapter="GraphCON")
of_time = partial(claim, axis="time t")
of_formula = partial(of_time, relation="==")
of_layers = partial(claim, axis="layer n")
of_rows = partial(claim, relation="==", axis="node i", quantity="row sum Σ_j A_ij")
of_weight = partial(claim, axis="layer l")

EDGES = random_graph(12, 8, seed=0)
TIMES = torch.linspace(0, 80, 81, dtype=torch.float64)


def run(layer: GraphCON | GradientGating, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The states of all layers, [L + 1, v, m]: X and Y of GraphCON, X and τ of Gradient Gating."""
    with torch.no_grad():
        _, (xs, others) = layer(x, edge_index, return_states=True)
    return xs, others


def oscillation(
    coupling: Tensor, x: Tensor, y: Tensor, times: Tensor, damping: float
) -> tuple[Tensor, Tensor]:
    """The exact solution of X'' = A X - X - α X', features and velocities [K, v, m]."""
    _tensors.has_shape("coupling", coupling, (len(x), len(x)), "pass A with a row per node of x")
    eye = torch.eye(len(x), dtype=x.dtype)
    matrix = torch.cat(
        [torch.cat([0 * eye, eye], 1), torch.cat([coupling - eye, -damping * eye], 1)]
    )
    states = linear_flow(matrix, torch.cat([x, y]), times)
    return states[:, : len(x)], states[:, len(x) :]


def row_matrix(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor:
    """A of a convolution that is F(X) = A X, column by column from unit features."""
    unit = torch.eye(len(x), dtype=x.dtype)
    with torch.no_grad():
        columns = [conv(e[:, None].expand_as(x).contiguous(), edge_index)[:, 0] for e in unit]
    return torch.stack(columns, dim=1)


def dirichlet(x: Tensor, coupling: Tensor) -> Tensor:
    """D of features [..., v, m] on the graph that a coupling joins."""
    return difference_sum(x, joined(coupling)) / x.shape[-2]


# What oversmoothing is


def slowest_mode() -> Tensor:
    """The second eigenvector of the Laplacian, for which the inequality is an equation."""
    weights = neighbours(EDGES, 12)
    modes: Tensor = torch.linalg.eigh(torch.diag(weights.sum(1)) - weights)[1]
    return modes[:, 1:2]


@claim("T 6.0.1, 7.2.2", "holds", lambda: (slowest_mode(), EDGES), "D(X)", relation=">=")
def similarity_zero(x: Tensor, edge_index: Tensor) -> Check:
    """D(X) = 0 exactly on constant features of a connected graph: with λ the second smallest
    eigenvalue of the Laplacian, D(X) ≥ (2λ/v) Σ_i|X_i - mean|².

    The paper states only that D is zero exactly on constants. The inequality says how far from zero
    D is elsewhere.
    """
    weights = neighbours(edge_index, len(x))
    values = laplacian_values(weights)
    apart = (x - x.mean(0)).square().sum()
    return Check(
        difference_sum(x, weights) / len(x),
        2 * values[1] / len(x) * apart,
        {"connected": bool(values[1] > 1e-12)},
    )


def subadditive(x: Tensor, y: Tensor, edge_index: Tensor, power: float) -> Check:
    """D to a power of a sum, against the sum of both."""
    weights = neighbours(edge_index, len(x))
    both, one, other = ((difference_sum(z, weights) / len(x)) ** power for z in (x + y, x, y))
    return Check(both, one + other)


@claim(
    "T 6.0.1, 7.2.2",
    "corrected",
    lambda: (features(12, 3, 0), 2 * features(12, 3, 0), EDGES),
    "μ(X + Y)",
)
def similarity_subadditive(x: Tensor, y: Tensor, edge_index: Tensor) -> Check:
    """√D is subadditive, so that it is a node-similarity measure.

    It holds for the square root, not for D itself.
    """
    return subadditive(x, y, edge_index, 0.5)


@claim(
    "T 6.0.1, 7.2.2", "false", lambda: (features(12, 3, 0), features(12, 3, 0), EDGES), "μ(X + Y)"
)
def similarity_subadditive_printed(x: Tensor, y: Tensor, edge_index: Tensor) -> Check:
    """D itself is subadditive.

    D(2X) = 4 D(X), which is more than 2 D(X).
    """
    return subadditive(x, y, edge_index, 1.0)


def to_one_constant(xs: Tensor, coupling: Tensor, times: Tensor) -> Check:
    """The distance from c, where xs are distances from c, against the exponential of D."""
    energy = dirichlet(xs, coupling)
    quarters = [part.max() for part in energy.tensor_split(4)]
    rate = (energy[0] / energy[-1]).log() / (times[-1] - times[0]) / 2
    met = {"D decays exponentially": all(b < 0.1 * a for a, b in itertools.pairwise(quarters))}
    bound = 100 * xs[0].norm() * (-rate * times).exp()
    return Check(xs.flatten(1).norm(dim=1), bound, met, times)


def to_all_constants(xs: Tensor, coupling: Tensor, times: Tensor) -> Check:
    """The squared distance to the constants and v D, each bounded by the other, [2, K]."""
    weights = joined(coupling)
    values = laplacian_values(weights)
    apart = (xs - xs.mean(1, keepdim=True)).square().sum((1, 2))
    energy = difference_sum(xs, weights)
    return Check(
        torch.stack([apart, energy]),
        torch.stack([energy / (2 * values[1]), 2 * values[-1] * apart]),
        {"connected": bool(values[1] > 1e-12)},
        times,
    )


def near_constant() -> Case:
    """A coupling, small features and times."""
    return metropolis_matrix(EDGES, 12), 0.1 * features(12, 1, 0), TIMES


@of_time("T 7.2.3", "false", lambda: (*near_constant(), 0.5), "distance from c")
def oversmoothing_point_printed(
    coupling: Tensor, x: Tensor, times: Tensor, damping: float
) -> Check:
    """If D decays exponentially, some (c, 0) is exponentially stable: what starts near c comes to c
    at that rate.

    In the linearised system D decays like e^(-αt), but features that start near c end at another
    constant. The converse holds: exponential stability means oversmoothing.
    """
    xs, _ = oscillation(coupling, x, 0 * x, times, damping)
    return to_one_constant(xs, coupling, times)


@of_time(
    "T 7.2.3",
    "corrected",
    lambda: (*near_constant(), 0.5),
    "squared distance from the constants; v D",
)
def oversmoothing_set(coupling: Tensor, x: Tensor, times: Tensor, damping: float) -> Check:
    """D decays exponentially iff the distance to the set of constant features does: Σ|X_i - mean|²
    ≤ v D/(2λ) and v D ≤ 2λ_max Σ|X_i - mean|².

    It measures the distance to the set of constants instead of to a single constant.
    """
    xs, _ = oscillation(coupling, x, 0 * x, times, damping)
    return to_all_constants(xs, coupling, times)


# Energy


def undamped() -> Case:
    """A symmetric coupling, features, velocities and times."""
    times = torch.linspace(0, 20, 81).double()
    return metropolis_matrix(EDGES, 12), features(12, 2, 0), features(12, 2, 1), times


def conserved(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor, factor: float) -> Check:
    """The energy of the exact solution without damping against its start."""
    xs, ys = oscillation(coupling, x, y, times, 0.0)
    energy = ys.square().sum((-2, -1)) + factor * difference_sum(xs, coupling)
    return Check(energy, energy[0], symmetric_stochastic(coupling), times)


@of_formula("T 7.2.1", "corrected", undamped, "energy", tolerance=1e-10)
def graphcon_energy(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """For σ = id, α = 0, γ = 1, A symmetric with rows of sum 1, the energy Σ_i|Y_i|² + ½ Σ_iΣ_j
    A_ij|X_i - X_j|² is conserved.

    The factor ½ is needed because the double sum counts every edge twice.
    """
    return conserved(coupling, x, y, times, 0.5)


@of_formula("T 7.2.1", "false", undamped, "energy", tolerance=1e-10)
def graphcon_energy_printed(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """The same with Σ_iΣ_{j∈N_i} A_ij|X_i - X_j|² and no factor ½.

    (7.11) is read as an ordered double sum. On a graph of 12 nodes it is not conserved.
    """
    return conserved(coupling, x, y, times, 1.0)


@of_layers(
    "T 7.2.1, (7.4)",
    "corrected",
    lambda: (
        GraphCON(MatrixCoupling(undamped()[0]), 200, 0.5, damping=0.0, activation="identity"),
        features(12, 2, 0),
        EDGES,
    ),
    "modified energy",
    relation="==",
    tolerance=1e-10,
)
def graphcon_energy_scheme(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """The scheme (7.4) conserves Σ|Y|² + ½ ΣΣ A_ij|X_i - X_j|² - dt Σ_i Y_i·(X_i - (AX)_i).

    The paper has the continuous energy only. The scheme changes it by a term of order dt, and
    conserves the sum up to rounding.
    """
    coupling = row_matrix(layer.convs[0], x, edge_index)
    xs, ys = run(layer, x, edge_index)
    energy = ys.square().sum((-2, -1)) + 0.5 * difference_sum(xs, coupling)
    energy = energy - layer.dt * (ys * (xs - coupling @ xs)).sum((-2, -1))
    probe = torch.linspace(-2, 2, 9)
    with torch.no_grad():
        linear = torch.allclose(layer.convs[0](x, edge_index), coupling @ x, atol=1e-10)
    met = {
        "F(X) = A X": linear and len(layer.convs) == 1,
        "σ = id": torch.equal(layer._sigma(probe), probe),
        "α = 0, γ = 1": layer.damping == 0 and layer.frequency == 1,
    }
    return Check(energy, energy[0], met | symmetric_stochastic(coupling))


@of_time("T 7.2.1", "corrected", undamped, "mean potential energy", relation=">=")
def graphcon_undamped_spread(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """For α = 0 differences do not decay: the mean over [0, t] of ½ΣΣ A_ij|X_i - X_j|² is at least
    Σ_k E_k (1 - 1/(t√λ_k))/2, E_k the energy of mode k > 1 of I - A.

    It is not in the paper. It puts into numbers what conservation of energy says about
    oversmoothing.
    """
    # The mean by the trapezoidal rule, for close times; those below 1/min√λ are left out.
    values, modes = torch.linalg.eigh(torch.eye(len(x), dtype=x.dtype) - coupling)
    omega = values[1:].clamp(min=0).sqrt()
    a, b = modes[:, 1:].T @ x, modes[:, 1:].T @ y / omega[:, None]
    energy = (omega.square()[:, None] * (a.square() + b.square())).sum(1)
    xs, _ = oscillation(coupling, x, y, times, 0.0)
    mean = torch.cumulative_trapezoid(0.5 * difference_sum(xs, coupling), times) / times[1:]
    late = times[1:] * omega.min() > 1
    times = times[1:][late]
    bound = 0.5 * (energy * (1 - 1 / (times[:, None] * omega))).sum(1)
    met = symmetric_stochastic(coupling) | {"connected": bool(values[1] > 1e-12)}
    return Check(mean[late], bound, met, times)


@of_formula(
    "(7.10)",
    "holds",
    lambda: (
        GraphCON(
            MatrixCoupling(torch.eye(4).double()),
            1000,
            0.01,
            damping=0.0,
            activation=torch.zeros_like,
        ),
        features(4, 2, 0),
        path(4),
    ),
    "feature X of a node",
)
def graphcon_uncoupled(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """For σ = 0, α = 0, γ = 1: X_i(t) = X_i(0) cos t + Y_i(0) sin t, up to dt in the scheme."""
    xs, ys = run(layer, x, edge_index)
    times = layer.dt * torch.arange(len(xs), dtype=x.dtype)
    exact = xs[0, 0, 0] * times.cos() + ys[0, 0, 0] * times.sin()
    met = {
        "σ = 0": not layer._sigma(torch.linspace(-2, 2, 9)).any(),
        "α = 0, γ = 1": layer.damping == 0 and layer.frequency == 1,
    }
    return Check(xs[:, 0, 0], exact, met, times, tolerance=layer.dt)


# Damping


def constant_layer(damping: float, layers: int = 100) -> GraphCON:
    """ReLU and the mean over the neighbours, from rest."""
    coupling = random_walk_matrix(EDGES, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # this coupling keeps the mean
        return GraphCON(
            MatrixCoupling(coupling), layers, 0.2, 1.0, damping, initial_velocity="zero"
        )


@of_layers(
    "T 7.2.4",
    "holds",
    lambda: (constant_layer(0.7), torch.full((12, 1), 1.3, dtype=torch.float64), EDGES),
    "distance from c",
)
def graphcon_constant_steady(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """For ReLU, γ = 1, A with rows of sum 1 and c > 0, the constant features c are a steady
    state.
    """
    xs, _ = run(layer, x, edge_index)
    with torch.no_grad():
        sums = layer.convs[0](torch.ones_like(x), edge_index)
    met = {
        "c > 0 at every node": bool((x == x[0]).all() and (x > 0).all()),
        "γ = 1, Y = 0": layer.frequency == 1 and layer.initial_velocity == "zero",
    }
    met |= rows_sum_to_one(sums)
    return Check((xs - x).abs().amax((1, 2)), 1e-12 * x.abs().max(), met)


@of_formula(
    "T 7.2.4, 7.2.5, 7.2.6",
    "holds",
    lambda: (metropolis_matrix(EDGES, 12), 0.3, TIMES, 0.5),
    "distance from c",
    tolerance=1e-9,
)
def graphcon_constant_neutral(
    coupling: Tensor, shift: float, times: Tensor, damping: float
) -> Check:
    """No (c, 0) is exponentially stable: a constant perturbation stays for ever.

    It holds for every α, not only for α > 1/2 or α ≥ (D̄-D̲)/(2D̄D̲), because the constants form a
    continuum. It does not say how fast nodes become alike (see graphcon-damped-decay).
    """
    # The solution from the perturbation ``shift`` at every node, as distances from c.
    x = torch.full((len(coupling), 1), shift, dtype=torch.float64)
    xs, _ = oscillation(coupling, x, 0 * x, times, damping)
    return Check(xs.abs().amin((1, 2)), x.abs().amax(), rows_sum_to_one(coupling.sum(1)), times)


@of_formula(
    "(7.19)",
    "holds",
    lambda: (random_walk_matrix(EDGES, 12), features(12, 1, 0), features(12, 1, 1), 20.0, 0.4),
    "energy",
    tolerance=1e-7,
)
def graphcon_linear_identity(
    coupling: Tensor, x: Tensor, y: Tensor, end: float, damping: float, steps: int = 2000
) -> Check:
    """The energy ½Σ|Y_i|² + ½Σ_{i,j} ½A_ij|X_j - X_i|² of the linearised system is T1 + T2 + T3:
    the start, damped by e^(-2αt), what the potential gives back, and the asymmetry of A.

    T1 damps the potential part too much, and T2 makes up for it. T2 is no source of energy.
    """
    # Integrals up to the time ``end`` by Simpson's rule with ``steps`` intervals.
    times = torch.linspace(0, end, 2 * (steps // 2) + 1, dtype=torch.float64)
    xs, ys = oscillation(coupling, x, y, times, damping)
    symmetric, skew = (coupling + coupling.T) / 2, (coupling - coupling.T) / 2
    potential = 0.25 * difference_sum(xs, symmetric)
    energy = 0.5 * ys.square().sum((-2, -1)) + potential
    work = (skew @ xs + (symmetric.sum(1) - 1)[:, None] * xs) * ys
    source = 2 * damping * potential + work.sum((-2, -1))
    grown = (2 * damping * times).exp() * source
    pairs = (times[1] / 3) * (grown[:-2:2] + 4 * grown[1:-1:2] + grown[2::2])
    integral = torch.cat([torch.zeros(1, dtype=torch.float64), pairs.cumsum(0)])
    bound = (-2 * damping * times[::2]).exp() * (energy[0] + integral)
    return Check(energy[::2], bound, rows_sum_to_one(coupling.sum(1)), times[::2])


def all_joined() -> Case:
    """Five nodes, all neighbours of each other: every mode has the same λ."""
    edges = undirected((i, j) for i in range(5) for j in range(i))
    return metropolis_matrix(edges, 5), features(5, 1, 0), torch.zeros(5, 1).double(), TIMES


@of_time("T 7.2.5, 7.2.6", "corrected", lambda: (*all_joined(), 0.5), "Dirichlet energy D")
def graphcon_damped_decay(
    coupling: Tensor, x: Tensor, y: Tensor, times: Tensor, damping: float
) -> Check:
    """For α > 0 and A symmetric with rows of sum 1, the linearised D(t) decays exponentially: mode
    k > 1 of I - A no slower than e^(-αt/2) |e^(√(α²/4 - λ_k) t)|.

    Every mode except the constant one obeys x'' + αx' + λx = 0. Where α² < 4λ, D falls like
    e^(-αt). So nodes become alike exponentially, although no (c, 0) is exponentially stable.
    """
    # x are distances from c; α² = 4λ for no mode.
    xs, _ = oscillation(coupling, x, y, times, damping)
    values, modes = torch.linalg.eigh(torch.eye(len(x), dtype=x.dtype) - coupling)
    a = (modes.T @ x)[1:]
    b = (modes.T @ y)[1:] + damping / 2 * a
    root = (damping**2 / 4 - values[1:]).to(torch.complex128).sqrt()
    size = a.abs() + b.abs() / root.abs()[:, None]
    rate = root.real - damping / 2
    bound = ((2 * rate * times[:, None]).exp() * size.square().sum(1)).sum(1)
    largest = laplacian_values(joined(coupling))[-1]
    met = {"α > 0": damping > 0, "λ > 0 but for constants": bool(values[1] > 1e-12)}
    met |= symmetric_stochastic(coupling)
    return Check(dirichlet(xs, coupling), 2 * largest / len(x) * bound, met, times)


@claim(
    "T 7.2.5, 7.2.6",
    "false",
    lambda: (
        constant_layer(1.0, 160),
        1 + torch.rand(12, 1, generator=torch.Generator().manual_seed(0)).double(),
        EDGES,
    ),
    "what log D loses in a doubling of time",
)
def graphcon_algebraic_printed(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """For α > 1/2 GraphCON mitigates oversmoothing by construction: D does not decay exponentially,
    but algebraically at the most.

    The papers conclude this from (7.19), which names no power. With every doubling of time, log D
    falls by the same amount if D decays algebraically, and by twice the previous amount if D decays
    exponentially. We allow up to 1.5 times the previous amount. Counterexample: ReLU, identity
    weights, the mean over the neighbours, α = γ = 1, dt = 0.2, positive features and 160 layers.
    """
    coupling = row_matrix(layer.convs[0], x, edge_index)
    xs, _ = run(layer, x, edge_index)
    before, after = lost_in_doublings(difference_sum(xs, neighbours(edge_index, len(x))))
    met = {
        "features positive": bool((xs > 0).all()),
        "α > 1/2, γ = 1": layer.damping > 0.5 and layer.frequency == 1,
    }
    return Check(after, 1.5 * before, met | rows_sum_to_one(coupling.sum(1)))


def lost_in_doublings(energy: Tensor) -> tuple[Tensor, Tensor]:
    """What log D loses from a sixth of the layers to a third, and from there to two thirds.

    D at a layer is its largest value from there on, so that oscillations do not count.
    """
    first = (len(energy) - 1) // 6
    early, middle, late = (energy[n:].max().log() for n in (first, 2 * first, 4 * first))
    return early - middle, middle - late


# States


def resting(conv: nn.Module, layers: int, *settings: float) -> GraphCON:
    """A layer with tanh that starts without velocity; dt, γ and α are its settings."""
    return GraphCON(conv, layers, *settings, activation="tanh", initial_velocity="zero")


@torch.no_grad()
def at_rest() -> Case:
    """A layer and its steady state (7.7), by a contraction."""
    edges, x = random_graph(6, 4, seed=0), torch.zeros(6, 2, dtype=torch.float64)
    conv = MatrixCoupling(gcn_matrix(edges, 6), drive=features(6, 2, 0))
    for _ in range(200):
        x = torch.tanh(conv(x, edges)) / 2.0
    return resting(conv, 50, 0.7, 2.0, 0.3), x, edges


@of_layers("(7.6)", "holds", at_rest, "distance from the steady state")
def graphcon_steady_state(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """Y = 0, X = σ(F(X))/γ is a fixed point of (7.4), for every dt and α."""
    with torch.no_grad():
        rest = layer._sigma(layer.convs[0](x, edge_index)) / layer.frequency
    xs, _ = run(layer, x, edge_index)
    met = {
        "X = σ(F(X))/γ": bool((rest - x).abs().max() <= 1e-14 * x.abs().max()),
        "F independent of n": len(layer.convs) == 1,
        "Y = 0": layer.initial_velocity == "zero",
    }
    return Check((xs - x).abs().amax((-2, -1)), 1e-12 * x.abs().max(), met)


@seeded()
def attention(layers: int) -> list[AttentionCoupling]:
    """Attention without a map of the channels."""
    return [AttentionCoupling(3).double() for _ in range(layers)]


@of_rows("(7.9)", "holds", lambda: (attention(1)[0], features(8, 3, 0), random_graph(8, 4, seed=0)))
def graphcon_right_stochastic(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Check:
    """Attention, F(X) = A(X) X, has rows that sum to 1."""
    probe = x.clone()
    probe[:, 0] = 1.0  # a channel that is 1 at every node shows the sums
    return Check(conv(probe, edge_index)[:, 0], torch.ones(()))


@of_rows(
    "(7.5), (7.9)",
    "false",
    lambda: (MatrixCoupling(gcn_matrix(path(3), 3)), features(3, 1, 0), path(3)),
)
def graphcon_right_stochastic_gcn(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Check:
    """The operator of GCN has rows that sum to 1.

    Row i sums to Σ_j 1/√(d_i d_j), which is 1 only on regular graphs. The rows of a path of three
    nodes sum to 0.908, 1.150 and 0.908. (7.27) has another operator, A_ij = 1/d_i, for which the
    statement holds.
    """
    return graphcon_right_stochastic(conv, x, edge_index)


def driven(dt: float = 0.9, frequency: float = 0.1, damping: float = 1.0) -> Case:
    """Two nodes whose σ(F) is 1 throughout."""
    conv, x = MatrixCoupling(torch.zeros(2, 2).double(), drive=40.0), torch.zeros(2, 1).double()
    return resting(conv, 30, dt, frequency, damping), x, path(2)


@of_layers("T 7.2.7", "corrected", driven, "growth of γ|X_i|² + |Y_i|²")
def graphcon_state_bound(
    layer: GraphCON, x: Tensor, edge_index: Tensor, beta: float = 1.0
) -> Check:
    """For |σ| ≤ β and dt < min(α/γ, 1/α): γ|X_i^n|² + |Y_i^n|² ≤ γ|X_i^0|² + |Y_i^0|² + m t_n β²/(α
    - γ dt).

    The proof loses the factor ½ of the last term. ReLU has no β, and most of the tuned settings
    with dt = 1 violate the condition on the step.
    """
    dt, gamma, alpha = layer.dt, layer.frequency, layer.damping
    xs, ys = run(layer, x, edge_index)
    size = gamma * xs.square().sum(-1) + ys.square().sum(-1)
    t = dt * torch.arange(len(xs), dtype=x.dtype)
    room = torch.tensor(alpha - gamma * dt, dtype=torch.float64)
    met = {
        "|σ| ≤ β": slope_and_size(layer)[1] <= beta,
        "dt < α/γ": gamma * dt < alpha,
        "dt < 1/α": dt * alpha < 1,
    }
    return Check((size - size[0]).amax(1), x.shape[1] * t * beta**2 / room, met)


@of_layers("T 7.2.7", "false", driven, "growth of γ|X_i|² + |Y_i|²")
def graphcon_state_bound_printed(
    layer: GraphCON, x: Tensor, edge_index: Tensor, beta: float = 1.0
) -> Check:
    """The same with m t_n β²/(2(α - γ dt)).

    Counterexample: two nodes from rest under σ = 1 with dt = 0.9, γ = 0.1 and α = 1 exceed the
    bound at the first layer. It holds for dt → 0.
    """
    check = graphcon_state_bound(layer, x, edge_index, beta)
    return replace(check, bound=check.bound / 2)


def from_plain(
    layer: GraphCON | GradientGating, x: Tensor, edge_index: Tensor, met: dict[str, bool]
) -> Check:
    """How far every layer's features are from the plain network, against rounding."""
    plain = [x]
    with torch.no_grad():
        for n in range(layer.num_layers):
            conv = layer.convs[0 if len(layer.convs) == 1 else n]
            plain.append(layer._sigma(conv(plain[-1], edge_index)))
    expected = torch.stack(plain)
    apart = (run(layer, x, edge_index)[0] - expected).abs().amax((1, 2))
    return Check(apart, 1e-13 * expected.abs().max(), met)


@of_layers(
    "(7.7)",
    "holds",
    lambda: (GraphCON(attention(10), 10, 1.0), features(8, 3, 0), random_graph(8, 4, seed=0)),
    "distance from the plain network",
)
def graphcon_plain_limit(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """For dt = α = γ = 1 the scheme (7.4) is the plain network X^n = σ(F(X^{n-1})).

    This is the papers' setting for Cora, Citeseer and Pubmed. No oscillator is left.
    """
    met = {"dt = α = γ = 1": layer.dt == layer.damping == layer.frequency == 1}
    return from_plain(layer, x, edge_index, met)


# Gradients


def loss_gradients(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """∂J/∂w^l of every layer, and all states."""
    weights = [w for conv in layer.convs for w in conv.parameters()]
    sizes, wanted = [w.numel() for w in weights], [1] * layer.num_layers
    expected = f"{layer.num_layers} convolutions of one weight each"
    advice = "pass a list of theory.graphs.MatrixCoupling, one per layer"
    _checks.require(sizes == wanted, "the layer's weights", sizes, f"those of {expected}", advice)
    _tensors.has_shape("x", x, (len(x), 1), "the statement is about scalar features")
    _, (xs, ys) = layer(x, edge_index, return_states=True)
    loss = (xs[-1] - target).square().sum() / (2 * len(x))
    found = torch.autograd.grad(loss, weights)
    return torch.stack(found), xs.detach(), ys.detach()


def slope_and_size(layer: GraphCON) -> tuple[float, float]:
    """The largest |σ'| and |σ| of a layer's activation between -50 and 50."""
    probe = torch.linspace(-50, 50, 10001, dtype=torch.float64)
    values = layer._sigma(probe)
    rise = values.diff().abs().max() / (probe[1] - probe[0])
    return float(rise), float(values.abs().max())


def gcn_assumptions(layer: GraphCON, x: Tensor, edge_index: Tensor) -> dict[str, bool]:
    """What all statements on gradients assume of the layer."""
    operator = gcn_matrix(edge_index, len(x))
    with torch.no_grad():
        matches = [
            torch.allclose(conv(x, edge_index), w * (operator @ x), atol=1e-10)
            for conv in layer.convs
            for w in conv.parameters()
        ]
    return {
        "F(X) = w A X, A of GCN": all(matches),
        "α = γ = 1": layer.damping == layer.frequency == 1,
    }


def largest_weight(layer: GraphCON) -> Tensor:
    """max|w|."""
    return torch.stack([w.detach().abs() for w in layer.convs.parameters()]).max()


def gcn_layer(edge_index: Tensor, nodes: int, weights: Sequence[float], dt: float) -> GraphCON:
    """GraphCON with tanh and the operator of GCN, one scalar weight per layer."""
    operator = gcn_matrix(edge_index, nodes)
    convs = [MatrixCoupling(operator, float(w)) for w in weights]
    return GraphCON(convs, len(convs), dt, activation="tanh")


def on_a_cycle(nodes: int, size: float = 1.0, weight: float = 0.5) -> Case:
    """Constant features: the gradient is the same for every number of nodes."""
    x = torch.full((nodes, 1), size, dtype=torch.float64)
    layer = gcn_layer(cycle(nodes), nodes, [weight] * 10, 0.01)
    return layer, x, cycle(nodes), -torch.ones_like(x)


@of_weight("T 7.2.8", "corrected", lambda: on_a_cycle(100, 0.01, 20.0), "|∂J/∂w^l|")
def graphcon_gradient(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor) -> Check:
    """|∂J/∂w^l| ≤ max|X^N - X̄| max|A X^{l-1}| a_{N-l}: b_0 = dt, a_0 = dt², b_n = |1 - dt| b_{n-1}
    + dt (max|w| ‖A‖∞ + 1) a_{n-1}, a_n = a_{n-1} + dt b_n, for any N dt.

    This bound is ours and has no factor 1/v. It uses sup norms along the scheme itself, with |σ'| ≤
    1. The printed one mixes norms. It needs ΓN dt ≤ 2.51, which no tuned model with dt = 1 meets.
    """
    gradient, xs, _ = loss_gradients(layer, x, edge_index, target)
    dt, matrix = layer.dt, gcn_matrix(edge_index, len(target))
    pull = float(largest_weight(layer) * matrix.sum(1).max()) + layer.frequency
    sources = (matrix @ xs[:-1]).abs().amax((1, 2))
    impulse = torch.eye(1, len(sources), dtype=x.dtype)[0]
    passed = passed_on(impulse, dt, abs(1 - layer.damping * dt), pull).flip(0)
    bound = (xs[-1] - target).abs().max() * sources * passed
    met = gcn_assumptions(layer, x, edge_index) | {"|σ'| ≤ 1": slope_and_size(layer)[0] <= 1 + 1e-9}
    return Check(gradient.abs(), bound, met, step_numbers(gradient))


@of_weight("T 7.2.8", "false", lambda: on_a_cycle(1000), "|∂J/∂w^l|")
def graphcon_gradient_printed(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> Check:
    """|∂J/∂w^l| ≤ (β' D̂ (d̂+1)/v) dt (1 + ΓN dt)(max(|X_i^0|+|Y_i^0|) + max|X̄_i| + β√(N dt))², Γ
    = 6 + 4β'D̂ max|w|, D̂ the operator's largest entry, d̂ the largest degree.

    On a cycle with constant features, N = 10 and dt = 0.01, the gradient is 1.6e-3 for every number
    v of nodes. The bound is 1.8e-3 at v = 100 and 1.8e-4 at v = 1000. The order of its prefactor is
    read from a damaged line.
    """
    gradient, xs, ys = loss_gradients(layer, x, edge_index, target)
    dt, span = layer.dt, layer.num_layers * layer.dt
    entry = gcn_matrix(edge_index, len(x)).max()
    degree = neighbours(edge_index, len(x)).sum(1).max()
    growth = (6 + 4 * entry * largest_weight(layer)) * layer.num_layers * dt
    start = (xs[0].abs() + ys[0].abs()).max() + target.abs().max() + span**0.5
    bound = entry * (degree + 1) * dt * (1 + growth) * start**2 / len(x)
    met = gcn_assumptions(layer, x, edge_index) | {
        "|σ|, |σ'| ≤ 1": max(slope_and_size(layer)) <= 1 + 1e-9,
        "dt small: Γ N dt ≤ 2.51": bool(growth <= 2.51),
    }
    return Check(gradient.abs(), bound, met, step_numbers(gradient))


def shallow() -> Case:
    """Twenty layers with a small step."""
    edges = random_graph(8, 4, seed=0)
    layer = gcn_layer(edges, 8, (0.5 + features(20, 1, 2)[:, 0].abs()).tolist(), 1e-4)
    return layer, features(8, 1, 0), edges, features(8, 1, 1)


@of_weight("T 7.2.9", "corrected", shallow, "∂J/∂w^l", relation="==")
def graphcon_gradient_leading(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> Check:
    """For fixed N and dt → 0: ∂J/∂w^l = (N - l + 1)(dt²/v) Σ_i Σ_{j∈N_i∪{i}} σ'(C_i) X_j (X_i^N -
    X̄_i)/√(d_i d_j) + O(dt³).

    Because of the factor N - l + 1 the first layers do not vanish, and the gradient grows with
    depth.
    """
    gradient, xs, _ = loss_gradients(layer, x, edge_index, target)
    weights = torch.stack([w.detach() for w in layer.convs.parameters()])[:, None, None]
    sources, n = gcn_matrix(edge_index, len(x)) @ xs[:-1], step_numbers(gradient)
    slopes = jvp(layer._sigma, (weights * sources,), (torch.ones_like(sources),))[1]
    mean = (slopes * sources * (xs[-1] - target)).mean((1, 2))
    small = layer.num_layers * layer.dt
    met = gcn_assumptions(layer, x, edge_index) | {"dt → 0 at fixed N: N dt ≤ 0.01": small <= 0.01}
    formula = layer.dt**2 * mean * n.flip(0)  # N - l + 1
    return Check(gradient, formula, met, n, tolerance=2 * small)


@of_weight("T 7.2.9", "false", shallow, "∂J/∂w^l", relation="==")
def graphcon_gradient_leading_printed(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> Check:
    """The same without the factor, that is, independent of N.

    At N = 20 the gradient of w² is 19 times the formula.
    """
    check = graphcon_gradient_leading(layer, x, edge_index, target)
    return replace(check, bound=check.bound / step_numbers(check.bound).flip(0))
