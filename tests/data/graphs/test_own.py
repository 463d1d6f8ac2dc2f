from types import SimpleNamespace

import numpy as np
import pytest
import torch

from anharmonic.data.graphs.own import GraphFileTask, node_inputs, read_graph, save_graph
from anharmonic.data.readers import file_digest
from anharmonic.data.targets import encode_like

NODES = 40


def arrays(**changes):
    """A ring whose nodes have a class and features that name the node."""
    ring = np.arange(NODES)
    found = {
        "x": np.stack([ring, ring**2], 1).astype(float),
        "edge_index": np.stack([ring, (ring + 1) % NODES]),
        "y": np.array(["b", "a"])[ring % 2],
    }
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


def save(folder, **changes):
    np.savez(folder / "mine.npz", **arrays(**changes))
    return folder / "mine.npz"


def masks(**changes):
    place = np.arange(NODES) % 4
    found = {"train_mask": place < 2, "val_mask": place == 2, "test_mask": place == 3}
    return found | changes


def test_nodes_are_split_by_seed_with_every_class_in_its_share(tmp_path):
    path = save(tmp_path)
    task = GraphFileTask(path, standardise="no")
    assert task.sizes == {"train": 24, "valid": 8, "test": 8}
    assert (task.class_names, task.output_size, task.input_size) == (("a", "b"), 2, 2)
    rows = []
    for part in task.splits():
        batch = part.batches(1)[0]
        # Odd nodes are "a", that is class 0; features are those of the file.
        assert torch.equal(batch.y, 1 - batch.rows % 2)
        assert batch.x[:, 0].tolist() == list(range(NODES))
        assert abs(int(batch.y.sum()) * 2 - len(batch.y)) <= 2
        rows += batch.rows.tolist()
    assert sorted(rows) == list(range(NODES))
    again, other = GraphFileTask(path), GraphFileTask(path, split_seed=7)
    first = task.splits().test.batch.rows
    assert torch.equal(first, again.splits().test.batch.rows)
    assert not torch.equal(first, other.splits().test.batch.rows)


def test_masks_of_the_file_are_the_split(tmp_path):
    task = GraphFileTask(save(tmp_path, **masks()))
    assert [part.batch.rows.tolist() for part in task.splits()] == [
        np.flatnonzero(mask).tolist() for mask in masks().values()
    ]
    two = {key: np.stack([mask, np.roll(mask, 4)], 1) for key, mask in masks().items()}
    second = GraphFileTask(save(tmp_path, **two), split=1)
    assert second.splits().test.batch.rows.tolist() == list(range(3, NODES, 4))
    with pytest.raises(ValueError, match=r"split .*2; got 2; .*--split"):
        GraphFileTask(save(tmp_path, **two), split=2)


def test_without_a_validation_mask_training_nodes_are_cut(tmp_path):
    task = GraphFileTask(save(tmp_path, **masks(val_mask=None)))
    assert task.sizes == {"train": 16, "valid": 4, "test": 10}


def test_unknown_classes_are_in_no_part(tmp_path):
    y = np.arange(NODES) % 3 - 1
    task = GraphFileTask(save(tmp_path, y=y))
    assert task.class_names == ("0", "1")
    assert sum(task.sizes.values()) == (y >= 0).sum()
    assert all((y[part.batch.rows] >= 0).all() for part in task.splits())
    with pytest.raises(ValueError, match=r"without a target in the train mask.*\[0, 9, 12"):
        GraphFileTask(save(tmp_path, y=y, **masks()))


def test_empty_text_is_no_class(tmp_path):
    y = np.array(["", "b", "a"])[np.arange(NODES) % 3]
    task = GraphFileTask(save(tmp_path, y=y))
    assert task.class_names == ("a", "b") and sum(task.sizes.values()) == (y != "").sum()
    assert all((y[part.batch.rows] != "").all() for part in task.splits())


def test_classes_as_bytes_are_named_alike_in_training_and_evaluation(tmp_path):
    y = np.array([b"\xe4", b"a"])[np.arange(NODES) % 2]  # no UTF-8
    task = GraphFileTask(save(tmp_path, y=y))
    assert task.class_names == ("a", "ä")
    assert encode_like(y[:2], task.class_names, "here").tolist() == [1, 0]


def test_one_split_has_no_other_number(tmp_path):
    for path in (save(tmp_path), save(tmp_path, **masks())):
        with pytest.raises(ValueError, match=r"split must be 0 for mine\.npz.*--split-seed"):
            GraphFileTask(path, split=1)


