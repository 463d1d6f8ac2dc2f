"""What the papers prove about GraphCON's energy (thesis, chapter 7).

What the checks take, unless they say otherwise:

    coupling: A.
    x: Features X(0).
    y: Velocities Y(0).
    edge_index: The graph.

Shape: x [v, m]; measured and bound [L + 1].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anharmonic import _tensors
from anharmonic.nn import GraphCON
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    metropolis_matrix,
    path,
    random_graph,
)
from anharmonic_papers.theory.integrate import linear_flow
from anharmonic_papers.theory.statements import Check, statement


def features(nodes: int, width: int, seed: int) -> Tensor:
    """Normally distributed features of an example, float64, [nodes, width]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, width, generator=generator, dtype=torch.float64)


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


def symmetric_stochastic(coupling: Tensor) -> dict[str, bool]:
    """The assumption on A that most statements of the chapter share."""
    return {
        "A symmetric": torch.allclose(coupling, coupling.T, rtol=0, atol=1e-12),
        "rows of A sum to 1": _sum_to_one(coupling.sum(1)),
    }


def _sum_to_one(sums: Tensor) -> bool:
    return bool((sums - 1).abs().max() < 1e-10)


def _example_energy() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    coupling = metropolis_matrix(random_graph(12, 8, seed=0), 12)
    return coupling, features(12, 2, 0), features(12, 2, 1), torch.linspace(0, 20, 81).double()


def _energy(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor, factor: float) -> Check:
    xs, ys = oscillation(coupling, x, y, times, damping=0.0)
    energy = ys.square().sum((-2, -1)) + factor * difference_sum(xs, coupling)
    return Check(
        measured=energy,
        bound=energy[0],
        relation="==",
        tolerance=1e-10,
        assumptions=symmetric_stochastic(coupling),
        places=times,
        axis="time t",
        quantity="energy",
    )


