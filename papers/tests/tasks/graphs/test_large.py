from dataclasses import replace

import numpy as np
import pytest

from anharmonic.data import seeded_rng
from anharmonic.data.sources import RemoteFile
from anharmonic_papers.tasks.graphs.large import (
    ArxivYear,
    Genius,
    SnapPatents,
    half_split,
    half_split_sizes,
)
from anharmonic_papers.tasks.graphs.proteins import ProteinInteractions


def test_a_large_graph_by_hand(tiny_archive):
    arrays = {
        "edge_index": np.array([[0, 3], [1, 0]], np.int32),
        "x": np.ones((8, 12), np.float32),
        "y": np.array([0, 1] * 4, np.int8),
    }
    folder = tiny_archive(Genius, arrays)
    rows = []
    for split in (0, 1):
        loaders = Genius(split, data_dir=folder).loaders(0, 1)
        parts = [loaders.train(0)[0], loaders.valid[0], loaders.test[0]]
        assert [len(part.rows) for part in parts] == [4, 2, 2]
        rows.append(parts[0].rows.tolist())
    assert rows[0] != rows[1]
    assert parts[0].graph.edge_index.tolist() == [[0, 3], [1, 0]]
    both = Genius(undirected=True, data_dir=folder).loaders(0, 1).test[0]
    assert both.graph.edge_index.tolist() == [[0, 0, 1, 3], [1, 3, 0, 0]]


@pytest.mark.parametrize("kind", [Genius, ArxivYear, SnapPatents, ProteinInteractions])
def test_without_a_connection_it_says_which_file_goes_where(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("anharmonic.data.download.RETRIES", 0)  # which would take seconds
    file = kind.archive.files[0]
    there = RemoteFile(f"http://127.0.0.1:9/{file.name}", None, file.file)
    monkeypatch.setattr(kind, "archive", replace(kind.archive, files=(there,)))
    task = kind(data_dir=tmp_path)
    task.progress = False
    with pytest.raises(FileNotFoundError) as caught:
        task.splits()
    text = str(caught.value)
    assert f"must lie at {tmp_path / 'graph' / kind.archive.name}.npz, or be downloaded" in text
    assert f"put this file into {tmp_path / 'graph' / 'raw'} and start again: {there.url}" in text
    if file.file:
        assert f" as {file.file}; " in text


def test_random_halves_leave_out_unknown_nodes():
    known = np.random.default_rng(0).integers(0, 4, 3000) > 0
    rows = half_split(known, seeded_rng("x", 0))
    assert sorted(np.concatenate(rows)) == np.flatnonzero(known).tolist()
    sizes = half_split_sizes(int(known.sum()))
    assert [len(part) for part in rows] == list(sizes.values())
    assert sizes["train"] == known.sum() // 2
