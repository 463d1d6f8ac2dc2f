"""Graph networks: values carried over hops, and one search of settings for all."""

import json
from argparse import Namespace

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path

pytest.importorskip("torch_geometric")
pytest.importorskip("sklearn")

import graph_transfer
import platonov
from anharmonic.data import GraphFileTask
from harness import results


@pytest.mark.parametrize("kind", graph_transfer.GRAPHS)
def test_source_and_target_are_so_many_hops_apart(kind):
    edges, nodes, source, target = graph_transfer.graph(kind, 6)
    joined = torch.zeros(nodes, nodes)
    joined[tuple(edges)] = 1
    assert shortest_path(joined.numpy(), unweighted=True)[source, target] == 6


def test_swan_keeps_the_size_of_small_gradients():
    torch.manual_seed(0)
    swan = graph_transfer.Swan(1).double()
    edges, nodes, *_ = graph_transfer.graph("crossed", 4)
    x = torch.zeros(nodes, graph_transfer.WIDTH, dtype=torch.float64)

    def change(x):
        return swan(x, graph_transfer.Adjacency(edges, nodes)) - x

    jacobian = torch.autograd.functional.jacobian(change, x).view(x.numel(), x.numel())
    assert jacobian.abs().max() > 0.1
    torch.testing.assert_close(jacobian, -jacobian.t())


def test_every_network_is_measured_and_shown(measured):
    names = [f"line, {name}, seed 0" for name in graph_transfer.BLOCKS]
    found = measured("graph_transfer", f"line, {graph_transfer.FORMULA}", *names)
    assert found[0]["error"] < 1e-5 < 0.05 < min(one["error"] for one in found[1:])
    table = graph_transfer.tables(found)["graph-transfer"]
    assert all(f"| {name} |" in table for name in graph_transfer.BLOCKS)


@pytest.mark.fast("GraphCON")
@pytest.mark.parametrize("model", platonov.MODELS)
def test_the_best_of_a_search_is_trained_on_all_splits(model, monkeypatch, tmp_path):
    # A ring of forty nodes, whose features differ between its two classes.
    ring, y = np.arange(40), np.arange(40) // 20
    x = np.random.default_rng(0).random((40, 3)) + y[:, None]
    path = tmp_path / "ring.npz"
    np.savez(path, x=x, edge_index=np.stack([ring, np.roll(ring, 1)]), y=y)
    monkeypatch.setattr(platonov, "make_task", lambda name, options: GraphFileTask(path))
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(platonov, "STEPS", {"minesweeper": 20})
    monkeypatch.setattr(platonov, "PUBLISHED", (97.9,))
    monkeypatch.setattr(platonov, "SPLITS", 2)
    cases = platonov.cases(Namespace(quick=False))
    for part in ("search 0", "search 1", "search 2", "test 0", "test 1"):
        case = f"minesweeper, {model}, {part}"
        measure, *given = cases[case]
        found = {"case": case, **measure(*given)}
        found["valid"] += 100 * (part == "search 1")
        results.store("platonov", found)
    *search, first, second = lines = results.read("platonov")
    assert first["options"] == second["options"] == search[1]["options"]
    search[1]["valid"] -= 100
    assert max(line["valid"] for line in search) > 75  # the classes lie a whole feature apart
    monkeypatch.setattr(platonov, "MODELS", {model: platonov.MODELS[model]})
    mean = (first["test"] + second["test"]) / 2
    assert f"| minesweeper | {mean:.1f} ± " in platonov.tables(lines)["platonov"]
    monkeypatch.setattr(platonov, "SPLITS", 3)  # one is missing
    assert "| minesweeper |" not in platonov.tables(lines)["platonov"]


def test_all_models_draw_the_same_shared_settings():
    for trial in range(20):
        drawn = [platonov.setting(model, trial) for model in platonov.MODELS]
        shared = [{name: options[name] for name in platonov.SHARED} for options in drawn]
        assert shared == [shared[0]] * len(drawn)
    assert len({json.dumps(platonov.setting("GCN", trial)) for trial in range(20)}) > 10


@pytest.mark.parametrize(
    ("output", "y", "score"),
    [
        pytest.param([[0, 9], [0, 8], [0, 7]], [1, 1, 0], 100, id="two classes in order"),
        pytest.param([[0, 9], [0, 8], [0, 7]], [0, 0, 1], 0, id="two classes in wrong order"),
        pytest.param([[0, 1, 0]] * 4, [1, 1, 1, 2], 75, id="three classes"),
    ],
)
def test_two_classes_are_judged_by_their_order_and_more_by_accuracy(output, y, score):
    assert platonov.score(torch.tensor(output, dtype=torch.float32), torch.tensor(y)) == score
