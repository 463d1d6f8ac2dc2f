import numpy as np
import pytest
import torch

from anharmonic.data.metrics import TaskMetric
from anharmonic_papers.tasks.graphs.proteins import ProteinInteractions


@pytest.fixture
def task(tiny_archive):
    arrays = {}
    for part in ("train", "val", "test"):
        arrays |= {
            f"{part}_x": np.arange(8, dtype=np.float32).reshape(4, 2),
            f"{part}_y": np.eye(4, 3, dtype=np.uint8),
            f"{part}_num_nodes": np.array([3, 1], np.int32),
            f"{part}_num_edges": np.array([2, 0], np.int32),
            f"{part}_edges": np.array([[0, 2], [2, 0]], np.int32),
        }
    return ProteinInteractions(data_dir=tiny_archive(ProteinInteractions, arrays))


def test_labels_of_all_nodes(task):
    batch = task.loaders(0, 2).valid[0]
    assert batch.rows.tolist() == [0, 1, 2, 3]
    assert batch.membership.tolist() == [0, 0, 0, 1]
    assert batch.num_graphs == 2
    assert batch.y.dtype == torch.float32
    assert batch.y.tolist() == torch.eye(4, 3).tolist()
    metric = TaskMetric(task.metric, task.metric_scale)
    metric.update(batch.y - 0.5, batch)
    assert metric.value() == 100.0


def test_batches_are_of_graphs_and_sizes_of_nodes(task):
    assert [batch.num_graphs for batch in task.loaders(0, 1).train(0)] == [1, 1]
    assert task.sizes == {"train": 44906, "valid": 6514, "test": 5524}
    assert task.summary() == (
        "ppi: 6 graphs, 1 to 3 nodes, 6 directed edges, 56944 nodes (44906 train, 6514 valid, "
        "5524 test), 50 features, any of 121 labels per node"
    )
