import gzip
import io
import json

import numpy as np
import pytest

from anharmonic_papers.tasks.graphs.raw import (
    even_classes,
    many_graphs,
    prepare_arxiv_year,
    prepare_genius,
    prepare_patents,
    prepare_ppi,
)


def test_even_classes_are_those_of_linkx():
    values = np.random.default_rng(0).integers(1960, 2000, 1000)
    expected = np.full(1000, 4)
    lower = -np.inf
    for k in range(4):
        upper = np.nanquantile(values, (k + 1) / 5)
        expected[(values >= lower) & (values < upper)] = k
        lower = upper
    assert (even_classes(values, 5) == expected).all()
    assert even_classes(np.ones(3), 5).tolist() == [4, 4, 4]


def test_matlab_files(tmp_path):
    matlab = pytest.importorskip("scipy.io", reason="scipy is not installed")
    sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")
    path = tmp_path / "data.mat"
    links, label = np.array([[0, 2, 0], [1, 1, 1]]), np.array([[0], [1], [0]])
    matlab.savemat(path, {"edge_index": links, "node_feat": np.eye(3), "label": label})
    arrays = prepare_genius([path])
    assert arrays["edge_index"].tolist() == [[0, 2], [1, 1]]
    assert arrays["y"].tolist() == [0, 1, 0] and arrays["x"].dtype == np.float32
    x = sparse.csc_matrix(np.array([[0, 2.5], [1, 0], [0, 0], [0, 1], [1, 1]]))
    years = np.array([[1970, 1980, 1990, 1995, 1999]])
    matlab.savemat(path, {"edge_index": links[:, :1], "node_feat": x, "years": years})
    arrays = prepare_patents([path])
    assert arrays["y"].tolist() == [0, 1, 2, 3, 4]
    assert arrays["x_indptr"].tolist() == [0, 1, 2, 2, 3, 5]
    assert arrays["x_data"].tolist() == [2.5, 1, 1, 1, 1]


def table(values):
    text = io.StringIO()
    np.savetxt(text, values, delimiter=",", fmt="%g")
    return gzip.compress(text.getvalue().encode())


def test_arxiv_year(zipped):
    files = {
        "arxiv/raw/edge.csv.gz": table(np.array([[3, 0], [1, 0], [3, 0]])),
        "arxiv/raw/node-feat.csv.gz": table(np.arange(10).reshape(5, 2) / 4),
        "arxiv/raw/node_year.csv.gz": table(np.array([[2010], [2012], [2014], [2016], [2018]])),
    }
    arrays = prepare_arxiv_year([zipped("arxiv.zip", files)])
    assert arrays["edge_index"].tolist() == [[1, 3], [0, 0]]
    assert arrays["x"].tolist() == (np.arange(10).reshape(5, 2) / 4).tolist()
    assert arrays["y"].tolist() == [0, 1, 2, 3, 4]


def saved(values):
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def test_ppi(zipped):
    links = [{"source": 0, "target": 1}, {"source": 1, "target": 1}, {"source": 2, "target": 3}]
    files = {}
    for i, part in enumerate(("train", "valid", "test")):
        files[f"{part}_feats.npy"] = saved(np.arange(8.0).reshape(4, 2) + i)
        files[f"{part}_labels.npy"] = saved(np.eye(4, dtype=np.int64))
        files[f"{part}_graph_id.npy"] = saved(np.array([1, 1, 2, 2]))
        files[f"{part}_graph.json"] = json.dumps({"links": links, "nodes": []})
    arrays = prepare_ppi([zipped("ppi.zip", files)])
    for i, key in enumerate(("train", "val", "test")):
        assert arrays[f"{key}_x"].tolist() == (np.arange(8.0).reshape(4, 2) + i).tolist()
        assert arrays[f"{key}_num_nodes"].tolist() == [2, 2]
        assert arrays[f"{key}_num_edges"].tolist() == [2, 2]
        assert arrays[f"{key}_edges"].tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]


def test_graphs_whose_nodes_are_mixed():
    rng = np.random.default_rng(0)
    number, links = rng.integers(0, 3, 30), rng.integers(0, 30, (2, 400))
    links = links[:, number[links[0]] == number[links[1]]]
    x = np.arange(30.0)[:, None]
    found = many_graphs(x, x, number, links)
    ends, starts = (np.cumsum([0, *found[key]]) for key in ("num_edges", "num_nodes"))
    pairs = set()
    for graph in range(3):
        names = found["x"][starts[graph] : starts[graph + 1], 0].astype(int)
        assert (number[names] == graph).all()
        edges = found["edges"][:, ends[graph] : ends[graph + 1]]
        pairs |= {(names[a], names[b]) for a, b in edges.T}
    wanted = {(a, b) for a, b in links.T if a != b}
    assert pairs == wanted | {(b, a) for a, b in wanted}
    with pytest.raises(ValueError, match="links between two graphs must be none; got 2; dow"):
        many_graphs(np.eye(2), np.eye(2), np.array([0, 1]), np.array([[0], [1]]))
