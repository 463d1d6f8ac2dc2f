import pytest
import torch

from anharmonic.data.graph_batch import GraphDataset, NodeDataset
from anharmonic.ops.graph import Adjacency


def random_graphs(sizes, per_node=False, seed=0):
    gen = torch.Generator().manual_seed(seed)
    edges = [torch.randint(max(n, 1), (2, 3 * n), generator=gen) for n in sizes]
    x = torch.randn(sum(sizes), 4, generator=gen)
    y = torch.randn(sum(sizes) if per_node else len(sizes), 2, generator=gen)
    return GraphDataset(
        x, torch.cat(edges, 1), y, ends(sizes), ends([3 * n for n in sizes]), per_node=per_node
    )


def ends(counts):
    return torch.tensor([0, *counts]).cumsum(0)


def aggregated(batch):
    return batch.graph.matmul(batch.x)


@pytest.mark.parametrize("chosen", [[0, 1], [1, 0], [2, 0, 1], [1, 1], [3]])
def test_a_union_is_its_graphs_side_by_side(chosen):
    graphs = random_graphs([5, 2, 7, 1])
    union = graphs.take(torch.tensor(chosen))
    single = [graphs.take(torch.tensor([i])) for i in chosen]
    assert union.num_graphs == len(chosen) and union.rows is None
    assert torch.equal(union.x, torch.cat([one.x for one in single]))
    assert torch.equal(union.y, torch.cat([one.y for one in single]))
    assert torch.equal(aggregated(union), torch.cat([aggregated(one) for one in single]))
    assert union.membership.tolist() == [
        number for number, one in enumerate(single) for _ in range(one.graph.num_nodes)
    ]
    source, target = union.graph.edge_index
    assert torch.equal(union.membership[source], union.membership[target])


def test_predictions_per_node_keep_the_order_of_nodes():
    graphs = random_graphs([3, 4], per_node=True)
    batch = graphs.take(torch.tensor([1, 0]))
    assert batch.rows.tolist() == list(range(7))
    assert torch.equal(batch.y, graphs.y[[3, 4, 5, 6, 0, 1, 2]])
    assert torch.equal(batch.x, graphs.x[[3, 4, 5, 6, 0, 1, 2]])


def test_batches_of_graphs_follow_an_order():
    graphs = random_graphs([2] * 7)
    graphs.x, graphs.y = graphs.x.to(torch.uint8), torch.arange(7, dtype=torch.uint8)
    batches = graphs.batches(3, torch.arange(6, -1, -1))
    assert [batch.y.tolist() for batch in batches] == [[6, 5, 4], [3, 2, 1], [0]]
    assert [batch.num_graphs for batch in batches] == [3, 3, 1] and len(graphs) == 7
    assert (batches[0].x.dtype, batches[0].y.dtype) == (torch.float32, torch.int64)


def test_a_graph_without_edges_or_nodes():
    edges = torch.tensor([[0], [1]])
    graphs = GraphDataset(
        torch.ones(3, 1), edges, torch.arange(3), ends([1, 0, 2]), ends([0, 0, 1])
    )
    batch = graphs.take(torch.tensor([0, 1, 2]))
    assert batch.graph.edge_index.tolist() == [[1], [2]]
    assert batch.membership.tolist() == [0, 2, 2] and batch.num_graphs == 3


def test_nodes_are_one_full_batch():
    graph, y = Adjacency(torch.tensor([[0, 1], [1, 2]]), 3), torch.tensor([[1.0], [2.0], [3.0]])
    part = NodeDataset(torch.eye(3), graph, y, torch.tensor([2, 0]))
    for batch in (*part.batches(1), *part.batches(5, torch.tensor([1, 0]))):
        assert batch.graph is graph and batch.membership is None and batch.num_graphs == 1
        assert batch.rows.tolist() == [2, 0] and batch.y.tolist() == [[3.0], [1.0]]
    assert len(part) == 2


def test_errors():
    graph, none = Adjacency(torch.tensor([[0], [1]]), 3), torch.zeros(2, 0)
    with pytest.raises(ValueError, match=r"y must be of 3 rows, .*; got shape \[2\]"):
        NodeDataset(torch.eye(3), graph, torch.zeros(2), torch.tensor([0]))
    nodes = NodeDataset(torch.eye(3), graph, torch.zeros(3), torch.tensor([0]))
    for part in (nodes, random_graphs([2])):
        with pytest.raises(ValueError, match="batch_size must be an int >= 1"):
            part.batches(0)
    with pytest.raises(ValueError, match="entries of y must be 2 for these 2 graphs; got 5"):
        GraphDataset(torch.ones(5, 1), none, torch.arange(5), ends([2, 3]), ends([0, 0]))
    with pytest.raises(ValueError, match="entries of edges must be 4 for these 2 graphs; got 0"):
        GraphDataset(torch.ones(5, 1), none, torch.arange(2), ends([2, 3]), ends([0, 4]))
