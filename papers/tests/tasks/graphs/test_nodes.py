"""Tasks on the nodes of one graph: by hand, and the prepared archives against what is published."""

import numpy as np
import pytest
import torch

from anharmonic.data import coalesce, load_arrays, make_task
from anharmonic_papers.tasks.graphs.heterophilic import Texas
from anharmonic_papers.tasks.graphs.stored import prepared
from anharmonic_papers.tasks.graphs.synthetic_cora import SyntheticCora
from anharmonic_papers.tasks.graphs.traffic import ChameleonTraffic, SquirrelTraffic


def homophily(edges, y):
    """Share of the distinct undirected edges, self-loops counted, that join nodes of one class."""
    once = coalesce(np.sort(edges, axis=0), len(y))
    return float((y[once[0]] == y[once[1]]).mean())


def hand_made(edges, **more):
    """An archive of six nodes; in split 0 they train, validate and test in turn."""
    masks = {
        f"{part}_mask": np.arange(6)[:, None] % 3 == (np.arange(10) + i) % 3
        for i, part in enumerate(("train", "val", "test"))
    }
    y = np.arange(6, dtype=np.uint8) % 5
    return {"edge_index": np.array(edges, np.int32), "y": y, **more, **masks}


def edges_of(task):
    return task.loaders(0, 1).test[0].graph.edge_index.tolist()


def test_a_split_of_a_directed_graph(tiny_archive):
    words = {
        "x_indptr": np.array([0, 1, 1, 3, 3, 3, 4], np.int32),
        "x_indices": np.array([1, 0, 1, 2], np.uint16),
        "x_shape": np.array([6, 3], np.int32),
    }
    folder = tiny_archive(Texas, hand_made([[0, 2, 4, 5], [2, 0, 5, 5]], **words))
    loaders = Texas(split=1, data_dir=folder).loaders(0, 1)
    batch = loaders.train(0)[0]
    assert batch.graph.edge_index.tolist() == [[0, 2, 4, 5], [2, 0, 5, 5]]
    assert batch.x.tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert batch.rows.tolist() == batch.y.tolist() == [1, 4]
    assert loaders.valid[0].rows.tolist() == [2, 5]
    assert loaders.test[0].rows.tolist() == [0, 3]
    both = edges_of(Texas(undirected=True, data_dir=folder))
    assert both == [[0, 2, 4, 5, 5], [2, 0, 5, 4, 5]]
    back = torch.tensor(edges_of(Texas(reverse=True, data_dir=folder)))
    assert sorted(back.t().tolist()) == [[0, 2], [2, 0], [5, 4], [5, 5]]


def test_traffic_has_targets_edges_and_numbering(tiny_archive):
    more = {
        "traffic": np.array([10, 40, 20, 30, 5, 5], np.int32),
        "musae_x": np.eye(6, dtype=np.float32),
    }
    folder = tiny_archive(ChameleonTraffic, hand_made([[1, 3], [3, 0]], **more))
    batch = ChameleonTraffic(data_dir=folder).loaders(0, 1).train(0)[0]
    assert batch.y.tolist() == [[0.25], [0.75]]
    assert batch.graph.edge_index.tolist() == [[0, 1, 3, 3], [3, 3, 0, 1]]
    assert edges_of(ChameleonTraffic(undirected=False, data_dir=folder)) == [[1, 3], [3, 0]]
    mixed = ChameleonTraffic(undirected=False, published_numbering=True, data_dir=folder)
    wrong = mixed.loaders(0, 1).train(0)[0]
    assert wrong.graph.edge_index.tolist() == [[0, 1], [1, 2]]  # 1, 3, 0 became 0, 1, 2
    assert torch.equal(wrong.x, batch.x) and torch.equal(wrong.y, batch.y)


