"""Convolutions by name, so that a model of a task is made from names and numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.graph.attention import AdditiveAttentionCoupling, AttentionCoupling
from anharmonic.nn.graph.couplings import (
    RESIDUALS,
    ChannelGroupMean,
    Propagation,
    ResidualCoupling,
)

CONVS = (
    "GCN",
    "GAT",
    "GATv2",
    "SAGE",
    "GIN",
    "GatedGraph",
    "ResGated",
    "Transformer",
    "Tran",
    "GATMean",
    "Propagation",
    "MLP",
)
"""Names of convolutions: PyTorch Geometric's; means of neighbours by the attention of GRAND (Tran)
and of GAT (GATMean); GCN's sum over neighbours without weights (Propagation); and none (MLP)."""


class NodewiseLinear(nn.Linear):
    """An affine map of every node's own features: the convolution that looks at no neighbour.

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
    """Makes a convolution that keeps the width.

    Args:
        name: One of ``CONVS``.
        channels: Width m of input and output.
        heads: Attention heads, averaged (GAT, GATv2, Transformer, Tran, GATMean). Those of Tran
            have m / heads channels each, as in GRAND, so ``heads`` must divide m.
        residual: The published residual terms: "v1", "v2" (with GCN), "plain"; None for none.
        group_mean: Whether attention heads are concatenated and groups of neighbouring channels
            averaged after elu, as in the published code (GAT).

    Raises:
        ValueError: If a name is unknown, or a variant does not fit the convolution.
        ImportError: If PyTorch Geometric is missing.

    Example:
        >>> make_conv("MLP", 8)
        NodewiseLinear(in_features=8, out_features=8, bias=True)
    """
    check_conv(name, residual, group_mean)
    wide = channels * heads if group_mean else channels
    conv = _conv(name, channels, heads, concat=group_mean)
    if residual is not None:
        conv = ResidualCoupling(conv, channels, wide, residual)
    return ChannelGroupMean(conv, heads) if group_mean else conv


def check_conv(name: str, residual: str | None, group_mean: bool) -> None:
    """Checks the choice of a convolution and its published variants, without making it.

    Args:
        name: One of ``CONVS``.
        residual: "v1", "v2", "plain" or None.
        group_mean: Whether groups of channels are averaged.

    Raises:
        TypeError: If group_mean is neither True nor False.
        ValueError: If a name is unknown, or a variant does not fit the convolution.

    Example:
        >>> check_conv("GCN", "v1", False)
    """
    _checks.choice("conv", name, CONVS)
    if residual is not None:
        _checks.choice("residual", residual, RESIDUALS)
    for wanted, given, text in (
        ("GAT", _checks.boolean("group_mean", group_mean), "group_mean=True"),
        ("GCN", residual in ("v1", "v2"), f"residual={residual!r}"),
    ):
        _checks.require(
            not given or name == wanted, "conv", name, f"{wanted!r} for {text}", f"drop {text}"
        )


def _conv(name: str, channels: int, heads: int, concat: bool) -> nn.Module:
    if name == "MLP":
        return NodewiseLinear(channels, channels)
    if name == "Tran":
        return AttentionCoupling(channels, heads=heads)
    if name == "GATMean":
        return AdditiveAttentionCoupling(channels, heads)
    if name == "Propagation":
        return Propagation()
    pyg = library()
    same = (channels, channels)
    makers: dict[str, Callable[[], nn.Module]] = {
        "GCN": lambda: pyg.GCNConv(*same),
        "GAT": lambda: pyg.GATConv(*same, heads=heads, concat=concat),
        "GATv2": lambda: pyg.GATv2Conv(*same, heads=heads, concat=False),
        "SAGE": lambda: pyg.SAGEConv(*same),
        "GIN": lambda: pyg.GINConv(
            nn.Sequential(nn.Linear(*same), nn.ReLU(), nn.Linear(*same)), train_eps=True
        ),
        "GatedGraph": lambda: pyg.GatedGraphConv(channels, 1),
        "ResGated": lambda: pyg.ResGatedGraphConv(*same),
        "Transformer": lambda: pyg.TransformerConv(*same, heads=heads, concat=False),
    }
    return makers[name]()


def library() -> Any:
    """PyTorch Geometric's layers, imported when first used.

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
