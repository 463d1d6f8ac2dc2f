import numpy as np
import pytest

from anharmonic.data import load_arrays
from anharmonic_papers.tasks.graphs.synthetic_cora import LEVELS, SyntheticCora


def test_levels_and_measured_homophily(graph_data, homophily):
    arrays = load_arrays(SyntheticCora.archive, graph_data("syn_cora"))
    assert arrays["homophily_levels"].tolist() == list(LEVELS)
    for row, level in enumerate(LEVELS):
        for repeat in (1, 2, 3):
            prefix = f"h{level:.2f}_r{repeat}_"
            share = homophily(arrays[f"{prefix}edge_index"], arrays[f"{prefix}y"])
            assert share == pytest.approx(level, abs=0.023)
            assert share == pytest.approx(
                arrays["measured_edge_homophily"][row, repeat - 1], abs=2e-3
            )


def test_split_is_that_of_the_published_code(graph_data):
    task = SyntheticCora(0.3, 2, data_dir=graph_data("syn_cora"))
    order = np.random.RandomState(123456).choice(1490, 1490, replace=False)
    loaders = task.loaders(0, 1)
    assert loaders.train(0)[0].rows.tolist() == sorted(order[:745])
    assert loaders.test[0].rows.tolist() == sorted(order[745 + 372 :])


def test_graphs_differ(graph_data):
    folder = graph_data("syn_cora")
    seen = {
        SyntheticCora(level, repeat, data_dir=folder)
        .loaders(0, 1)
        .test[0]
        .graph.edge_index.numpy()
        .tobytes()
        for level in (0.0, 0.99)
        for repeat in (1, 2, 3)
    }
    assert len(seen) == 6
