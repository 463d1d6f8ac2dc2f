r"""Couplings: choices of F, the interaction between nodes.

Every class here is called with ``(x, edge_index)``, like PyTorch Geometric's convolutions.
``ResidualCoupling`` and ``ChannelGroupMean`` wrap another convolution as the published code does,
which differs from the papers' equations. ``Propagation`` and ``RandomWalk`` have no parameters.
"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn.graph.convolve import convolve, redraw
from anharmonic.ops.graph import Adjacency, check_features, edges_of, refuse_weights, weights_of

RESIDUALS = ("v1", "v2", "plain")
"""Kinds of published residual terms; see ``ResidualCoupling``."""


class ResidualCoupling(nn.Module):
    r"""A convolution with the residual terms of GraphCON's published code.

    With C the convolution, M its own linear map and R an affine map:

    .. math::
        \text{v1: } C(X) - R(M X), \qquad \text{v2: } C(X) - M X + R(X), \qquad
        \text{plain: } C(X) + R(X)

    Published: v1 for Cornell, v2 for Wisconsin, Texas and ZINC, plain for superpixels and GAT.

    Args:
        conv: The convolution; for v1 and v2 its attribute ``lin`` is the linear map.
        in_channels: Width m of its input.
        out_channels: Width of its output.
        kind: "v1", "v2" or "plain".

    Shape:
        x [N, in_channels]; result [N, out_channels].

    Raises:
        ValueError: If kind is unknown, or conv lacks the ``lin`` that the kind needs.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import GCNConv
        >>> coupling = ResidualCoupling(GCNConv(4, 4), 4, 4, "v2")
        >>> coupling(torch.zeros(3, 4), torch.zeros(2, 0).long()).shape
        torch.Size([3, 4])

    References:
        Rusch et al., Graph-Coupled Oscillator Networks, ICML 2022; the authors' code.
    """

    takes_adjacency = True

    def __init__(
        self, conv: nn.Module, in_channels: int, out_channels: int, kind: str = "v2"
    ) -> None:
        super().__init__()
        self.kind = _checks.choice("kind", kind, RESIDUALS)
        _checks.require(
            self.kind == "plain" or isinstance(getattr(conv, "lin", None), nn.Module), "conv", conv,
            f"a convolution with its linear map as attribute lin for kind={kind!r}",
            "pass a GCNConv, or use kind='plain'",
        )  # fmt: skip
        self.conv = conv
        source = out_channels if self.kind == "v1" else in_channels
        self.residual = nn.Linear(source, out_channels)

    def forward(self, x: Tensor, edge_index: Any, *args: Any, **options: Any) -> Tensor:
        """Apply the convolution and its residual term."""
        result = convolve(self.conv, x, edge_index, *args, **options)
        if self.kind == "plain":
            return cast("Tensor", result + self.residual(x))
        mapped = self.conv.lin(x)  # type: ignore[operator]
        if self.kind == "v1":
            return cast("Tensor", result - self.residual(mapped))
        return cast("Tensor", result - mapped + self.residual(x))

    def reset_parameters(self) -> None:
        """Redraw all weights."""
        redraw(self.conv)
        self.residual.reset_parameters()


class ChannelGroupMean(nn.Module):
    r"""The mean over groups of adjacent channels after elu, as published with GAT.

    .. math::
        G(X)_{ik} = \frac{1}{g} \sum_{r=0}^{g-1} \operatorname{elu}(C(X))_{i, g k + r}

    The published code intends to average attention heads, but averages adjacent channels. For a
    mean over heads use ``GATConv(..., concat=False)``. The activation acts before the mean, so pass
    ``activation="identity"`` to the layer around it.

    Args:
        conv: A convolution with g times as many output as input channels.
        group_size: Number of averaged channels, g >= 1. Default 4.

    Shape:
        x [N, m]; result [N, m], averaged from g * m channels of the convolution.

    Raises:
        ValueError: If the convolution's width is not a multiple of g.

    Example:
        >>> import torch
        >>> class Four(nn.Module):
        ...     def forward(self, x, edge_index):
        ...         return x.repeat(1, 4)
        >>> ChannelGroupMean(Four())(torch.ones(3, 2), torch.zeros(2, 0).long()).shape
        torch.Size([3, 2])

    References:
        The published code of GraphCON and Gradient Gating.
    """

    takes_adjacency = True

    def __init__(self, conv: nn.Module, group_size: int = 4) -> None:
        super().__init__()
        self.conv = conv
        self.group_size = _checks.positive_int("group_size", group_size)

    def forward(self, x: Tensor, edge_index: Any, *args: Any, **options: Any) -> Tensor:
        """Apply the convolution, elu and the mean over groups."""
        result = functional.elu(convolve(self.conv, x, edge_index, *args, **options))
        _checks.require(
            result.shape[1] % self.group_size == 0, "the width of conv", result.shape[1],
            f"a multiple of group_size={self.group_size}",
            "give it group_size times as many output channels",
        )  # fmt: skip
        return result.view(len(x), result.shape[1] // self.group_size, self.group_size).mean(-1)

    def reset_parameters(self) -> None:
        """Redraw the convolution's weights."""
        redraw(self.conv)


class Propagation(nn.Module):
    r"""GCN's normalised sum over neighbours, without parameters.

    .. math::
        F(X) = D^{-1/2} (A + I) D^{-1/2} X

    Edges may have weights. With the identity as activation, GraphCON with this coupling is a linear
    wave on the graph. The published code uses it for citation graphs.

    Shape:
        x [N, m]; result [N, m].

    Example:
        >>> import torch
        >>> Propagation()(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))
        tensor([[1.],
                [1.]])
    """

    takes_adjacency = True

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """Return the sum over a node's neighbours and itself."""
        if not isinstance(edge_index, Adjacency):
            edge_index = Adjacency(edges_of(edge_index), x.shape[0], weights_of(edge_index))
        check_features("x", x, edge_index)
        return cast("Tensor", edge_index.normalised.matmul(x))


class RandomWalk(nn.Module):
    r"""The mean over a node's neighbours, without parameters; 0 for an isolated node.

    .. math::
        F(X) = c\, D^{-1} A\, X

    Take GraphCON with this coupling, ``frequency`` = c, no damping, the identity as activation and
    a start from rest. It is then the wave equation X'' = -c (I - D^{-1} A) X. With dt² c = 2 its
    layers are Chebyshev polynomials, :math:`X^n = T_n(D^{-1} A) X^0`. Such a wave reaches nodes n
    hops away without losing amplitude.

    Args:
        scale: The factor c.

    Shape:
        x [N, m]; result [N, m].

    Raises:
        ValueError: If edges have weights other than 1.

    Example:
        >>> import anharmonic as ah, torch
        >>> wave = ah.GraphCON(
        ...     RandomWalk(2.0), 2, dt=1, frequency=2, damping=0, activation="identity",
        ...     initial_velocity="rest",
        ... )
        >>> line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> wave(torch.tensor([[1.0], [0.0], [0.0]]), line)
        tensor([[0.],
                [0.],
                [1.]])
    """

    takes_adjacency = True

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = _checks.number("scale", scale)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """Return the mean over a node's neighbours, times c."""
        refuse_weights(edge_index, "leave them out, or use Propagation")
        if not isinstance(edge_index, Adjacency):
            edge_index = Adjacency(edges_of(edge_index), x.shape[0])
        check_features("x", x, edge_index)
        return cast("Tensor", self.scale * edge_index.mean(x))

    def extra_repr(self) -> str:
        """Return the factor."""
        return f"scale={self.scale:g}"