# Archive, task, options, nodes, directed edges, homophily (share of equal-label links).
TABLE = [
    ("planetoid_cora", "cora", {}, 2708, 10556, 0.810),
    ("planetoid_cora", "cora", {"split": "random"}, 2485, 2 * 5069, None),
    ("planetoid_citeseer", "citeseer", {}, 3327, 9104, 0.736),
    ("planetoid_citeseer", "citeseer", {"split": "random"}, 2120, 2 * 3679, None),
    ("planetoid_pubmed", "pubmed", {}, 19717, 88648, 0.802),
    ("planetoid_pubmed", "pubmed", {"split": "random"}, 19717, 88648, 0.802),
    ("geom_texas", "texas", {}, 183, 325, 0.112),
    ("geom_texas", "texas", {"undirected": True}, 183, 2 * 295 - 16, 0.112),
    ("geom_wisconsin", "wisconsin", {}, 251, 515, 0.206),
    ("geom_cornell", "cornell", {}, 183, 554, 0.123),
    ("geom_cornell_old", "cornell-old", {}, 183, 298, 0.304),
    ("geom_film", "film", {}, 7600, 30019, 0.219),
    ("geom_chameleon", "chameleon", {}, 2277, 36101, 0.231),
    ("geom_squirrel", "squirrel", {}, 5201, 217073, 0.223),
    ("het_chameleon_filtered", "chameleon-filtered", {}, 890, 13584, None),
    ("het_squirrel_filtered", "squirrel-filtered", {}, 2223, 65718, None),
    ("het_minesweeper", "minesweeper", {}, 10000, 2 * 39402, None),
    ("het_tolokers", "tolokers", {}, 11758, 2 * 519000, None),
    ("syn_cora", "synthetic-cora", {"homophily": 0.0}, 1490, 5936, 0.0),
    ("syn_cora", "synthetic-cora", {"homophily": 0.9, "repeat": 2}, 1490, 5936, 0.9),
    ("syn_cora", "synthetic-cora", {"homophily": 0.99, "repeat": 3}, 1490, 5936, 0.987),
    ("syn_cora", "synthetic-cora", {"homophily": 1.0}, 1490, 5930, 1.0),
    ("geom_chameleon", "chameleon-traffic", {}, 2277, 2 * 31421 - 50, None),
    ("geom_squirrel", "squirrel-traffic", {}, 5201, 2 * 198493 - 140, None),
]


@pytest.mark.parametrize(("archive", "name", "options", "nodes", "edges", "share"), TABLE)
def test_a_real_graph_is_as_published(archive, name, options, nodes, edges, share, graph_data):
    task = make_task(name, options, data_dir=graph_data(archive))
    loaders = task.loaders(0, 1)
    batches = [loaders.train(0)[0], loaders.valid[0], loaders.test[0]]
    one = batches[0]
    assert (one.graph.num_nodes, one.graph.num_edges) == (nodes, edges)
    assert list(one.x.shape) == [nodes, task.input_size]
    assert [len(batch.y) for batch in batches] == list(task.sizes.values())
    rows = torch.cat([batch.rows for batch in batches])
    assert len(rows.unique()) == len(rows), "the parts are disjoint"
    y = torch.cat([batch.y for batch in batches])
    if task.target == "class":
        assert y.unique().tolist() == list(range(task.output_size))
        assert len(task.class_names) == task.output_size
    if share is not None and len(rows) == nodes:
        whole = torch.empty(nodes, dtype=torch.int64)
        whole[rows] = y
        assert homophily(one.graph.edge_index.numpy(), whole.numpy()) == pytest.approx(
            share, abs=6e-4
        )


@pytest.mark.parametrize(
    ("archive", "name"),
    [
        ("geom_texas", "texas"),
        ("geom_film", "film"),
        ("het_chameleon_filtered", "chameleon-filtered"),
        ("het_squirrel_filtered", "squirrel-filtered"),
        ("geom_chameleon", "chameleon-traffic"),
    ],
)
def test_every_stored_split_has_its_size(archive, name, graph_data):
    folder = graph_data(archive)
    masks = load_arrays(prepared(archive), folder)
    for split in range(10):
        sizes = make_task(name, {"split": split}, data_dir=folder).sizes
        parts = [masks[f"{part}_mask"][:, split].sum() for part in ("train", "val", "test")]
        assert list(sizes.values()) == parts


@pytest.mark.parametrize("kind", [ChameleonTraffic, SquirrelTraffic])
def test_scale_is_that_of_the_data(kind, graph_data):
    traffic = load_arrays(kind.archive, graph_data(kind.archive.name))["traffic"]
    assert kind.metric_scale == pytest.approx(traffic.max() / traffic.mean(), rel=1e-12)


def test_split_is_that_of_the_published_code(graph_data):
    task = SyntheticCora(0.3, 2, data_dir=graph_data("syn_cora"))
    order = np.random.RandomState(123456).choice(1490, 1490, replace=False)
    loaders = task.loaders(0, 1)
    assert loaders.train(0)[0].rows.tolist() == sorted(order[:745])
    assert loaders.test[0].rows.tolist() == sorted(order[745 + 372 :])
    another = SyntheticCora(0.3, 3, data_dir=task.data_dir)
    assert edges_of(another) != edges_of(task)
