"""Convolutions by name."""

import pytest
import torch

from anharmonic.nn.graph.convolutions import CONVS, NodewiseLinear, make_conv
from anharmonic.nn.graph.couplings import ChannelGroupMean, ResidualCoupling

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_a_nodewise_map_sees_no_edges():
    conv, x = NodewiseLinear(2, 3), torch.rand(3, 2)
    assert torch.equal(conv(x, EDGES), torch.nn.functional.linear(x, conv.weight, conv.bias))


@pytest.mark.parametrize("name", CONVS)
def test_the_width_is_kept(name):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    assert make_conv(name, 8, heads=2)(torch.rand(3, 8), EDGES).shape == (3, 8)


def test_heads_are_averaged_and_count():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    for name in ("GAT", "GATMean"):
        few, many = (
            sum(p.numel() for p in make_conv(name, 8, heads=h).parameters()) for h in (1, 4)
        )
        assert many > few


def test_published_variants_wrap_the_convolution():
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    assert isinstance(make_conv("GCN", 8, residual="v2"), ResidualCoupling)
    wrapped = make_conv("GAT", 8, 4, residual="plain", group_mean=True)
    assert isinstance(wrapped, ChannelGroupMean)
    assert wrapped(torch.rand(3, 8), EDGES).shape == (3, 8)
