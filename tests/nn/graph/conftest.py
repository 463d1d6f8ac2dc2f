"""Small graphs and convolutions for the tests of graph models."""

import pytest
import torch


@pytest.fixture
def graph():
    """Seven nodes: directed and undirected edges, a self-loop, a duplicate; node 6 is isolated."""
    return torch.tensor([[0, 1, 1, 2, 3, 3, 4, 4, 5, 0], [1, 0, 2, 1, 3, 4, 5, 5, 2, 5]])


def features(nodes=7, width=8, seed=0, dtype=torch.float64):
    return torch.rand(nodes, width, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's").nn


@pytest.fixture
def x():
    return features()