def test_values(tmp_path):
    y = np.where(np.arange(NODES) == 3, np.nan, np.linspace(0, 1, NODES))
    task = GraphFileTask(save(tmp_path, y=y))
    assert (task.target, task.metric, task.output_size) == ("value", "rmse", 1)
    assert sum(task.sizes.values()) == NODES - 1
    batch = task.splits().valid.batch
    assert np.allclose(batch.y[:, 0], y[batch.rows])


def test_nodes_with_some_of_several_values_are_unknown_and_counted(tmp_path):
    y = np.random.default_rng(0).random((NODES, 2))
    y[3, 0] = y[5, 1] = y[7] = np.nan
    task = GraphFileTask(save(tmp_path, y=y), undirected=True)
    assert sum(task.sizes.values()) == NODES - 3
    assert task.hint == "Nodes with only some values count as unknown (2 in mine.npz)."
    y[[3, 5]] = np.nan
    assert GraphFileTask(save(tmp_path, y=y), undirected=True).hint == ""


def test_dense_features_are_standardised_and_words_are_not(tmp_path):
    dense = GraphFileTask(save(tmp_path))
    x = dense.splits().test.batch.x
    assert torch.allclose(x.mean(0), torch.zeros(2), atol=1e-6)
    assert torch.allclose(x.std(0, correction=0), torch.ones(2))
    words = GraphFileTask(save(tmp_path, x=np.eye(NODES)))
    assert torch.equal(words.splits().test.batch.x, torch.eye(NODES))
    assert not words.preprocessing.standardise


def test_numbers_that_float32_makes_coarse_are_named(tmp_path):
    seconds = 1.7e9 + 10.0 * np.arange(NODES)
    path = save(tmp_path, x=np.stack([np.arange(NODES), seconds], 1))
    with pytest.warns(UserWarning, match=r"feature 1 of mine\.npz is kept in float32.*of 128"):
        read_graph(path)
    with pytest.warns(UserWarning, match=r"target 0 of mine\.npz is kept in float32.*of 128"):
        GraphFileTask(save(tmp_path, y=seconds))


def test_direction_is_told_and_can_be_taken_away(tmp_path):
    path = save(tmp_path)
    one, both = GraphFileTask(path), GraphFileTask(path, undirected=True)
    assert "40 directed edges (0% with their reverse)" in one.summary()
    assert "--undirected" in one.hint
    assert "80 directed edges (each with its reverse)" in both.summary()
    assert both.hint == ""


def test_targets_that_may_mean_something_else_are_told(tmp_path):
    place = np.arange(NODES) % 4
    for y, hint in (
        (np.where(place == 3, np.nan, place), "holds only 3 distinct whole numbers; for classes"),
        (np.array(["nan", "a", "b", "c"])[place], "'nan' in mine.npz is taken as a class"),
    ):
        path = save(tmp_path, y=y)
        one, both = GraphFileTask(path), GraphFileTask(path, undirected=True)
        assert hint in both.hint and both.hint in one.hint and "--undirected" in one.hint
    assert GraphFileTask(save(tmp_path, y=place - 1), undirected=True).hint == ""
    with pytest.raises(ValueError, match=r"got \['1'\]; .*below 0 and empty text mean unknown"):
        GraphFileTask(save(tmp_path, y=np.sign(place - 1.5).astype(int)))


def test_unsigned_edges(tmp_path):
    path = save(tmp_path, edge_index=arrays()["edge_index"].astype(np.uint64))
    graph = read_graph(path, targets=False)
    assert graph.edges.dtype == np.int64
    assert node_inputs(graph, GraphFileTask(path).preprocessing, True)[1].num_edges == 2 * NODES


def test_edges_count_once(tmp_path):
    edges = np.array([[0, 0, 1], [1, 1, 1]])
    path = save(tmp_path, edge_index=edges)
    assert read_graph(path).edges.tolist() == [[0, 1], [1, 1]]
    assert "Repeated edges count once (1 in mine.npz)." in GraphFileTask(path).hint


