from dataclasses import replace

import numpy as np
import pytest
import torch

from anharmonic_papers.tasks.graphs import superpixels as module
from anharmonic_papers.tasks.graphs.superpixels import (
    MNISTSuperpixels,
    nearest_edges,
    region_graph,
    superpixels,
)

TRIANGLE = [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]


def test_regions_by_hand():
    regions = np.array([[4, 4, 1], [9, 9, 1], [9, 9, 1]])
    grey = np.array([[0.0, 1.0, 0.2], [0.5, 0.5, 0.2], [0.5, 0.5, 0.2]])
    x, edges = region_graph(grey, regions)
    np.testing.assert_allclose(x, [[0.2, 1, 2], [0.5, 0, 0.5], [0.5, 1.5, 0.5]], rtol=1e-6)
    assert edges.tolist() == TRIANGLE
    _, edges = region_graph(np.zeros((2, 2)), np.array([[0, 1], [2, 3]]))
    assert edges.shape[1] == 12  # regions that touch at a corner are joined
    x, edges = region_graph(np.ones((2, 2)), np.zeros((2, 2), int))
    assert x.tolist() == [[1.0, 0.5, 0.5]] and edges.shape == (2, 0)


def test_points_are_joined_to_their_nearest():
    places = np.array([[0, 0], [5, 5], [0, 1]], np.float32)
    assert nearest_edges(places, 16).tolist() == TRIANGLE
    assert nearest_edges(places, 1).tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]
    assert nearest_edges(places[:1], 16).shape == (2, 0)


def image(seed):
    rows, columns = np.indices((28, 28))
    spot = np.exp(-((rows - 9 - seed) ** 2 + (columns - 14) ** 2) / 20)
    return (255 * spot).astype(np.uint8)


def test_superpixels_of_images():
    images = np.stack([image(seed) for seed in range(3)])
    arrays = superpixels(images)
    assert len(arrays["num_nodes"]) == 3
    assert 40 <= arrays["num_nodes"].min() <= arrays["num_nodes"].max() <= 110
    assert arrays["x"][:, 0].max() <= 1 and arrays["x"][:, 1:].max() <= 27
    assert (arrays["edges"].max(1) < arrays["num_nodes"].max()).all()
    np.testing.assert_equal(superpixels(images), arrays)


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A folder with forty images in place of MNIST."""
    (tmp_path / "sequence").mkdir()
    x, y = np.stack([image(i % 10) for i in range(40)]), (np.arange(40) % 10).astype(np.uint8)
    arrays = {"x_train": x, "y_train": y, "x_test": x[:10], "y_test": y[:10]}
    np.savez(tmp_path / "sequence" / "mnist.npz", **arrays)
    kind = MNISTSuperpixels
    monkeypatch.setattr(kind, "images", replace(kind.images, digest=None))
    monkeypatch.setattr(kind, "archive", replace(kind.archive, form={}))
    return tmp_path


def splits_of(**arguments):
    task = MNISTSuperpixels(**arguments)
    task.sizes, task.progress = {"train": 30, "valid": 10, "test": 10}, False
    return task.splits()


def test_made_once_and_kept(few, monkeypatch):
    splits = splits_of(data_dir=few)
    assert [len(part) for part in splits] == [30, 10, 10]
    kept = sorted(path.name for path in (few / "graph").iterdir())
    assert kept == ["mnist_superpixels.npz", "mnist_superpixels.sha256"]
    monkeypatch.setattr(module, "superpixels", None)  # would be called
    batch, other = (s.train.take(torch.arange(4)) for s in (splits, splits_of(data_dir=few)))
    assert torch.equal(batch.x, other.x) and torch.equal(batch.y, other.y)
    assert torch.equal(batch.graph.edge_index, other.graph.edge_index)
    assert batch.rows is None and batch.num_graphs == 4
    # Training and validation are disjoint, as the seed says.
    assert torch.bincount(torch.cat([splits.train.y, splits.valid.y])).tolist() == [4] * 10
    assert not torch.equal(splits_of(split_seed=1, data_dir=few).valid.y, splits.valid.y)


def test_not_kept_in_a_shared_folder(few, tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ANHARMONIC_DATA", str(few))
    monkeypatch.setattr(module, "cache_folder", lambda: cache)
    splits_of()
    assert not (few / "graph").exists()
    assert (cache / "graph" / "mnist_superpixels.npz").is_file()


def test_standardised_by_training_nodes(few):
    plain, scaled = splits_of(data_dir=few), splits_of(standardise=True, data_dir=few)
    x = plain.train.x.double()
    for before, after in zip(plain, scaled, strict=True):
        expected = (before.x - x.mean(0)) / x.std(0)
        torch.testing.assert_close(after.x.double(), expected, atol=1e-5, rtol=1e-5)


def test_joined_to_the_nearest(few):
    touching, near = splits_of(data_dir=few), splits_of(nearest=16, data_dir=few)
    for before, after in zip(touching, near, strict=True):
        assert torch.equal(before.x, after.x) and torch.equal(before.y, after.y)
        assert 16 <= after.edges.shape[1] / len(after.x) < 22
    graph = near.valid.take(torch.tensor([3]))
    assert graph.graph.edge_index.tolist() == nearest_edges(graph.x[:, 1:].numpy(), 16).tolist()
