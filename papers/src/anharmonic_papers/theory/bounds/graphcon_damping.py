"""What the papers prove about how GraphCON keeps nodes apart (thesis, chapter 7).

σ = ReLU and γ = 1, so that near
constant positive features the system is linear: X'' = A X - X - α X'.

What the checks take, unless they say otherwise:

    edge_index: The graph.
    coupling: A.
    times: Where to look.
    damping: α.
    y: Velocities Y(0).

Shape: x [v, m]; measured and bound [L + 1].
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.nn import GraphCON
from anharmonic_papers.theory.bounds.graphcon_energy import (
    features,
    oscillation,
    row_matrix,
    symmetric_stochastic,
)
from anharmonic_papers.theory.bounds.oversmoothing import dirichlet
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    joined,
    laplacian_values,
    metropolis_matrix,
    neighbours,
    random_graph,
    random_walk_matrix,
    undirected,
)
from anharmonic_papers.theory.statements import Check, statement

_EDGES = random_graph(12, 8, seed=0)
_TIMES = torch.linspace(0, 80, 81, dtype=torch.float64)


def _example() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A symmetric coupling, features, velocities and times."""
    return metropolis_matrix(_EDGES, 12), features(12, 1, 0), features(12, 1, 1), _TIMES


def _constant_layer(damping: float, layers: int = 100) -> GraphCON:
    coupling = random_walk_matrix(_EDGES, 12)
    return GraphCON(MatrixCoupling(coupling), layers, 0.2, 1.0, damping, initial_velocity="zero")


