"""What the papers say about Gradient Gating's range and its limits (thesis, chapter 8).

What the checks take, unless they say otherwise:

    x: Features.
    edge_index: The graph.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from anharmonic.nn import GradientGating
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.graphs import MatrixCoupling, gcn_matrix, random_graph
from anharmonic_papers.theory.statements import Check, statement

_EDGES = random_graph(12, 8, seed=0)


class _Mixing(nn.Module):
    """A X W of an example, W normally distributed."""

    def __init__(self, width: int, scale: float, seed: int) -> None:
        super().__init__()
        self.coupling = gcn_matrix(_EDGES, 12)
        self.weight = scale * features(width, width, seed)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.coupling @ x @ self.weight


def _range(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float, start: Tensor
) -> Check:
    """Highest and (negative) lowest feature of every layer; start: the range asked of X^0."""
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
    top = torch.maximum(start.max(), torch.tensor(high))
    bottom = torch.minimum(start.min(), torch.tensor(low))
    probe = layer._sigma(torch.linspace(-50, 50, 10001, dtype=torch.float64))
    return Check(
        measured=torch.stack([xs.amax((1, 2)), -xs.amin((1, 2))]),
        bound=torch.stack([top, -bottom])[:, None].expand(2, len(xs)),
        assumptions={
            "σ between the given values": bool((probe >= low).all() and (probe <= high).all())
        },
        axis="layer n",
        quantity="largest X; largest -X",
    )


def _gated(scale: float = 5.0) -> GradientGating:
    convs = [_Mixing(3, scale, seed) for seed in range(200)]
    return GradientGating(convs, 200, activation="tanh", gate_activation="tanh")


@statement(
    "g2-range",
    number="T 8.2.1",
    chapter="Gradient Gating",
    claim="For σ between σ̲ and σ̄: min(min X^0, σ̲) ≤ X_ik^n ≤ max(max X^0, σ̄).",
    state="corrected",
    example=lambda: feature_range(_gated(), 3 * features(12, 3, 0), _EDGES, -1.0, 1.0),
    remark="With the range of the initial features in place of [-1, 1]. For ReLU only the lower "
    "bound says something.",
)
def feature_range(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float
) -> Check:
    """The range of the features at every layer.

    Args:
        layer: Any.
        low: The infimum of σ.
        high: Its supremum.

    Shape: x [v, m]; measured and bound [2, L + 1]: largest X, and largest -X.
    """
    return _range(layer, x, edge_index, low, high, x)


@statement(
    "g2-range-printed",
    number="T 8.2.1",
    chapter="Gradient Gating",
    claim="The same with min(-1, σ̲) and max(1, σ̄), whatever the initial features.",
    state="false",
    example=lambda: feature_range_printed(_gated(), 3 * features(12, 3, 0), _EDGES, -1.0, 1.0),
    remark="Features that start outside [-1, 1] stay outside for as long as their rate is small; "
    "the assumption that they start inside is not stated.",
)
def feature_range_printed(
    layer: GradientGating, x: Tensor, edge_index: Tensor, low: float, high: float
) -> Check:
    """The range against the printed one; arguments as ``feature_range``."""
    return _range(layer, x, edge_index, low, high, x.new_tensor([-1.0, 1.0]))


def _plain(
    layer: GradientGating, x: Tensor, edge_index: Tensor, assumptions: dict[str, bool]
) -> Check:
    shared = len(layer.convs) == 1
    plain = [x]
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
        for n in range(layer.num_layers):
            conv = layer.convs[0 if shared else n]
            plain.append(layer._sigma(conv(plain[-1], edge_index)))
    return Check(
        measured=(xs - torch.stack(plain)).abs().amax((1, 2)),
        bound=1e-13 * torch.stack(plain).abs().max(),
        assumptions=assumptions,
        axis="layer n",
        quantity="distance from the plain network",
    )


def _example_saturated() -> Check:
    convs = [_Mixing(3, 0.7, seed) for seed in range(20)]
    far = _Apart()
    return limit_plain(
        GradientGating(convs, 20, gate_conv=far, activation="tanh"), features(12, 3, 0), _EDGES
    )


class _Apart(nn.Module):
    """Gate features that differ by at least 30 between any two nodes."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return 30.0 * torch.arange(1, len(x) + 1, dtype=x.dtype)[:, None].expand_as(x)


@statement(
    "g2-limit-plain",
    number="(8.4), τ = 1",
    chapter="Gradient Gating",
    claim="Where all rates are 1, G² is the plain network X^n = σ(F(X^{n-1})).",
    state="holds",
    example=_example_saturated,
)
def limit_plain(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """How far every layer is from the plain network, against rounding.

    Args:
        layer: With a gate that is saturated.

    Shape: x [v, m]; measured and bound [L + 1].
    """
    with torch.no_grad():
        _, (_, tau) = layer(x, edge_index, return_states=True)
    return _plain(layer, x, edge_index, {"τ = 1": bool((tau == 1).all())})


def _example_exponent() -> Check:
    convs = [_Mixing(3, 0.7, seed) for seed in range(20)]
    layer = GradientGating(convs, 20, rate_exponent=0.0, activation="tanh")
    return limit_exponent(layer, features(12, 3, 0), _EDGES)


@statement(
    "g2-limit-exponent",
    number="T 8.4, a = 0",
    chapter="Gradient Gating",
    claim="With the rates to the power a = 0, G² is the plain network without gating.",
    state="holds",
    example=_example_exponent,
)
def limit_exponent(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """How far every layer is from the plain network; arguments as ``limit_plain``."""
    return _plain(layer, x, edge_index, {"a = 0": layer.rate_exponent == 0})


def _example_euler() -> Check:
    coupling = MatrixCoupling(gcn_matrix(_EDGES, 12))
    return euler_step(GradientGating(coupling, 30, p=1.5), features(12, 2, 0).abs(), _EDGES)


@statement(
    "g2-euler",
    number="(8.9)",
    chapter="Gradient Gating",
    claim="(8.4) is Euler's step of size 1 for X' = τ(t) ⊙ (σ(F(X(t))) - X(t)), with "
    "τ_ik = tanh(Σ_j |τ̂_jk - τ̂_ik|^p).",
    state="corrected",
    example=_example_euler,
    remark="The last line of (8.9) writes X^{n-1} where X(t) must stand.",
)
def euler_step(layer: GradientGating, x: Tensor, edge_index: Tensor) -> Check:
    """Every layer's features against Euler's step, the rates summed over neighbours one by one.

    Args:
        layer: With F̂ = F, one shared convolution, sums and one rate per channel.

    Shape: x [v, m]; measured and bound [L].
    """
    source, target = edge_index
    gaps = []
    with torch.no_grad():
        _, (xs, _) = layer(x, edge_index, return_states=True)
        for before, after in itertools.pairwise(xs):
            coupling = layer.convs[0](before, edge_index)
            gate = layer._gate_sigma(coupling)
            apart = (gate[source] - gate[target]).abs() ** layer.p
            rate = torch.zeros_like(x).index_add(0, target, apart).tanh()
            step = before + rate * (layer._sigma(coupling) - before)
            gaps.append((after - step).abs().max())
    return Check(
        measured=torch.stack(gaps),
        bound=1e-13 * xs.abs().max(),
        assumptions={
            "F̂ = F, independent of n": layer.gate_convs is None and len(layer.convs) == 1,
            "sum over neighbours, one rate per channel, a = 1": layer.aggr == "sum"
            and not layer.single_rate
            and layer.rate_exponent == 1,
        },
        axis="layer n",
        quantity="distance from Euler's step",
    )
