"""Convolutions by name, so that names and numbers suffice to build a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.couplings import (
    RESIDUALS,
    ChannelGroupMean,
    Propagation,
    RandomWalk,
    ResidualCoupling,
)


class NodewiseLinear(nn.Linear):
    """An affine map of each node's own features, which ignores neighbours.

    Shape:
        x [N, in_features]; result [N, out_features].

    Example:
        >>> import torch
        >>> NodewiseLinear(2, 3)(torch.zeros(5, 2), torch.zeros(2, 0).long()).shape
        torch.Size([5, 3])
    """

    takes_adjacency = True

    def forward(self, x: Tensor, edge_index: Any = None) -> Tensor:
        """The affine map."""
        return super().forward(x)


def make_conv(
    name: str,
    channels: int,
    heads: int = 4,
    residual: str | None = None,
    group_mean: bool = False,
) -> nn.Module:
    """Make a convolution that keeps the width.

    Args:
        name: One of ``CONVS``.
        channels: Width m of input and output.
        heads: Number of averaged attention heads (GAT, Tran, GATMean). A head of Tran has m / heads
            channels, as in GRAND, so ``heads`` must divide m.
        residual: The published residual terms: "v1", "v2" (with GCN), "plain"; None for none.
        group_mean: Whether to concatenate attention heads and average groups of adjacent channels
            after elu, as in the published code (GAT).

    Raises:
        ValueError: If a name is unknown, or a variant does not fit the convolution.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> make_conv("MLP", 8)
        NodewiseLinear(in_features=8, out_features=8, bias=True)
    """
    check_conv(name, residual, group_mean)
    width = channels * heads if group_mean else channels
    conv = _MAKERS[name](channels, heads, group_mean)
    if residual is not None:
        conv = ResidualCoupling(conv, channels, width, residual)
    return ChannelGroupMean(conv, heads) if group_mean else conv


def check_conv(name: str, residual: str | None, group_mean: bool) -> None:
    """Check the arguments of ``make_conv`` without making the convolution."""
    if not isinstance(name, str) or name not in CONVS:
        try:
            _checks.choice("conv", name, CONVS)
        except ValueError as error:
            advice = "any other convolution of PyTorch Geometric can be wrapped: GraphCON(conv, 8)"
            raise ValueError(f"{error}; {advice}") from None
    if residual is not None:
        _checks.choice("residual", residual, RESIDUALS)
    for needed, is_used, option in (
        ("GAT", _checks.boolean("group_mean", group_mean), "group_mean=True"),
        ("GCN", residual in ("v1", "v2"), f"residual={residual!r}"),
    ):
        expected, advice = f"{needed!r} for {option}", f"drop {option}"
        _checks.require(not is_used or name == needed, "conv", name, expected, advice)


def _make_gin(channels: int, heads: int, concat: bool) -> nn.Module:
    same = (channels, channels)
    layers = nn.Sequential(nn.Linear(*same), nn.ReLU(), nn.Linear(*same))
    return cast("nn.Module", library().GINConv(layers, train_eps=True))


_MAKERS: dict[str, Callable[[int, int, bool], nn.Module]] = {
    "GCN": lambda m, heads, concat: library().GCNConv(m, m),
    "GAT": lambda m, heads, concat: library().GATConv(m, m, heads=heads, concat=concat),
    "SAGE": lambda m, heads, concat: library().SAGEConv(m, m),
    "GIN": _make_gin,
    "ResGated": lambda m, heads, concat: library().ResGatedGraphConv(m, m),
    "Tran": lambda m, heads, concat: AttentionCoupling(m, heads=heads),
    "GATMean": lambda m, heads, concat: AdditiveAttentionCoupling(m, heads),
    "Propagation": lambda m, heads, concat: Propagation(),
    "RandomWalk": lambda m, heads, concat: RandomWalk(),
    "MLP": lambda m, heads, concat: NodewiseLinear(m, m),
}
CONVS = tuple(_MAKERS)
"""Names of convolutions. Besides PyTorch Geometric's: attention-weighted means as in GRAND (Tran)
and GAT (GATMean), GCN's sum over neighbours (Propagation) and their mean (RandomWalk), both without
weights, and no neighbours at all (MLP)."""


def library() -> Any:
    """Return PyTorch Geometric's layers, imported when first used.

    Raises:
        ImportError: If the package is missing; the message names the extra.

    Example:
        >>> library().GCNConv(2, 2)
        GCNConv(2, 2)
    """
    try:
        import torch_geometric.nn
    except ImportError as error:
        raise _checks.missing_extra("torch_geometric", "graph", "a graph convolution") from error
    return torch_geometric.nn
