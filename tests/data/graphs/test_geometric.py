import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anharmonic.data.graphs.cora import Cora
from anharmonic.data.graphs.edges import largest_component
from anharmonic.data.graphs.geometric import converted, pyg_source, sparse
from anharmonic.data.sources import Arrays, load_arrays
from anharmonic_papers.tasks.graphs.heterophilic import Film, Squirrel, Texas, Wisconsin


@pytest.fixture
def pyg() -> Any:
    return pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")


def test_a_graph_with_ten_splits(pyg: Any) -> None:
    from torch_geometric.data import Data

    masks = torch.arange(3)[:, None] == torch.arange(10) % 3
    data = Data(
        x=torch.tensor([[1.0, 0], [0, 0], [1, 1]]),
        edge_index=torch.tensor([[2, 0, 2], [1, 1, 1]]),
        y=torch.tensor([4, 0, 1]),
        train_mask=masks,
        val_mask=masks.roll(1, 0),
        test_mask=masks.roll(2, 0),
    )
    arrays = converted(data)
    assert arrays["edge_index"].tolist() == [[0, 2], [1, 1]]
    assert arrays["x_indptr"].tolist() == [0, 1, 1, 3]
    assert arrays["x_indices"].tolist() == [0, 0, 1]
    assert "x_data" not in arrays
    assert arrays["y"].dtype == np.uint8
    assert arrays["val_mask"].tolist() == masks.roll(1, 0).tolist()
    assert "lcc_mask" not in arrays


def test_a_citation_graph(pyg: Any) -> None:
    from torch_geometric.data import Data

    data = Data(
        x=torch.tensor([[0.5, 0], [0, 0], [1, 1], [1, 0]]),
        edge_index=torch.tensor([[1, 2, 2, 3], [2, 1, 3, 2]]),
        y=torch.tensor([0, 0, 1, 1]),
        train_mask=torch.arange(4) == 0,
        val_mask=torch.arange(4) == 2,
        test_mask=torch.arange(4) == 3,
    )
    arrays = converted(data)
    assert arrays["x_data"].tolist() == [0.5, 1, 1, 1]
    assert arrays["lcc_mask"].tolist() == [False, True, True, True]
    assert arrays["unlabelled_nodes"].tolist() == [1]
    assert arrays["public_val_mask"].tolist() == [False, False, True, False]


def write_texas(arrays: Arrays, folder: Path) -> None:
    """The files of Geom-GCN, from the prepared arrays."""
    raw = folder / "texas" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    x = np.zeros(tuple(arrays["x_shape"]), int)
    x[np.repeat(np.arange(len(x)), np.diff(arrays["x_indptr"])), arrays["x_indices"]] = 1
    lines = ["node_id\tfeature\tlabel"]
    lines += [f"{i}\t{','.join(map(str, row))}\t{arrays['y'][i]}" for i, row in enumerate(x)]
    (raw / "out1_node_feature_label.txt").write_text("\n".join(lines) + "\n")
    edges = ["node_id\tnode_id", *(f"{a}\t{b}" for a, b in arrays["edge_index"].T[::-1])]
    (raw / "out1_graph_edges.txt").write_text("\n".join([*edges, edges[-1]]) + "\n")
    for split in range(10):
        masks = {f"{k}_mask": arrays[f"{k}_mask"][:, split] for k in ("train", "val", "test")}
        np.savez(raw / f"texas_split_0.6_0.2_{split}.npz", **masks)


def test_the_class_gives_the_prepared_arrays(
    pyg: Any, graph_data: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch_geometric.datasets import WebKB

    prepared = Texas.archive.instead
    assert prepared is not None
    arrays = load_arrays(prepared, graph_data("geom_texas"))

    def download(self: Any) -> None:
        write_texas(arrays, Path(self.root))

    monkeypatch.setattr(WebKB, "download", download)
    task = Texas(split=3, data_dir=tmp_path)
    found = load_arrays(Texas.archive, tmp_path)
    for key, value in found.items():
        assert value.dtype == arrays[key].dtype, key
        assert np.array_equal(value, arrays[key]), key
    assert [path.name for path in (tmp_path / "graph").iterdir()] == ["geometric_geom_texas.npz"]
    monkeypatch.setattr(WebKB, "download", None)  # would be called
    ours, theirs = task.loaders(0, 1).test[0], Texas(3, data_dir=graph_data("geom_texas"))
    other = theirs.loaders(0, 1).test[0]
    assert torch.equal(ours.x, other.x)
    assert torch.equal(ours.rows, other.rows)
    assert torch.equal(ours.graph.edge_index, other.graph.edge_index)


def test_another_size_is_refused(pyg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_geometric.data import Data

    masks = torch.ones(2, 10, dtype=torch.bool)
    small = Data(
        x=torch.eye(2),
        edge_index=torch.tensor([[0], [1]]),
        y=torch.tensor([0, 1]),
        train_mask=masks,
        val_mask=masks,
        test_mask=masks,
    )
    monkeypatch.setattr("torch_geometric.datasets.WebKB", lambda folder, name: [small])
    with pytest.raises(
        ValueError, match=r"edge_index of geometric_geom_texas must be \[2, 325\] in"
    ):
        Texas(data_dir=tmp_path).splits()
    assert list((tmp_path / "graph").iterdir()) == []


def test_no_connection(pyg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str, name: str) -> None:
        raise OSError("no route to host.")

    monkeypatch.setattr("torch_geometric.datasets.Planetoid", refuse)
    folder = tmp_path / "graph"
    with pytest.raises(FileNotFoundError) as caught:
        Cora(data_dir=tmp_path).splits()
    assert str(caught.value) == (
        f"the data set planetoid_cora must lie at {folder / 'planetoid_cora.npz'}, or be "
        "downloaded; got no such file, and the download failed (torch_geometric, Planetoid: "
        "OSError: no route to host); try again; or copy planetoid_cora.npz from a computer that "
        f"has it into {folder}; or name another folder with --data-dir or ANHARMONIC_DATA."
    )
    assert list(folder.iterdir()) == []


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., object] = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.startswith("torch_geometric"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        FileNotFoundError, match=r"geom_film.npz.*needs torch_geometric; run: pip .*graph"
    ):
        Film(data_dir=tmp_path).splits()


@pytest.mark.parametrize("kind", [Cora, Texas, Wisconsin, Film, Squirrel])
def test_the_prepared_archive_comes_first(
    kind: type[Cora], graph_data: Callable[[str], Path]
) -> None:
    assert kind.archive.instead is not None
    assert kind.archive.instead.digest
    assert kind(data_dir=graph_data(kind.archive.instead.name)).splits()


def test_sparse_and_component() -> None:
    x = np.random.default_rng(0).integers(0, 3, (7, 5)).astype(np.float32)
    parts = sparse(x)
    dense = np.zeros_like(x)
    dense[np.repeat(np.arange(7), np.diff(parts["x_indptr"])), parts["x_indices"]] = parts["x_data"]
    assert (dense == x).all()
    assert largest_component(np.zeros((2, 0), np.int64), 3).tolist() == [True, False, False]


def test_source() -> None:
    source = pyg_source("geom_texas", "WebKB", {"name": "Texas"}, 183, 325)
    assert source.digest is None
    assert source.form["y"] == ((183,), "uint8")
