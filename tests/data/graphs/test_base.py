import numpy as np
import pytest
import torch

from anharmonic.data.base import Splits
from anharmonic.data.graph_batch import GraphDataset
from anharmonic.data.graphs.base import GraphTask, NodeData, NodeTask
from anharmonic.testing import task_checks


class Path4(NodeTask):
    """Four nodes in a row, said to be directed."""

    name = "path4"
    metric = "accuracy"
    input_size = 2
    output_size = 2

    def __init__(self, undirected=False, normalise_features=False):
        self.undirected, self.normalise_features = undirected, normalise_features
        self.sizes = {"train": 2, "valid": 1, "test": 1}
        self.built = 0

    def _read(self):
        self.built += 1
        x = np.array([[1, 3], [0, 0], [2, 2], [0, 5]])
        rows = Splits(np.array([0, 3]), np.array([1]), np.array([2]))
        return NodeData(x, np.array([[0, 1, 2], [1, 2, 3]]), np.array([0, 1, 0, 1]), rows)


def test_all_parts_share_one_graph_and_its_features():
    task = Path4()
    loaders = task.loaders(seed=0, batch_size=1)
    batches = [loaders.train(0)[0], loaders.train(7)[0], loaders.valid[0], loaders.test[0]]
    assert [len(part) for part in (loaders.train(0), loaders.valid, loaders.test)] == [1, 1, 1]
    assert len({id(batch.graph) for batch in batches}) == 1
    assert len({batch.x.data_ptr() for batch in batches}) == 1
    assert [batch.y.tolist() for batch in batches] == [[0, 1], [0, 1], [1], [0]]
    assert task.built == 1
    assert batches[0].x.dtype == torch.float32 and batches[0].y.dtype == torch.int64


def test_graphs_and_features_are_as_stored_unless_wanted_otherwise():
    stored = Path4().loaders(0, 1).test[0]
    both = Path4(undirected=True).loaders(0, 1).test[0].graph
    assert stored.graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert both.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    scaled = Path4(normalise_features=True).loaders(0, 1).test[0].x
    assert stored.x.tolist() == [[1, 3], [0, 0], [2, 2], [0, 5]]
    assert scaled.tolist() == [[0.25, 0.75], [0, 0], [0.5, 0.5], [0, 1]]


def test_summary():
    assert Path4().summary() == (
        "path4: 4 nodes (2 train, 1 valid, 1 test), 3 directed edges (0% with their reverse), "
        "2 features, one of 2 classes per node"
    )
    assert Tiny().summary() == (
        "tiny: 9 graphs (3 train, 3 valid, 3 test), 1 node each, 9 directed edges, 1 feature, "
        "1 value per graph"
    )


class Tiny(GraphTask):
    """Some graphs."""

    name = "tiny"
    target = "value"
    readout = "graph"
    metric = "mae"
    input_size = 1
    output_size = 1

    def __init__(self, sizes=(3, 3, 3)):
        self.sizes = dict(zip(("train", "valid", "test"), sizes, strict=True))

    def _build(self):
        return Splits(*(self._part(100 * i, n) for i, n in enumerate(self.sizes.values())))

    def _part(self, first, count):
        ends = torch.arange(count + 1)
        edges = torch.zeros(2, count, dtype=torch.int64)
        values = first + torch.arange(float(count))[:, None]
        return GraphDataset(values, edges, values, ends, ends)


@pytest.mark.parametrize("check", dict(task_checks(lambda: None)))
def test_contract(check):
    dict(task_checks(lambda: Tiny((9, 2, 2))))[check]()
