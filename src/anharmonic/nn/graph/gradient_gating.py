"""Gradient Gating (G²): every node and channel updates at its own rate."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks, ops
from anharmonic.nn.graph.arguments import Activation, activation_function, modules
from anharmonic.nn.graph.deep import DeepGraphLayer, GraphInputs


class Gated(NamedTuple):
    """Every layer's states.

    Attributes:
        x: Features [L + 1, N, m], the initial ones first.
        tau: Rates [L, N, m], or [L, N, 1] with a single rate per node.
    """

    x: Tensor
    tau: Tensor


class GradientGating(DeepGraphLayer):
    r"""Gradient gating around any graph convolution, L layers of (8.4).

    With X the node features, F a graph convolution, F̂ that of the gate and, in (8.4), a = 1:

    .. math::
        \tau^n_{ik} &= \tanh\Big(\sum_{j \in N_i} |\hat\tau^n_{jk} - \hat\tau^n_{ik}|^p\Big),
        \quad \hat\tau^n = \hat\sigma(\hat F_{\hat\theta}(X^{n-1})) \\
        X^n &= (1 - (\tau^n)^a) \odot X^{n-1} + (\tau^n)^a \odot \sigma(F_\theta(X^{n-1}))

    Where neighbours agree, the rate goes to zero and the node keeps its features: no oversmoothing.

    Args:
        conv: The convolution F, called as ``conv(x, edge_index, ...)``; output and input have the
            same width. One module shared by all layers, or a list with one per layer.
        num_layers: Number of layers, L >= 1.
        p: Exponent of the differences, > 0; the paper tunes it in [1, 5]. Default 2. On a CPU,
            integers up to 5 run several times as fast as other values (benchmark ``graphs``).
        gate_conv: The convolution F̂ of the gate, or one per layer; None shares F.
        aggr: "sum", "mean" or "max" over the neighbours.
        neighbours: "in" (the sources of a node's incoming edges, as in the convolutions) or "out"
            (the targets of its outgoing edges, as in the published code).
        single_rate: Whether a node has one rate for all channels: tanh of the sum over channels of
            ``|.|^p`` (8.26).
        rate_exponent: a >= 0 (section 8.4); 1 is G², 0 the plain network without gating.
        gate_scale: Factor > 0 of τ̂. Values above 1 open a gate that small features close.
        norm: Applied to F(X) before σ, such as ``[torch.nn.LayerNorm(16) for _ in range(8)]``. One
            module shared by all layers, or a list with one per layer; None for no norm. A
            ``gate_conv`` gets copies of them.
        dropout: Probability in [0, 1) of zeroing an entry of σ(F(X)).
        activation: σ, a function or "relu", "elu", "tanh", "gelu", "identity".
        gate_activation: σ̂, likewise.
        checkpoint: Whether to store every sqrt(L)-th state only and recompute the others in the
            backward pass. Memory then grows with sqrt(L).

    Shape:
        x [N, m]; edge_index [2, E], a sparse adjacency [N, N] whose row i holds the edges that end
        in i, or an ``anharmonic.Adjacency``; result [N, m].

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range, or conv changes the width.

    Note:
        The published code takes the mean over out-neighbours: ``aggr="mean", neighbours="out"``.
        The gradient of ``|d|^p`` at d = 0 is set to 0 for every p. With ``checkpoint``, running
        statistics (batch norm) are updated twice.

    Example:
        >>> import anharmonic as ah, torch
        >>> class Neighbours(torch.nn.Module):  # or torch_geometric.nn.GCNConv(16, 16)
        ...     def forward(self, x, edge_index):
        ...         return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        >>> layer = ah.GradientGating(Neighbours(), num_layers=8)
        >>> layer(torch.rand(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 16])

    References:
        Rusch, Chamberlain, Mahoney, Bronstein and Mishra, Gradient Gating for Deep Multi-Rate
        Learning on Graphs, ICLR 2023.
    """

    states_type = Gated
    intervals: ClassVar[dict[str, Any]] = {
        "p": {"low": 0.0, "low_open": True},
        "rate_exponent": {"low": 0.0},
        "gate_scale": {"low": 0.0, "low_open": True},
        "dropout": {"low": 0.0, "high": 1.0, "high_open": True},
    }
    sorts_edges = True

    def __init__(
        self,
        conv: nn.Module | Iterable[nn.Module],
        num_layers: int,
        p: float = 2.0,
        gate_conv: nn.Module | Iterable[nn.Module] | None = None,
        aggr: str = "sum",
        *,
        neighbours: str = "in",
        single_rate: bool = False,
        rate_exponent: float = 1.0,
        gate_scale: float = 1.0,
        norm: nn.Module | Iterable[nn.Module] | None = None,
        dropout: float = 0.0,
        activation: str | Activation = "relu",
        gate_activation: str | Activation = "relu",
        checkpoint: bool = False,
    ) -> None:
        super().__init__(conv, num_layers, checkpoint, norm)
        self.p, self.dropout = p, dropout
        self.gate_convs = (
            None if gate_conv is None else modules("gate_conv", gate_conv, self.num_layers)
        )
        self.gate_norms = None if self.gate_convs is None else copy.deepcopy(self.norms)
        self.aggr = _checks.choice("aggr", aggr, ("sum", "mean", "max"))
        self.neighbours = _checks.choice("neighbours", neighbours, ("in", "out"))
        self.single_rate = _checks.boolean("single_rate", single_rate)
        self.rate_exponent, self.gate_scale = rate_exponent, gate_scale
        self._sigma = activation_function("activation", activation)
        self._gate_sigma = activation_function("gate_activation", gate_activation)

    def _step(self, n: int, states: tuple[Tensor, ...], inputs: GraphInputs) -> tuple[Tensor, ...]:
        (x,) = states
        coupling = self._coupling(self.convs, self.norms, n, x, inputs)
        same = self._gate_sigma is self._sigma
        own_coupling = coupling if same or self.gate_convs else coupling.clone()  # σ may change it
        target = self._sigma(coupling)
        if self.gate_convs is not None:
            own_coupling = self._coupling(self.gate_convs, self.gate_norms, n, x, inputs)
            tau_hat = self._gate_sigma(own_coupling)
        else:
            tau_hat = target if same else self._gate_sigma(own_coupling)
        tau = ops.gradient_gate(
            tau_hat if self.gate_scale == 1 else self.gate_scale * tau_hat,
            inputs.adjacency,  # type: ignore[arg-type]
            p=self.p,
            aggr=self.aggr,
            neighbours=self.neighbours,
            single_rate=self.single_rate,
        )
        rate = tau if self.rate_exponent == 1 else _power(tau, self.rate_exponent)
        target = functional.dropout(target, self.dropout, self.training) if self.dropout else target
        target, rate = target.to(x.dtype), rate.to(x.dtype)  # autocast lowers the precision of some
        return torch.lerp(x, target, rate.expand_as(x)), tau  # (1 - rate) x + rate target

    def _check_conversion(self) -> None:
        raise TypeError(
            _checks.message(
                "the gate compares the features of nodes of one kind",
                "a call of torch_geometric.nn.to_hetero",
                "pass it a GraphCON",
            )
        )

    def extra_repr(self) -> str:
        """Return the settings shown in the layer's repr."""
        return (
            f"num_layers={self.num_layers}, p={self.p:g}, aggr={self.aggr!r}, "
            f"neighbours={self.neighbours!r}, gate_scale={self.gate_scale:g}"
        )


def _power(tau: Tensor, exponent: float) -> Tensor:
    """Return τ^a, with gradient 0 where τ is so small that the gradient would overflow."""
    small = tau < torch.finfo(tau.dtype).tiny ** 0.5
    power = tau.masked_fill(small, 1.0) ** exponent
    return torch.where(small, tau.detach() ** exponent, power)
