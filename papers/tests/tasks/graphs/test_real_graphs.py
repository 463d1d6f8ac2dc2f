"""The prepared archives against their published statistics."""

import numpy as np
import pytest
import torch

from anharmonic.data import load_arrays, make_task
from anharmonic_papers.tasks.graphs.archives import DIGESTS, prepared

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
def test_a_real_graph_is_as_published(
    archive, name, options, nodes, edges, share, graph_data, homophily
):
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


@pytest.mark.parametrize("archive", sorted(DIGESTS))
def test_archives_have_their_digest(archive, graph_data):
    assert load_arrays(prepared(archive), graph_data(archive))


@pytest.mark.parametrize(
    ("archive", "name", "count"),
    [
        ("geom_texas", "texas", 10),
        ("geom_film", "film", 10),
        ("het_chameleon_filtered", "chameleon-filtered", 10),
        ("het_squirrel_filtered", "squirrel-filtered", 10),
        ("geom_chameleon", "chameleon-traffic", 10),
    ],
)
def test_every_stored_split_has_its_size_and_is_another(archive, name, count, graph_data):
    folder = graph_data(archive)
    masks = load_arrays(prepared(archive), folder)
    seen = set()
    for split in range(count):
        task = make_task(name, {"split": split}, data_dir=folder)
        rows = task.loaders(0, 1).test[0].rows
        assert rows.tolist() == np.flatnonzero(masks["test_mask"][:, split]).tolist()
        sizes = [masks[f"{part}_mask"][:, split].sum() for part in ("train", "val", "test")]
        assert list(task.sizes.values()) == sizes
        seen.add(tuple(rows.tolist()))
    assert len(seen) == count
    with pytest.raises(
        ValueError, match=rf"split must be in \[0, {count - 1}\]; got {count}; choose"
    ):
        make_task(name, {"split": count})
