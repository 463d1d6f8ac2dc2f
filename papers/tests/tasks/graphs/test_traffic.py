import numpy as np
import pytest
import torch

from anharmonic.data.metrics import TaskMetric
from anharmonic.data.sources import load_arrays
from anharmonic_papers.tasks.graphs.traffic import (
    ChameleonTraffic,
    SquirrelTraffic,
    by_first_appearance,
)


def hand_made():
    masks = {
        f"{p}_mask": np.arange(4)[:, None] % 3 == np.full(10, i)
        for i, p in enumerate(("train", "val", "test"))
    }
    return {
        "edge_index": np.array([[1, 3], [3, 0]], np.int32),
        "traffic": np.array([10, 40, 20, 30], np.int32),
        "musae_x": np.eye(4, dtype=np.float32),
        **masks,
    }


def test_targets_edges_and_numbering(tiny_archive):
    folder = tiny_archive(ChameleonTraffic, hand_made())
    batch = ChameleonTraffic(data_dir=folder).loaders(0, 1).train(0)[0]
    assert batch.y.tolist() == [[0.25], [0.75]]
    assert batch.graph.edge_index.tolist() == [[0, 1, 3, 3], [3, 3, 0, 1]]
    directed = ChameleonTraffic(undirected=False, data_dir=folder).loaders(0, 1).train(0)[0]
    assert directed.graph.edge_index.tolist() == [[1, 3], [3, 0]]
    mixed = ChameleonTraffic(undirected=False, published_numbering=True, data_dir=folder)
    wrong = mixed.loaders(0, 1).train(0)[0]
    assert wrong.graph.edge_index.tolist() == [[0, 1], [1, 2]]  # 1, 3, 0 became 0, 1, 2
    assert torch.equal(wrong.x, batch.x)
    assert torch.equal(wrong.y, batch.y)


@pytest.mark.parametrize(
    ("kind", "archive", "largest", "mean"),
    [
        (ChameleonTraffic, "geom_chameleon", 508957, 0.02776),
        (SquirrelTraffic, "geom_squirrel", 849131, 0.03289),
    ],
)
def test_scale_is_that_of_the_data(kind, archive, largest, mean, graph_data):
    traffic = load_arrays(kind.archive, graph_data(archive))["traffic"]
    assert traffic.max() == largest
    exact = float((traffic / traffic.max()).mean())
    assert exact == pytest.approx(mean, abs=5e-6)
    assert kind.metric_scale == pytest.approx(1 / exact, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "archive", "mean", "std"),
    [
        (ChameleonTraffic, "geom_chameleon", 0.207, 0.038),
        (SquirrelTraffic, "geom_squirrel", 0.143, 0.039),
    ],
)
def test_the_mean_of_training_scores_as_published_baselines(kind, archive, mean, std, graph_data):
    folder = graph_data(archive)
    values = []
    for split in range(10):
        task = kind(split=split, data_dir=folder)
        loaders = task.loaders(0, 1)
        test, constant = loaders.test[0], loaders.train(0)[0].y.mean()
        metric = TaskMetric(task.metric, task.metric_scale)
        metric.update(constant.expand_as(test.y), test)
        values.append(metric.value())
    assert np.mean(values) == pytest.approx(mean, abs=6e-4)
    assert np.std(values) == pytest.approx(std, abs=6e-4)


def test_published_numbering_moves_nearly_all_nodes(graph_data):
    folder = graph_data("geom_chameleon")
    graphs = [
        ChameleonTraffic(published_numbering=wrong, data_dir=folder).loaders(0, 1).test[0].graph
        for wrong in (False, True)
    ]
    assert graphs[0].num_edges == graphs[1].num_edges == 62792
    degrees = [graph.in_degree.sort().values for graph in graphs]
    assert torch.equal(*degrees)
    assert float((graphs[0].in_degree == graphs[1].in_degree).float().mean()) < 0.2


def test_first_appearance_renames_and_leaves_unnamed_nodes_last():
    edges = np.array([[4, 2, 4], [2, 0, 0]])  # named: 4, 2, 0; not named: 1, 3
    assert by_first_appearance(edges, 5).tolist() == [[0, 1, 0], [1, 2, 2]]
    same = by_first_appearance(np.array([[0, 1], [1, 2]]), 5)
    assert same.tolist() == [[0, 1], [1, 2]]
