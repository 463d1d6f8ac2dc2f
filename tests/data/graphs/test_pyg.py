import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from anharmonic.data.graphs.archives import node_features
from anharmonic.data.graphs.cora import Cora
from anharmonic.data.graphs.pyg import pyg_arrays, pyg_source
from anharmonic.data.sources import Source, load_arrays

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")


def make_data(**changes):
    from torch_geometric.data import Data

    masks = torch.arange(4)[:, None] == torch.arange(10) % 4
    given = {
        "x": torch.tensor([[0.5, 0], [0, 0], [1, 1], [1, 0]]),
        "edge_index": torch.tensor([[1, 2, 2, 3, 2], [2, 1, 3, 2, 1]]),
        "y": torch.tensor([0, 0, 1, 4]),
        **{f"{name}_mask": masks.roll(i, 0) for i, name in enumerate(("train", "val", "test"))},
    }
    return Data(**given | changes)


def test_graphs_with_ten_splits_and_citation_graphs():
    data = make_data()
    arrays = pyg_arrays(data)
    assert arrays["edge_index"].tolist() == [[1, 2, 2, 3], [2, 1, 3, 2]]
    assert arrays["x"].tolist() == data.x.tolist() and arrays["y"].dtype == np.uint8
    assert arrays["val_mask"].tolist() == data.val_mask.tolist()
    assert "lcc_mask" not in arrays
    masks = {f"{k}_mask": torch.arange(4) == i for i, k in enumerate(("train", "val", "test"))}
    arrays = pyg_arrays(make_data(**masks))
    assert arrays["lcc_mask"].tolist() == [False, True, True, True]
    assert arrays["unlabelled_nodes"].tolist() == [1]
    assert arrays["public_val_mask"].tolist() == [False, True, False, False]
    pairs = make_data(**masks, edge_index=torch.tensor([[2, 0], [3, 1]]))
    assert pyg_arrays(pairs)["lcc_mask"].tolist() == [True, True, False, False]


@pytest.mark.fast("planetoid_cora")
@pytest.mark.parametrize("name", ["planetoid_cora", "planetoid_citeseer", "planetoid_pubmed"])
def test_the_arrays_are_those_of_the_prepared_archive(name, graph_data):
    stored = load_arrays(Source(name, folder="graph"), graph_data(name))
    given = {f"{k}_mask": stored[f"public_{k}_mask"] for k in ("train", "val", "test")}
    given |= {"x": node_features(stored), "y": stored["y"]}
    given["edge_index"] = np.int64(stored["edge_index"][:, ::-1])
    data = make_data(**{key: torch.from_numpy(array) for key, array in given.items()})
    arrays = pyg_arrays(data)
    assert (arrays.pop("x") == node_features(stored)).all()
    for key, value in arrays.items():
        assert value.dtype == stored[key].dtype, key
        assert np.array_equal(value, stored[key]), key


def test_made_once_and_kept_unless_of_another_size(tmp_path, monkeypatch):
    archive = Source("tiny", digest="0" * 64, folder="graph")
    source = pyg_source(archive, "WebKB", {"name": "Texas"}, nodes=4, edges=4)
    other = pyg_source(archive, "WebKB", {"name": "Texas"}, nodes=4, edges=5)
    monkeypatch.setattr("torch_geometric.datasets.WebKB", lambda folder, name: [make_data()])
    with pytest.raises(ValueError, match=r"edge_index of geometric_tiny must be .*2, 5.* int32"):
        load_arrays(other, tmp_path)
    assert list((tmp_path / "graph").iterdir()) == []
    made = load_arrays(source, tmp_path)
    kept = sorted(path.name for path in (tmp_path / "graph").iterdir())
    assert kept == ["geometric_tiny.npz", "geometric_tiny.sha256"]
    monkeypatch.setattr("torch_geometric.datasets.WebKB", None)  # would be called
    kept = load_arrays(source, tmp_path)
    assert made.keys() == kept.keys()
    assert all((made[key] == kept[key]).all() for key in made)


def test_no_connection(tmp_path, monkeypatch):
    def refuse(folder, name):
        raise OSError("no route to host.")

    monkeypatch.setattr("torch_geometric.datasets.Planetoid", refuse)
    folder = tmp_path / "graph"
    with pytest.raises(FileNotFoundError) as caught:
        Cora(data_dir=tmp_path).splits()
    for part in (str(folder / "planetoid_cora.npz"), "no route to host", "--data-dir"):
        assert part in str(caught.value)
    assert list(folder.iterdir()) == []


def test_without_the_package(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("torch_geometric.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(FileNotFoundError, match=r"cora.npz.*needs torch_geometric; run: pip .*gra"):
        Cora(data_dir=tmp_path).splits()


def test_the_prepared_archive_comes_first(graph_data):
    folder = graph_data("planetoid_cora")
    assert Cora(data_dir=folder).splits()
    preferred = Cora.archive.preferred
    with pytest.raises(ValueError, match="digest"):
        load_arrays(replace(Cora.archive, preferred=replace(preferred, digest="0" * 64)), folder)
