from types import SimpleNamespace

import numpy as np
import pytest
import torch

from anharmonic.data.graphs.own import GraphFileTask, node_inputs, read_graph, save_graph
from anharmonic.data.readers import file_digest
from anharmonic.data.targets import encode_like

NODES = 40
NODE = np.arange(NODES)
PLACE = NODE % 4
MASKS = {"train_mask": PLACE < 2, "val_mask": PLACE == 2, "test_mask": PLACE == 3}


def arrays(**changes):
    """A ring whose nodes have a class and features that name the node."""
    found = {
        "x": np.stack([NODE, NODE**2], 1).astype(float),
        "edge_index": np.stack([NODE, (NODE + 1) % NODES]),
        "y": np.array(["b", "a"])[NODE % 2],
    }
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


@pytest.fixture
def save(tmp_path):
    """Saves a graph with these changes; gives the file."""

    def write(changes=None):
        np.savez(tmp_path / "mine.npz", **arrays(**(changes or {})))
        return tmp_path / "mine.npz"

    return write


def test_nodes_are_split_by_seed_with_every_class_in_its_share(save):
    task = GraphFileTask(save(), standardise="no")
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
    first, again, other = (
        GraphFileTask(task.path, split_seed=seed).splits().test.batch.rows for seed in (0, 0, 7)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


TWO = {key: np.stack([mask, np.roll(mask, 4)], 1) for key, mask in MASKS.items()}


def test_masks_of_the_file_are_the_split(save):
    task = GraphFileTask(save(MASKS))
    assert [part.batch.rows.tolist() for part in task.splits()] == [
        np.flatnonzero(mask).tolist() for mask in MASKS.values()
    ]
    second = GraphFileTask(save(TWO), split=1)
    assert second.splits().test.batch.rows.tolist() == list(range(3, NODES, 4))
    with pytest.raises(ValueError, match=r"split .*2; got 2; .*--split"):
        GraphFileTask(second.path, split=2)
    with pytest.raises(ValueError, match=r"split must be 0 for mine\.npz.*--split-seed"):
        GraphFileTask(save(MASKS), split=1)


COUNTED, WORDS = NODE % 3 - 1, np.array(["", "b", "a"])[NODE % 3]
HALF_KNOWN = np.random.default_rng(0).random((NODES, 2))
HALF_KNOWN[3, 0] = HALF_KNOWN[5, 1] = HALF_KNOWN[7] = np.nan
KNOWN = np.where(np.isin(NODE, (3, 5))[:, None], np.nan, HALF_KNOWN)
RAMP = np.where(NODE == 3, np.nan, np.linspace(0, 1, NODES))
TWICE = np.array([[0, 0, 1], [1, 1, 1]])
SOME = "Nodes with only some values count as unknown (2 in mine.npz)."


@pytest.mark.parametrize(
    ("changes", "known", "right", "hint"),
    [
        (MASKS | {"val_mask": None}, 30, {"sizes": {"train": 16, "valid": 4, "test": 10}}, ""),
        # Numbers below 0, empty text and NaN mean unknown.
        ({"y": COUNTED}, COUNTED >= 0, {"class_names": ("0", "1")}, ""),
        ({"y": WORDS}, WORDS != "", {"class_names": ("a", "b")}, ""),
        ({"y": RAMP}, NODE != 3, {"target": "value", "metric": "rmse", "output_size": 1}, ""),
        ({"y": HALF_KNOWN}, ~np.isin(NODE, (3, 5, 7)), {"output_size": 2}, SOME),
        ({"y": KNOWN}, ~np.isin(NODE, (3, 5, 7)), {"output_size": 2}, ""),
        ({"y": np.array([b"\xe4", b"a"])[NODE % 2]}, 40, {"class_names": ("a", "ä")}, ""),
        # What may mean something else is told.
        ({"y": np.where(PLACE == 3, np.nan, PLACE)}, 30, {"target": "value"},
         "holds only 3 distinct whole numbers; for classes"),
        ({"y": np.array(["nan", "a", "b", "c"])[PLACE]}, 40, {"target": "class"},
         "'nan' in mine.npz is taken as a class"),
        ({"y": PLACE - 1}, 30, {"target": "class"}, ""),
        ({"edge_index": TWICE}, 40, {}, "Repeated edges count once (1 in mine.npz)."),
    ],
)  # fmt: skip
def test_what_is_known_of_nodes(save, changes, known, right, hint):
    task = GraphFileTask(save(changes), undirected=True)
    assert {name: getattr(task, name) for name in right} == right
    assert hint in task.hint and bool(hint) == bool(task.hint)
    directed = GraphFileTask(task.path).hint
    assert task.hint in directed and "--undirected" in directed
    count = known if isinstance(known, int) else known.sum()
    assert sum(task.sizes.values()) == count
    for part in task.splits():
        assert isinstance(known, int) or known[part.batch.rows].all()
        if task.target == "value":
            y = np.reshape(changes["y"], (NODES, -1))
            assert np.allclose(part.batch.y, y[part.batch.rows])


def test_dense_features_are_standardised_and_words_are_not(save):
    x = GraphFileTask(save()).splits().test.batch.x
    assert torch.allclose(x.mean(0), torch.zeros(2), atol=1e-6)
    assert torch.allclose(x.std(0, correction=0), torch.ones(2))
    words = GraphFileTask(save({"x": np.eye(NODES)}))
    assert torch.equal(words.splits().test.batch.x, torch.eye(NODES))


@pytest.mark.parametrize("name", ["feature 1", "target 0"])
def test_numbers_that_float32_makes_coarse_are_named(save, name):
    seconds = 1.7e9 + 10.0 * NODE
    path = save({"x": np.stack([NODE, seconds], 1)} if name == "feature 1" else {"y": seconds})
    with pytest.warns(UserWarning, match=rf"{name} of mine\.npz is kept in float32.*of 128"):
        GraphFileTask(path)


def test_direction_is_told_and_can_be_taken_away(save):
    one, both = GraphFileTask(save()), GraphFileTask(save(), undirected=True)
    assert "40 directed edges (0% with their reverse)" in one.summary()
    assert "80 directed edges (each with its reverse)" in both.summary()
    edges = arrays()["edge_index"].astype(np.uint64)
    graph = read_graph(save({"edge_index": edges}), targets=False)
    assert graph.edges.dtype == np.int64
    # Classes of bytes are named alike in training and evaluation.
    assert encode_like(np.array([b"\xe4", b"a"]), ("a", "ä"), "here").tolist() == [1, 0]
    assert node_inputs(graph, one.preprocessing, True)[1].num_edges == 2 * NODES
    assert read_graph(save({"edge_index": TWICE})).edges.tolist() == [[0, 1], [1, 1]]


def test_another_file_or_a_pickle_is_refused(save, tmp_path):
    digest = file_digest(save())
    GraphFileTask(save(), sha256=digest)
    with pytest.raises(ValueError, match=r"sha256.*mine\.npz"):
        GraphFileTask(save({"x": np.ones((NODES, 2))}), sha256=digest)
    torch.save({"x": torch.ones(2)}, tmp_path / "mine.pt")
    with pytest.raises(ValueError, match="save_graph"):
        GraphFileTask(tmp_path / "mine.pt")


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"x": np.ones(NODES)}, ["x in", "[40]", "[N, F]"]),
        ({"x": np.full((NODES, 2), np.nan)}, ["x in", "nan at node 0, feature 0"]),
        ({"x": np.full((NODES, 1), "text")}, ["x in", "<U4"]),
        ({"x": np.ones((0, 2))}, ["x in", "float64 [0, 2]"]),
        ({"y": None}, ["keys", "x, edge_index and y"]),
        ({"features": np.ones(3)}, ["key in", "'features'"]),
        ({"edge_weight": np.ones(3)}, ["edge_weight", "train in your own loop"]),
        ({"edge_index": np.zeros((5, 2), int)}, ["edge_index", "[5, 2]", "transpose"]),
        ({"edge_index": np.array([[0, 1], [1, NODES]])}, ["[1, 40] at edge 1", "[0, 40)"]),
        ({"edge_index": np.array([[0, -1], [1, 2]])}, ["[-1, 2] at edge 1", "[0, 40)"]),
        ({"edge_index": np.array([[0.0], [1.0]])}, ["edge_index", "float64", "whole numbers"]),
        ({"edge_index": np.array([[0, None]], object)}, ["edge_index", "got"]),
        ({"y": np.zeros(NODES, int)}, ["classes", "['0']", "two or more"]),
        ({"y": np.sign(PLACE - 1.5).astype(int)}, ["got ['1']", "below 0 and empty text mean unk"]),
        ({"y": np.zeros(3, int)}, ["y in", "[3]", "40 rows"]),
        ({"y": np.zeros((NODES, 2), int)}, ["y in", "[40, 2]", "classes"]),
        ({"y": np.zeros(NODES, complex)}, ["y in", "complex"]),
        ({"y": np.r_[np.inf, np.ones(NODES - 1)]}, ["y in", "inf at node 0", "or NaN"]),
        ({"y": np.r_[np.ones(NODES - 1), 1e39]}, ["y in", "1e+39 at node 39", "float32"]),
        ({"train_mask": np.ones(NODES, bool)}, ["masks", "train_mask and test_mask"]),
        (MASKS | {"y": COUNTED}, ["without a target in the train mask", "[0, 9, 12"]),
        (MASKS | {"train_mask": np.ones(NODES, bool)}, ["masks", "two parts", "disjoint"]),
        (MASKS | {"test_mask": np.zeros(NODES, bool)}, ["test mask", "no node"]),
        (MASKS | {"test_mask": np.arange(5)}, ["test_mask", "int64 [5]", "bool [40]"]),
        (MASKS | {"valid_mask": np.ones(NODES, bool)}, ["valid_mask", "val_mask", "only one"]),
        (MASKS | {"y": np.where(PLACE == 3, "c", "d")}, ["test part", "['c']", "none"]),
    ],
)
def test_what_does_not_fit_is_named(save, changes, names):
    with pytest.raises(ValueError) as caught:
        GraphFileTask(save(changes))
    assert all(name in str(caught.value) for name in names)


def test_a_graph_of_pytorch_geometric_is_saved(tmp_path):
    library = pytest.importorskip("torch_geometric.data", reason="it makes the graph")
    given = arrays(y=NODE[:, None] % 2) | MASKS
    given = {key: torch.from_numpy(value) for key, value in given.items()}
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
    ("name", "data", "said"),
    [
        ("a.npz", arrays(y=np.zeros(3, int)), "in data must be"),
        ("a.npz", arrays(train_mask=PLACE[:3] > 0, test_mask=PLACE[:3] > 0), "in data must be"),
        ("a.npz", arrays(y=None), r"data .*no y"),
        ("a.pt", {}, r"path .*\.npz"),
    ],
)
def test_what_is_no_graph_is_not_saved(tmp_path, name, data, said):
    with pytest.raises(ValueError, match=said):
        save_graph(tmp_path / name, SimpleNamespace(**data))
    assert not list(tmp_path.iterdir())