@statement(
    "graphcon-energy",
    number="T 7.2.1",
    chapter="GraphCON",
    claim="For σ = id, α = 0, γ = 1, A symmetric with rows of sum 1, the energy Σ_i|Y_i|² + "
    "½ Σ_iΣ_j A_ij|X_i - X_j|² is conserved.",
    state="corrected",
    example=lambda: energy(*_example_energy()),
    remark="With the factor ½, as the double sum counts every edge twice.",
)
def energy(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """The energy of the exact solution X'' = A X - X against its start.

    Args:
        times: Where to look.

    Shape: coupling [v, v]; x, y [v, m]; times, measured and bound [K].
    """
    return _energy(coupling, x, y, times, 0.5)


@statement(
    "graphcon-energy-printed",
    number="T 7.2.1",
    chapter="GraphCON",
    claim="The same with Σ_iΣ_{j∈N_i} A_ij|X_i - X_j|² and no factor ½.",
    state="false",
    example=lambda: energy_printed(*_example_energy()),
    remark="(7.11) as an ordered double sum: the sum is not conserved on a graph of 12 nodes.",
)
def energy_printed(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """The energy as printed; arguments as ``energy``."""
    return _energy(coupling, x, y, times, 1.0)


def _example_scheme() -> Check:
    coupling, x, _, _ = _example_energy()
    layer = GraphCON(MatrixCoupling(coupling), 200, 0.5, damping=0.0, activation="identity")
    return energy_scheme(layer, x, random_graph(12, 8, seed=0))


@statement(
    "graphcon-energy-scheme",
    number="T 7.2.1, (7.4)",
    chapter="GraphCON",
    claim="The scheme (7.4) conserves Σ|Y|² + ½ ΣΣ A_ij|X_i - X_j|² - dt Σ_i Y_i·(X_i - (AX)_i).",
    state="corrected",
    example=_example_scheme,
    remark="The paper has the continuous energy only; the scheme changes it by a term of "
    "order dt and conserves the sum to rounding.",
)
def energy_scheme(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """The modified energy at every layer against its start.

    Args:
        layer: Linear, with one shared convolution F(X) = A X.
        x: Features.
    """
    coupling = row_matrix(layer.convs[0], x, edge_index)
    with torch.no_grad():
        _, (xs, ys) = layer(x, edge_index, return_states=True)
        linear = torch.allclose(layer.convs[0](x, edge_index), coupling @ x, atol=1e-10)
    energy = ys.square().sum((-2, -1)) + 0.5 * difference_sum(xs, coupling)
    energy = energy - layer.dt * (ys * (xs - coupling @ xs)).sum((-2, -1))
    return Check(
        measured=energy,
        bound=energy[0],
        relation="==",
        tolerance=1e-10,
        assumptions={
            "F(X) = A X": linear and len(layer.convs) == 1,
            "σ = id": _is_identity(layer),
            "α = 0, γ = 1": layer.damping == 0 and layer.frequency == 1,
            **symmetric_stochastic(coupling),
        },
        axis="layer n",
        quantity="modified energy",
    )


def _is_identity(layer: GraphCON) -> bool:
    probe = torch.linspace(-2, 2, 9)
    return torch.equal(layer._sigma(probe), probe)


def row_matrix(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor:
    """A of a convolution that is F(X) = A X, column by column from unit features."""
    unit = torch.eye(len(x), dtype=x.dtype)
    with torch.no_grad():
        columns = [conv(e[:, None].expand_as(x).contiguous(), edge_index)[:, 0] for e in unit]
    return torch.stack(columns, dim=1)


@statement(
    "graphcon-undamped-spread",
    number="T 7.2.1",
    chapter="GraphCON",
    claim="For α = 0 differences do not decay: the mean over [0, t] of ½ΣΣ A_ij|X_i - X_j|² is at "
    "least Σ_k E_k (1 - 1/(t√λ_k))/2, E_k the energy of mode k > 1 of I - A.",
    state="holds",
    example=lambda: undamped_spread(*_example_energy()),
    remark="Not in the paper: what conservation of energy says about oversmoothing, in numbers.",
)
def undamped_spread(coupling: Tensor, x: Tensor, y: Tensor, times: Tensor) -> Check:
    """The potential energy's running mean, by the trapezoidal rule, against its bound.

    Args:
        times: Where to look, from 0 and closely; times below 1/min√λ are left out.

    Shape: coupling [v, v]; x, y [v, m]; times [K]; measured and bound [<= K].
    """
    values, modes = torch.linalg.eigh(torch.eye(len(x), dtype=x.dtype) - coupling)
    omega = values[1:].clamp(min=0).sqrt()
    a, b = modes[:, 1:].T @ x, modes[:, 1:].T @ y / omega[:, None]
    energy = (omega.square()[:, None] * (a.square() + b.square())).sum(1)
    xs, _ = oscillation(coupling, x, y, times, damping=0.0)
    mean = torch.cumulative_trapezoid(0.5 * difference_sum(xs, coupling), times) / times[1:]
    late = times[1:] * omega.min() > 1
    times = times[1:][late]
    return Check(
        measured=mean[late],
        bound=0.5 * (energy * (1 - 1 / (times[:, None] * omega))).sum(1),
        relation=">=",
        assumptions={**symmetric_stochastic(coupling), "connected": bool(values[1] > 1e-12)},
        places=times,
        axis="time t",
        quantity="mean potential energy",
    )


def _example_uncoupled() -> Check:
    layer = GraphCON(
        MatrixCoupling(torch.eye(4).double()), 1000, 0.01, damping=0.0, activation=torch.zeros_like
    )
    return uncoupled(layer, features(4, 2, 0), path(4))


@statement(
    "graphcon-uncoupled",
    number="(7.10)",
    chapter="GraphCON",
    claim="For σ = 0, α = 0, γ = 1: X_i(t) = X_i(0) cos t + Y_i(0) sin t, up to dt in the scheme.",
    state="holds",
    example=_example_uncoupled,
)
def uncoupled(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """The scheme's first feature against the exact oscillation, within dt.

    Args:
        layer: Its activation returns zeros.
        x: Features X^0.
    """
    with torch.no_grad():
        _, (xs, ys) = layer(x, edge_index, return_states=True)
    times = layer.dt * torch.arange(len(xs), dtype=x.dtype)
    probe = torch.linspace(-2, 2, 9)
    return Check(
        measured=xs[:, 0, 0],
        bound=xs[0, 0, 0] * times.cos() + ys[0, 0, 0] * times.sin(),
        relation="==",
        tolerance=layer.dt,
        assumptions={
            "σ = 0": not layer._sigma(probe).any(),
            "α = 0, γ = 1": layer.damping == 0 and layer.frequency == 1,
        },
        places=times,
        axis="time t",
        quantity="feature X of a node",
    )
