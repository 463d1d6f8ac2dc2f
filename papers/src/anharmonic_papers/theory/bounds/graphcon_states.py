"""What the papers prove about GraphCON's states (thesis, chapter 7): rest, bounds, limits.

What the checks take, unless they say otherwise:

    x: Features.
    edge_index: The graph.

Shape: x [v, m]; measured and bound [L + 1].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anharmonic.nn import AttentionCoupling, GraphCON
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.graphs import MatrixCoupling, gcn_matrix, path, random_graph
from anharmonic_papers.theory.statements import Check, statement


def _example_steady() -> Check:
    edges = random_graph(6, 4, seed=0)
    conv = _Driven(gcn_matrix(edges, 6), features(6, 2, 0))
    layer = GraphCON(
        conv, 50, 0.7, frequency=2.0, damping=0.3, activation="tanh", initial_velocity="zero"
    )
    x = torch.zeros(6, 2, dtype=torch.float64)
    for _ in range(200):  # (7.7), a contraction here
        x = torch.tanh(conv(x, edges)) / 2.0
    return steady_state(layer, x.detach(), edges)


class _Driven(nn.Module):
    """A X + B with a fixed drive B, so that rest is not at zero."""

    def __init__(self, coupling: Tensor, drive: Tensor) -> None:
        super().__init__()
        self.coupling, self.drive = coupling, drive

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.coupling @ x + self.drive


@statement(
    "graphcon-steady-state",
    number="(7.6)",
    chapter="GraphCON",
    claim="Y = 0, X = σ(F(X))/γ is a fixed point of (7.4), for every dt and α.",
    state="holds",
    example=_example_steady,
)
def steady_state(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """The largest distance from a steady state, against rounding.

    Args:
        layer: With one shared convolution and velocities that start at zero.
        x: The steady state.
    """
    with torch.no_grad():
        rest = layer._sigma(layer.convs[0](x, edge_index)) / layer.frequency
        _, (xs, _) = layer(x, edge_index, return_states=True)
    return Check(
        measured=(xs - x).abs().amax((-2, -1)),
        bound=1e-12 * x.abs().max(),
        assumptions={
            "X = σ(F(X))/γ": bool((rest - x).abs().max() <= 1e-14 * x.abs().max()),
            "F independent of n": len(layer.convs) == 1,
            "Y = 0": layer.initial_velocity == "zero",
        },
        axis="layer n",
        quantity="distance from the steady state",
    )


def _row_sums(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Check:
    probe = x.clone()
    probe[:, 0] = 1.0
    with torch.no_grad():
        sums = conv(probe, edge_index)[:, 0]
    return Check(
        measured=sums,
        bound=torch.ones_like(sums),
        relation="==",
        axis="node i",
        quantity="row sum Σ_j A_ij",
    )


def _example_attention() -> Check:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        conv = AttentionCoupling(3).double()
    return right_stochastic(conv, features(8, 3, 0), random_graph(8, 4, seed=0))


@statement(
    "graphcon-right-stochastic",
    number="(7.9)",
    chapter="GraphCON",
    claim="Attention, F(X) = A(X) X, has rows that sum to 1.",
    state="holds",
    example=_example_attention,
)
def right_stochastic(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Check:
    """The row sums of A(X), seen through a channel that is 1 at every node.

    Args:
        conv: F(X) = A(X) X, without a map of the channels.
        x: Features; the first channel is replaced.

    Shape: x [v, m]; measured and bound [v].
    """
    return _row_sums(conv, x, edge_index)


@statement(
    "graphcon-right-stochastic-gcn",
    number="(7.5), (7.9)",
    chapter="GraphCON",
    claim="The operator of GCN has rows that sum to 1.",
    state="false",
    example=lambda: right_stochastic_gcn(
        MatrixCoupling(gcn_matrix(path(3), 3)), features(3, 1, 0), path(3)
    ),
    remark="Its rows sum to Σ_j 1/√(d_i d_j), which is 1 on regular graphs only; the path of three "
    "nodes has 0.908, 1.150, 0.908. (7.27), A_ij = 1/d_i, is another operator, for which it holds.",
)
def right_stochastic_gcn(conv: nn.Module, x: Tensor, edge_index: Tensor) -> Check:
    """The row sums of GCN's operator; arguments as ``right_stochastic``."""
    return _row_sums(conv, x, edge_index)


