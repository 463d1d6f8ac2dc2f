import pytest


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's").nn
