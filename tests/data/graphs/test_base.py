"""Tasks of nodes and of graphs, their batches, and the arrays they are stored as."""

import numpy as np
import pytest
import torch

from anharmonic.data.base import Splits
from anharmonic.data.graph_batch import GraphDataset, NodeDataset
from anharmonic.data.graphs.archives import node_features, stored_split
from anharmonic.data.graphs.base import GraphTask, NodeData, NodeTask
from anharmonic.data.graphs.edges import coalesce, subgraph, to_undirected
from anharmonic.ops.graph import Adjacency
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
    assert "2 features, one of 2 classes per node" in Path4().summary()


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
    assert Tiny().summary() == (
        "tiny: 9 graphs (3 train, 3 valid, 3 test), 1 node each, 9 directed edges, 1 feature, "
        "1 value per graph"
    )


def random_graphs(sizes, per_node=False):
    gen = torch.Generator().manual_seed(0)
    edges = torch.cat([torch.randint(max(n, 1), (2, 3 * n), generator=gen) for n in sizes], 1)
    x = torch.randn(sum(sizes), 4, generator=gen)
    y = torch.randn(sum(sizes) if per_node else len(sizes), 2, generator=gen)
    return GraphDataset(x, edges, y, ends(sizes), ends([3 * n for n in sizes]), per_node=per_node)


def ends(counts):
    return torch.tensor([0, *counts]).cumsum(0)


@pytest.mark.parametrize("chosen", [[0, 1], [1, 0], [2, 0, 1], [1, 1], [3], [3, 4, 0]])
def test_a_union_is_its_graphs_side_by_side(chosen):
    graphs = random_graphs([5, 2, 7, 1, 0])
    union = graphs.take(torch.tensor(chosen))
    single = [graphs.take(torch.tensor([i])) for i in chosen]
    assert union.num_graphs == len(chosen) and union.rows is None
    assert torch.equal(union.x, torch.cat([one.x for one in single]))
    assert torch.equal(union.y, torch.cat([one.y for one in single]))
    sums = [one.graph.matmul(one.x) for one in single]
    assert torch.equal(union.graph.matmul(union.x), torch.cat(sums))
    nodes = torch.tensor([one.graph.num_nodes for one in single])
    assert torch.equal(union.membership, torch.arange(len(chosen)).repeat_interleave(nodes))


def test_predictions_per_node_keep_the_order_of_nodes():
    graphs = random_graphs([3, 4], per_node=True)
    batch = graphs.take(torch.tensor([1, 0]))
    order = [3, 4, 5, 6, 0, 1, 2]
    assert batch.rows.tolist() == list(range(7))
    assert torch.equal(batch.y, graphs.y[order]) and torch.equal(batch.x, graphs.x[order])


def test_batches_of_graphs_follow_an_order():
    graphs = random_graphs([2] * 7)
    graphs.x, graphs.y = graphs.x.to(torch.uint8), torch.arange(7, dtype=torch.uint8)
    batches = graphs.batches(3, torch.arange(6, -1, -1))
    assert [batch.y.tolist() for batch in batches] == [[6, 5, 4], [3, 2, 1], [0]]
    assert [batch.num_graphs for batch in batches] == [3, 3, 1] and len(graphs) == 7
    assert (batches[0].x.dtype, batches[0].y.dtype) == (torch.float32, torch.int64)


def test_nodes_are_one_full_batch():
    graph, y = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3), torch.tensor([[1.0], [2.0], [3.0]])
    part = NodeDataset(torch.eye(3), graph, y, torch.tensor([2, 0]))
    for batch in (*part.batches(1), *part.batches(5, torch.tensor([1, 0]))):
        assert batch.graph is graph and batch.membership is None and batch.num_graphs == 1
        assert batch.rows.tolist() == [2, 0] and batch.y.tolist() == [[3.0], [1.0]]
    assert len(part) == 2


EDGE, NO_EDGES = Adjacency(torch.tensor([[0], [1]]), 3), torch.zeros(2, 0)
NODES = NodeDataset(torch.eye(3), EDGE, torch.zeros(3), torch.tensor([0]))
FIVE = torch.ones(5, 1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: NodeDataset(torch.eye(3), EDGE, torch.zeros(2), torch.tensor([0])),
         r"y must be of 3 rows, .*; got shape \[2\]"),
        (lambda: NODES.batches(0), "batch_size must be an int >= 1"),
        (lambda: GraphDataset(FIVE, NO_EDGES, torch.arange(5), ends([2, 3]), ends([0, 0])),
         "entries of y must be 2 for these 2 graphs; got 5"),
        (lambda: GraphDataset(FIVE, NO_EDGES, torch.arange(2), ends([2, 3]), ends([0, 4])),
         "entries of edges must be 4 for these 2 graphs; got 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


PATH = np.array([[3, 0, 3, 1, 1], [1, 2, 1, 1, 3]])  # 3 -> 1 twice, 1 -> 3, 0 -> 2, 1 -> 1


def test_edges_are_distinct_and_sorted_in_one_or_both_directions():
    assert coalesce(PATH, 4).tolist() == [[0, 1, 1, 3], [2, 1, 3, 1]]
    assert coalesce(PATH.astype(np.uint64), 4).dtype == np.int64
    both = to_undirected(PATH, 4)
    assert both.tolist() == [[0, 1, 1, 2, 3], [2, 1, 3, 0, 1]]  # self loops once
    assert to_undirected(both, 4).tolist() == both.tolist()
    large = np.array([[2_900_000], [2_900_001]], np.int32)
    assert coalesce(large, 2_923_922).tolist() == large.tolist(), "no overflow"
    mask = np.array([False, True, False, True])  # nodes are numbered anew
    assert subgraph(coalesce(PATH, 4), mask).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_features_are_dense_or_sparse_with_and_without_values():
    places = {"x_indptr": np.array([0, 2, 2, 3]), "x_indices": np.array([0, 2, 1])}
    parts = {**places, "x_shape": np.array([3, 3])}
    assert node_features(parts).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    values = {**parts, "x_data": np.array([0.5, 2, 3], np.float32)}
    assert node_features(values).tolist() == [[0.5, 0, 2], [0, 0, 0], [0, 3, 0]]
    shared = {f"a_{key}": value for key, value in places.items()} | {"x_shape": parts["x_shape"]}
    assert node_features(shared, "a_x", "x_shape").tolist() == node_features(parts).tolist()
    assert node_features({"x": np.eye(2)}).dtype == np.float32


def test_masks_of_one_or_many_splits():
    names = [f"{part}_mask" for part in ("train", "val", "test")]
    many = {name: np.arange(3)[:, None] == (np.arange(2) + i) % 3 for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(many, 1)] == [[1], [2], [0]]
    one = {f"public_{name}": np.arange(3) == i for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(one, 0, "public_")] == [[0], [1], [2]]
