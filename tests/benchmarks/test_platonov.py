"""Tuned classics beside our networks: one search for all, judged by validation."""

import json
from argparse import Namespace

import numpy as np
import pytest
import torch

from anharmonic.data import GraphFileTask
from harness import results

platonov = pytest.importorskip("platonov", reason="needs scikit-learn")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A ring of forty nodes, whose features differ between its two classes."""
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    ring, y = np.arange(40), np.arange(40) // 20
    x = np.random.default_rng(0).random((40, 3)) + y[:, None]
    path = tmp_path / "ring.npz"
    np.savez(path, x=x, edge_index=np.stack([ring, np.roll(ring, 1)]), y=y)
    monkeypatch.setattr(platonov, "make_task", lambda name, options: GraphFileTask(path))
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(platonov, "STEPS", {"minesweeper": 20})
    monkeypatch.setattr(platonov, "SPLITS", 2)
    return platonov


@pytest.mark.fast("GraphCON")
@pytest.mark.parametrize("model", platonov.MODELS)
def test_the_best_of_a_search_is_trained_on_all_splits(small, model, monkeypatch):
    cases = [
        f"minesweeper, {model}, {part}"
        for part in ("search 0", "search 1", "search 2", "test 0", "test 1")
    ]
    measure = small.cases(Namespace(quick=False))
    for case in cases:
        found = measure[case]()
        if case == cases[1]:
            found["valid"] += 100
        results.store("platonov", {"case": case, **found})
    lines = results.read("platonov")
    assert all(line["options"] == lines[1]["options"] for line in lines[3:])
    lines[1]["valid"] -= 100
    assert max(line["valid"] for line in lines[:3]) > 75  # the classes lie a whole feature apart
    monkeypatch.setattr(small, "MODELS", {model: platonov.MODELS[model]})
    mean = (lines[3]["test"] + lines[4]["test"]) / 2
    assert f"| minesweeper | {mean:.1f} ± " in small.tables(lines)["platonov"]
    monkeypatch.setattr(small, "SPLITS", 3)  # one is missing
    assert "| minesweeper |" not in small.tables(lines)["platonov"]


def test_all_models_draw_the_same_shared_settings():
    for trial in range(20):
        drawn = [platonov.setting(model, trial) for model in platonov.MODELS]
        shared = [{name: options[name] for name in platonov.SHARED} for options in drawn]
        assert shared == [shared[0]] * len(drawn)
    assert len({json.dumps(platonov.setting("GCN", trial)) for trial in range(20)}) > 10


def test_two_classes_are_judged_by_their_order():
    output = torch.tensor([[0.0, 9.0], [0.0, 8.0], [0.0, 7.0]])
    assert platonov.score(output, torch.tensor([1, 1, 0])) == 100
    assert platonov.score(output, torch.tensor([0, 0, 1])) == 0
    three = torch.tensor([[0.0, 1.0, 0.0]] * 4)
    assert platonov.score(three, torch.tensor([1, 1, 1, 2])) == 75