def _state_bound(layer: GraphCON, x: Tensor, edge_index: Tensor, beta: float, half: float) -> Check:
    dt, gamma, alpha = layer.dt, layer.frequency, layer.damping
    with torch.no_grad():
        _, (xs, ys) = layer(x, edge_index, return_states=True)
    size = gamma * xs.square().sum(-1) + ys.square().sum(-1)
    n = torch.arange(len(xs), dtype=x.dtype)
    return Check(
        measured=(size - size[0]).amax(1),
        bound=half * x.shape[1] * n * dt * beta**2 / torch.tensor(alpha - gamma * dt).double(),
        assumptions={
            "|σ| ≤ β": beta < float("inf"),
            "dt < α/γ": gamma * dt < alpha,
            "dt < 1/α": dt * alpha < 1,
        },
        axis="layer n",
        quantity="growth of γ|X_i|² + |Y_i|²",
    )


def _driven_layer(dt: float, gamma: float, alpha: float, layers: int) -> GraphCON:
    """Two nodes whose σ(F) is 1 throughout."""
    conv = _Driven(torch.zeros(2, 2).double(), torch.full((2, 1), 40.0).double())
    return GraphCON(conv, layers, dt, gamma, alpha, activation="tanh", initial_velocity="zero")


@statement(
    "graphcon-state-bound",
    number="T 7.2.7",
    chapter="GraphCON",
    claim="For |σ| ≤ β and dt < min(α/γ, 1/α): γ|X_i^n|² + |Y_i^n|² ≤ γ|X_i^0|² + |Y_i^0|² + "
    "m t_n β²/(α - γ dt).",
    state="corrected",
    example=lambda: state_bound(
        _driven_layer(0.9, 0.1, 1.0, 30), torch.zeros(2, 1).double(), path(2)
    ),
    remark="Without the printed factor ½ of the last term, which the proof loses. ReLU has no β, "
    "and the tuned settings with dt = 1 mostly violate the condition on the step.",
)
def state_bound(layer: GraphCON, x: Tensor, edge_index: Tensor, beta: float = 1.0) -> Check:
    """The growth of the states, at the node where it is largest, against its bound.

    Args:
        layer: With a bounded activation.
        beta: sup|σ|.
    """
    return _state_bound(layer, x, edge_index, beta, 1.0)


@statement(
    "graphcon-state-bound-printed",
    number="T 7.2.7",
    chapter="GraphCON",
    claim="The same with m t_n β²/(2(α - γ dt)).",
    state="false",
    example=lambda: state_bound_printed(
        _driven_layer(0.9, 0.1, 1.0, 30), torch.zeros(2, 1).double(), path(2)
    ),
    remark="Two nodes from rest under σ = 1 with dt = 0.9, γ = 0.1, α = 1 pass it at the first "
    "layer; it does hold for dt → 0.",
)
def state_bound_printed(layer: GraphCON, x: Tensor, edge_index: Tensor, beta: float = 1.0) -> Check:
    """The growth against the printed bound; arguments as ``state_bound``."""
    return _state_bound(layer, x, edge_index, beta, 0.5)


def _example_plain() -> Check:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        convs = [AttentionCoupling(3).double() for _ in range(10)]
    return plain_limit(GraphCON(convs, 10, 1.0), features(8, 3, 0), random_graph(8, 4, seed=0))


@statement(
    "graphcon-plain-limit",
    number="(7.7)",
    chapter="GraphCON",
    claim="For dt = α = γ = 1 the scheme (7.4) is the plain network X^n = σ(F(X^{n-1})).",
    state="holds",
    example=_example_plain,
    remark="The papers' setting for Cora, Citeseer and Pubmed: no oscillator is left of it.",
)
def plain_limit(layer: GraphCON, x: Tensor, edge_index: Tensor) -> Check:
    """How far every layer's features are from those of the plain network, against rounding.

    Args:
        layer: Any.
    """
    shared = len(layer.convs) == 1
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
        plain = [x]
        for n in range(layer.num_layers):
            conv = layer.convs[0 if shared else n]
            plain.append(layer._sigma(conv(plain[-1], edge_index)))
    return Check(
        measured=(xs - torch.stack(plain)).abs().amax((1, 2)),
        bound=1e-13 * torch.stack(plain).abs().max(),
        assumptions={"dt = α = γ = 1": layer.dt == layer.damping == layer.frequency == 1},
        axis="layer n",
        quantity="distance from the plain network",
    )
