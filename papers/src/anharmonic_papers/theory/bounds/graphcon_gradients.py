"""What the papers prove about GraphCON's gradients (thesis, chapter 7).

Scalar features, the operator of GCN (7.5) with one weight w^l per layer, α = γ = 1, and the loss
J = (1/2v) Σ_i |X_i^N - X̄_i|² of N layers.

What the checks take, unless they say otherwise:

    x: Features.
    edge_index: The graph.
    target: X̄.

Shape: x, target [v, 1]; measured and bound [N].
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic import _checks, _tensors
from anharmonic.nn import GraphCON
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    cycle,
    gcn_matrix,
    neighbours,
    random_graph,
)
from anharmonic_papers.theory.statements import Check, statement


def _loss_gradients(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """∂J/∂w^l of every layer, and all states."""
    weights = [w for conv in layer.convs for w in conv.parameters()]
    if len(weights) != layer.num_layers or any(w.numel() != 1 for w in weights):
        raise ValueError(
            _checks.message(
                f"the layer must have {layer.num_layers} convolutions of one weight each",
                f"weights of sizes {[list(w.shape) for w in weights]}",
                "pass a list of theory.graphs.MatrixCoupling, one per layer",
            )
        )
    _tensors.has_shape("x", x, (len(x), 1), "the statement is about scalar features")
    _, (xs, ys) = layer(x, edge_index, return_states=True)
    loss = (xs[-1] - target).square().sum() / (2 * len(x))
    found = torch.autograd.grad(loss, weights)
    return torch.stack(found), xs.detach(), ys.detach()


def _assumptions(layer: GraphCON, x: Tensor, edge_index: Tensor) -> dict[str, bool]:
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


def _printed_bound(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor) -> Check:
    gradient, xs, ys = _loss_gradients(layer, x, edge_index, target)
    dt, count = layer.dt, layer.num_layers
    entry = gcn_matrix(edge_index, len(x)).max()
    degree = neighbours(edge_index, len(x)).sum(1).max()
    growth = (6 + 4 * entry * _largest_weight(layer)) * count * dt
    start = (xs[0].abs() + ys[0].abs()).max() + target.abs().max() + (count * dt) ** 0.5
    return Check(
        measured=gradient.abs(),
        bound=entry * (degree + 1) * dt * (1 + growth) * start**2 / len(x),
        assumptions={
            **_assumptions(layer, x, edge_index),
            "|σ|, |σ'| ≤ 1": bool(layer._sigma(torch.tensor([-50.0, 50.0])).abs().max() <= 1),
            "dt small: Γ N dt ≤ 2.51": bool(growth <= 2.51),
        },
        places=torch.arange(1, count + 1),
        axis="layer l",
        quantity="|∂J/∂w^l|",
    )


def _largest_weight(layer: GraphCON) -> Tensor:
    return torch.stack([w.detach().abs() for w in layer.convs.parameters()]).max()


def _own_bound(layer: GraphCON, edge_index: Tensor, xs: Tensor, target: Tensor) -> Tensor:
    """max|X^N - X̄| a_N for every layer l, [N]."""
    dt, matrix = layer.dt, gcn_matrix(edge_index, len(target))
    pull = float(_largest_weight(layer) * matrix.sum(1).max()) + layer.frequency
    a, b, passed = dt * dt, dt, []
    for _ in range(layer.num_layers):
        passed.append(a)
        b = abs(1 - layer.damping * dt) * b + dt * pull * a
        a = a + dt * b
    sources = (matrix @ xs[:-1]).abs().amax((1, 2))
    return (xs[-1] - target).abs().max() * sources * sources.new_tensor(passed[::-1])


def gcn_layer(edge_index: Tensor, nodes: int, weights: Tensor, dt: float) -> GraphCON:
    """GraphCON with tanh and the operator of GCN, one scalar weight per layer."""
    operator = gcn_matrix(edge_index, nodes)
    convs = [MatrixCoupling(operator, float(w)) for w in weights]
    return GraphCON(convs, len(convs), dt, activation="tanh")


def _on_a_cycle(
    nodes: int, size: float = 1.0, weight: float = 0.5, target: float = -1.0
) -> tuple[GraphCON, Tensor, Tensor, Tensor]:
    """Constant features: the gradient is the same for every number of nodes."""
    x = torch.full((nodes, 1), size, dtype=torch.float64)
    layer = gcn_layer(cycle(nodes), nodes, torch.full((10,), weight), 0.01)
    return layer, x, cycle(nodes), torch.full_like(x, target)


@statement(
    "graphcon-gradient",
    number="T 7.2.8",
    chapter="GraphCON",
    claim="|∂J/∂w^l| ≤ max|X^N - X̄| max|A X^{l-1}| a_{N-l}: b_0 = dt, a_0 = dt², b_n = |1 - dt| "
    "b_{n-1} + dt (max|w| ‖A‖∞ + 1) a_{n-1}, a_n = a_{n-1} + dt b_n, for any N dt.",
    state="corrected",
    example=lambda: gradient(*_on_a_cycle(100, 0.01, 20.0)),
    remark="Ours, without the printed factor 1/v: sup norms along the scheme itself, |σ'| ≤ 1. "
    "The printed one mixes norms, and needs ΓN dt ≤ 2.51, never met by tuned models with dt = 1.",
)
def gradient(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor) -> Check:
    """The gradients of all layers against our bound.

    Args:
        layer: With |σ'| <= 1 and one scalar weight per layer.
    """
    gradient, xs, _ = _loss_gradients(layer, x, edge_index, target)
    probe = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    rise = layer._sigma(probe).diff().abs().max() / (probe[1] - probe[0])
    return Check(
        measured=gradient.abs(),
        bound=_own_bound(layer, edge_index, xs, target),
        assumptions={
            **_assumptions(layer, x, edge_index),
            "|σ'| ≤ 1": bool(rise <= 1 + 1e-9),
        },
        places=torch.arange(1, layer.num_layers + 1),
        axis="layer l",
        quantity="|∂J/∂w^l|",
    )


@statement(
    "graphcon-gradient-printed",
    number="T 7.2.8",
    chapter="GraphCON",
    claim="|∂J/∂w^l| ≤ (β' D̂ (d̂+1)/v) dt (1 + ΓN dt)(max(|X_i^0|+|Y_i^0|) + max|X̄_i| + "
    "β√(N dt))², Γ = 6 + 4β'D̂ max|w|, D̂ the operator's largest entry, d̂ the largest degree.",
    state="false",
    example=lambda: gradient_printed(*_on_a_cycle(1000)),
    remark="On a cycle with constant features, N = 10, dt = 0.01, the gradient is 1.6e-3 for every "
    "number v of nodes, while the bound is 1.8e-3 at v = 100 and 1.8e-4 at v = 1000. (The order of "
    "its prefactor is read from a damaged line.)",
)
def gradient_printed(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor) -> Check:
    """The gradients of all layers against the bound with 1/v; arguments as ``gradient``."""
    return _printed_bound(layer, x, edge_index, target)


def _leading(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor, depth: bool) -> Check:
    gradient, xs, _ = _loss_gradients(layer, x, edge_index, target)
    count, off = layer.num_layers, xs[-1] - target
    formula = []
    for n, conv in enumerate(layer.convs):
        weight = next(conv.parameters()).detach()
        drive = (weight * gcn_matrix(edge_index, len(x)) @ xs[n]).requires_grad_()
        (slope,) = torch.autograd.grad(layer._sigma(drive).sum(), drive)
        mean = (slope * (gcn_matrix(edge_index, len(x)) @ xs[n]) * off).mean()
        formula.append(layer.dt**2 * mean * (count - n if depth else 1))
    return Check(
        measured=gradient,
        bound=torch.stack(formula),
        relation="==",
        tolerance=2 * count * layer.dt,
        assumptions={
            **_assumptions(layer, x, edge_index),
            "dt → 0 at fixed N: N dt ≤ 0.01": count * layer.dt <= 0.01,
        },
        places=torch.arange(1, count + 1),
        axis="layer l",
        quantity="∂J/∂w^l",
    )


def _shallow() -> tuple[GraphCON, Tensor, Tensor, Tensor]:
    edges = random_graph(8, 4, seed=0)
    layer = gcn_layer(edges, 8, 0.5 + features(20, 1, 2)[:, 0].abs(), 1e-4)
    return layer, features(8, 1, 0), edges, features(8, 1, 1)


@statement(
    "graphcon-gradient-leading",
    number="T 7.2.9",
    chapter="GraphCON",
    claim="For fixed N and dt → 0: ∂J/∂w^l = (N - l + 1)(dt²/v) Σ_i Σ_{j∈N_i∪{i}} σ'(C_i) X_j "
    "(X_i^N - X̄_i)/√(d_i d_j) + O(dt³).",
    state="corrected",
    example=lambda: leading_gradient(*_shallow()),
    remark="With the factor N - l + 1: the first layers do not vanish, the gradient grows with "
    "depth.",
)
def leading_gradient(layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor) -> Check:
    """The gradients of all layers against the leading term.

    Args:
        layer: With one scalar weight per layer.
    """
    return _leading(layer, x, edge_index, target, depth=True)


@statement(
    "graphcon-gradient-leading-printed",
    number="T 7.2.9",
    chapter="GraphCON",
    claim="The same without the factor, that is, independent of N.",
    state="false",
    example=lambda: leading_gradient_printed(*_shallow()),
    remark="At N = 20 the gradient of w² is 19 times the formula.",
)
def leading_gradient_printed(
    layer: GraphCON, x: Tensor, edge_index: Tensor, target: Tensor
) -> Check:
    """The gradients against the printed term; arguments as ``leading_gradient``."""
    return _leading(layer, x, edge_index, target, depth=False)