def test_another_file_is_refused(tmp_path):
    path = save(tmp_path)
    digest = file_digest(path)
    GraphFileTask(path, sha256=digest)
    save(tmp_path, x=np.ones((NODES, 2)))
    with pytest.raises(ValueError, match=r"sha256.*mine\.npz"):
        GraphFileTask(path, sha256=digest)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"x": np.ones(NODES)}, ["x in", "[40]", "[N, F]"]),
        ({"x": np.full((NODES, 2), np.nan)}, ["x in", "nan at node 0, feature 0"]),
        ({"x": np.full((NODES, 1), "text")}, ["x in", "<U4"]),
        ({"x": np.ones((NODES, 2)) * 1j}, ["x in", "complex128"]),
        ({"x": np.ones((0, 2))}, ["x in", "float64 [0, 2]"]),
        ({"x": None}, ["keys", "x, edge_index and y"]),
        ({"y": None}, ["keys", "x, edge_index and y"]),
        ({"features": np.ones(3)}, ["key in", "'features'"]),
        ({"edge_weight": np.ones(3)}, ["edge_weight", "train in your own loop"]),
        ({"edge_index": np.zeros((5, 2), int)}, ["edge_index", "[5, 2]", "transpose"]),
        ({"edge_index": np.array([[0, 1], [1, NODES]])}, ["[1, 40] at edge 1", "[0, 40)"]),
        ({"edge_index": np.array([[0, -1], [1, 2]])}, ["[-1, 2] at edge 1", "[0, 40)"]),
        ({"edge_index": np.array([[0.0], [1.0]])}, ["edge_index", "float64", "whole numbers"]),
        ({"edge_index": np.array([[0, None]], object)}, ["edge_index", "got"]),
        ({"y": np.zeros(NODES, int)}, ["classes", "['0']", "two or more"]),
        ({"y": np.full(NODES, -1)}, ["classes", "two or more"]),
        ({"y": np.zeros(3, int)}, ["y in", "[3]", "40 rows"]),
        ({"y": np.zeros((NODES, 2), int)}, ["y in", "[40, 2]", "classes"]),
        ({"y": np.zeros(NODES, complex)}, ["y in", "complex"]),
        ({"y": np.r_[np.inf, np.ones(NODES - 1)]}, ["y in", "inf at node 0", "or NaN"]),
        ({"y": np.r_[np.ones(NODES - 1), 1e39]}, ["y in", "1e+39 at node 39", "float32"]),
        ({"train_mask": np.ones(NODES, bool)}, ["masks", "train_mask and test_mask"]),
        (masks(train_mask=np.ones(NODES, bool)), ["masks", "two parts", "disjoint"]),
        (masks(test_mask=np.zeros(NODES, bool)), ["test mask", "no node"]),
        (masks(test_mask=np.arange(5)), ["test_mask", "int64 [5]", "bool [40]"]),
        (masks(valid_mask=np.ones(NODES, bool)), ["valid_mask", "val_mask", "only one"]),
        (masks(y=np.where(np.arange(NODES) % 4 == 3, "c", "d")), ["test part", "['c']", "none"]),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, names):
    with pytest.raises(ValueError) as caught:
        GraphFileTask(save(tmp_path, **changes))
    assert all(name in str(caught.value) for name in names)


def test_a_pickle_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "mine.pt"
    torch.save({"x": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="save_graph"):
        GraphFileTask(path)


def test_a_graph_of_pytorch_geometric_is_saved(tmp_path):
    library = pytest.importorskip("torch_geometric.data", reason="it makes the graph")
    given = {key: torch.from_numpy(mask) for key, mask in masks().items()}
    found = arrays(y=np.arange(NODES)[:, None] % 2)
    given |= {key: torch.from_numpy(value) for key, value in found.items()}
    save_graph(tmp_path / "mine.npz", library.Data(**given))
    task = GraphFileTask(tmp_path / "mine.npz")
    assert task.sizes == {"train": 20, "valid": 10, "test": 10}
    assert task.splits().test.batch.y.tolist() == [1] * 10
    more = library.Data(**given, edge_attr=torch.ones(NODES, 3))
    with pytest.warns(UserWarning, match="edge_attr"):
        save_graph(tmp_path / "mine.npz", more)


def test_tensors_of_other_kinds_are_saved(tmp_path):
    x = torch.eye(3)
    edges, y = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 1, 1])
    for form in (x.clone().requires_grad_(), x.to_sparse(), x.bfloat16()):
        save_graph(tmp_path / "a.npz", SimpleNamespace(x=form, edge_index=edges, y=y))
        assert np.array_equal(read_graph(tmp_path / "a.npz").x, np.eye(3))


@pytest.mark.parametrize(
    "changes",
    [
        {"y": np.zeros(3, int)},
        {"y": np.array(["a", None] * 20)},
        {"train_mask": np.ones(3, bool), "test_mask": np.ones(3, bool)},
    ],
)
def test_a_graph_that_could_not_be_read_is_not_saved(tmp_path, changes):
    with pytest.raises(ValueError, match="in data must be"):
        save_graph(tmp_path / "a.npz", SimpleNamespace(**arrays(**changes)))
    assert not list(tmp_path.iterdir())


def test_what_is_no_graph_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"data .*no y"):
        save_graph(tmp_path / "a.npz", SimpleNamespace(x=torch.eye(2), edge_index=torch.eye(2)))
    with pytest.raises(ValueError, match=r"path .*\.npz"):
        save_graph(tmp_path / "a.pt", SimpleNamespace())
    assert not list(tmp_path.iterdir())