@statement(
    "graphcon-constant-steady",
    number="T 7.2.4",
    chapter="GraphCON",
    claim="For ReLU, γ = 1, A with rows of sum 1 and c > 0, the constant features c are a steady "
    "state.",
    state="holds",
    example=lambda: constant_steady(
        _constant_layer(0.7), torch.full((12, 1), 1.3, dtype=torch.float64), _EDGES
    ),
)
def constant_steady(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """The largest distance from the start, against rounding.

    Args:
        layer: With ReLU, one shared convolution and velocities that start at zero.
        x: The same positive features at every node.
    """
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
        sums = layer.convs[0](torch.ones_like(x), edge_index)
    return Check(
        measured=(xs - x).abs().amax((1, 2)),
        bound=1e-12 * x.abs().max(),
        assumptions={
            "c > 0 at every node": bool((x == x[0]).all() and (x > 0).all()),
            "rows of A sum to 1": bool((sums - 1).abs().max() < 1e-10),
            "γ = 1, Y = 0": layer.frequency == 1 and layer.initial_velocity == "zero",
        },
        axis="layer n",
        quantity="distance from c",
    )


@statement(
    "graphcon-constant-neutral",
    number="T 7.2.4, 7.2.5, 7.2.6",
    chapter="GraphCON",
    claim="No (c, 0) is exponentially stable: a constant perturbation stays for ever.",
    state="holds",
    example=lambda: constant_neutral(metropolis_matrix(_EDGES, 12), 0.3, _TIMES, 0.5),
    remark="For every α, not only α > 1/2 or α ≥ (D̄-D̲)/(2D̄D̲), since constants are a continuum; "
    "it says nothing about how fast nodes grow alike (see graphcon-damped-decay).",
)
def constant_neutral(coupling: Tensor, shift: float, times: Tensor, damping: float) -> Check:
    """The distance of c + shift from c along the exact linearised solution.

    Args:
        shift: The perturbation, the same at every node.

    Shape: coupling [v, v]; times, measured and bound [K].
    """
    x = torch.full((len(coupling), 1), shift, dtype=torch.float64)
    xs, _ = oscillation(coupling, x, 0 * x, times, damping)
    sums = coupling.sum(1)
    return Check(
        measured=xs.abs().amin((1, 2)),
        bound=x.abs().amax(),
        relation="==",
        tolerance=1e-9,
        assumptions={"rows of A sum to 1": bool((sums - 1).abs().max() < 1e-10)},
        places=times,
        axis="time t",
        quantity="distance from c",
    )


@statement(
    "graphcon-linear-identity",
    number="(7.19)",
    chapter="GraphCON",
    claim="The energy ½Σ|Y_i|² + ½Σ_{i,j} ½A_ij|X_j - X_i|² of the linearised system is T1 + T2 + "
    "T3: the start, damped by e^(-2αt), what the potential gives back, and the asymmetry of A.",
    state="holds",
    example=lambda: linear_identity(
        random_walk_matrix(_EDGES, 12), features(12, 1, 0), features(12, 1, 1), 20.0, 0.4
    ),
    remark="T2 makes up for the potential part that T1 damps too much; it is no source of energy.",
)
def linear_identity(
    coupling: Tensor, x: Tensor, y: Tensor, end: float, damping: float, steps: int = 2000
) -> Check:
    """Both sides of the identity up to a time, the integrals by Simpson's rule.

    Args:
        x: Features X(0).
        end: The last time.
        steps: Intervals of the rule; sides are compared at every second point.

    Shape: coupling [v, v]; x, y [v, m]; measured and bound [steps / 2 + 1].
    """
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
    decay = (-2 * damping * times[::2]).exp()
    return Check(
        measured=energy[::2],
        bound=decay * (energy[0] + integral),
        relation="==",
        tolerance=1e-7,
        assumptions={"rows of A sum to 1": bool((coupling.sum(1) - 1).abs().max() < 1e-10)},
        places=times[::2],
        axis="time t",
        quantity="energy",
    )


def _all_joined() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Five nodes, all neighbours of each other: every mode has the same λ."""
    edges = undirected((i, j) for i in range(5) for j in range(i))
    return metropolis_matrix(edges, 5), features(5, 1, 0), torch.zeros(5, 1).double(), _TIMES


@statement(
    "graphcon-damped-decay",
    number="T 7.2.5, 7.2.6",
    chapter="GraphCON",
    claim="For α > 0 and A symmetric with rows of sum 1, the linearised D(t) decays exponentially: "
    "mode k > 1 of I - A no slower than e^(-αt/2) |e^(√(α²/4 - λ_k) t)|.",
    state="corrected",
    example=lambda: damped_decay(*_all_joined(), 0.5),
    remark="Every mode but the constant one obeys x'' + αx' + λx = 0. D falls by e^(-αt) where "
    "α² < 4λ: nodes grow alike exponentially, although no (c, 0) is exponentially stable.",
)
def damped_decay(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor, damping: float) -> Check:
    """D along the exact solution against the sum of its modes' bounds.

    Args:
        x: Features X(0), as distances from c.
        damping: α, with α² = 4λ for no mode.

    Shape: coupling [v, v]; x, y [v, m]; times, measured and bound [K].
    """
    xs, _ = oscillation(coupling, x, y, times, damping)
    values, modes = torch.linalg.eigh(torch.eye(len(x), dtype=x.dtype) - coupling)
    a = (modes.T @ x)[1:]
    b = (modes.T @ y)[1:] + damping / 2 * a
    root = (damping**2 / 4 - values[1:]).to(torch.complex128).sqrt()
    size = a.abs() + b.abs() / root.abs()[:, None]
    rate = root.real - damping / 2
    bound = ((2 * rate * times[:, None]).exp() * size.square().sum(1)).sum(1)
    weights = joined(coupling)
    largest = laplacian_values(weights)[-1]
    return Check(
        measured=dirichlet(xs, coupling),
        bound=2 * largest / len(x) * bound,
        assumptions={
            **symmetric_stochastic(coupling),
            "α > 0": damping > 0,
            "λ > 0 but for constants": bool(values[1] > 1e-12),
        },
        places=times,
        axis="time t",
        quantity="Dirichlet energy D",
    )


@statement(
    "graphcon-algebraic-printed",
    number="T 7.2.5, 7.2.6",
    chapter="GraphCON",
    claim="For α > 1/2 GraphCON mitigates oversmoothing by construction: D does not decay "
    "exponentially, but algebraically at the most.",
    state="false",
    example=lambda: algebraic_printed(
        _constant_layer(1.0, 160), 1 + torch.rand(12, 1, generator=_seeded()).double(), _EDGES
    ),
    remark="The conclusion drawn from (7.19), which names no power. With every doubling of time an "
    "algebraic decay loses the same in log D, whatever its power, an exponential one twice as "
    "much as before; 1.5 times is the line. Counterexample: ReLU, identity weights, mean over the "
    "neighbours, α = γ = 1, dt = 0.2, positive features, 160 layers.",
)
def algebraic_printed(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """What log D loses in a doubling of time against what it lost in the one before.

    D at a layer is its largest value from there on, so that oscillations do not count.

    Args:
        layer: With ReLU, one shared convolution F(X) = A X and at least 12 layers.
        x: Positive features.

    Shape: x [v, m]; measured and bound [].
    """
    coupling = row_matrix(layer.convs[0], x, edge_index)
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
    energy = difference_sum(xs, neighbours(edge_index, len(x))) / len(x)
    before, after = lost_in_doublings(energy)
    return Check(
        measured=after,
        bound=1.5 * before,
        assumptions={
            "rows of A sum to 1": bool((coupling.sum(1) - 1).abs().max() < 1e-10),
            "features positive": bool((xs > 0).all()),
            "α > 1/2, γ = 1": layer.damping > 0.5 and layer.frequency == 1,
        },
        quantity="what log D loses in a doubling of time",
    )


def lost_in_doublings(energy: Tensor) -> tuple[Tensor, Tensor]:
    """What log D loses from a sixth of the layers to a third, and from there to two thirds."""
    first = (len(energy) - 1) // 6
    early, middle, late = (energy[n:].max().log() for n in (first, 2 * first, 4 * first))
    return early - middle, middle - late


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)
