"""Tuned classics beside our networks: one search for all, resumed, judged by validation."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic.data import GraphFileTask
from harness import results

ROOT = Path(__file__).parents[2]
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
def test_a_cell_is_trained_once_and_goes_on(small, model, monkeypatch, tmp_path):
    calls = iter([True, True, False])
    small.run("minesweeper", model, 3, lambda: next(calls))
    assert len(results.read("platonov")) == 2
    small.run("minesweeper", model, 3, lambda: True)
    stored = tmp_path / "platonov.jsonl"
    first = stored.read_text()
    small.run("minesweeper", model, 3, lambda: True)
    assert stored.read_text() == first
    found = small.search("minesweeper", model)
    tests = small.search("minesweeper", model, "test")
    assert [line["number"] for line in found] == [0, 1, 2] and len(tests) == 2
    best = max(found, key=lambda line: line["valid"])
    assert all(line["options"] == best["options"] for line in tests)
    assert best["valid"] > 75  # the classes lie a whole feature apart
    monkeypatch.setattr(small, "MODELS", {model: platonov.MODELS[model]})
    mean = (tests[0]["test"] + tests[1]["test"]) / 2
    assert f"| minesweeper | {mean:.1f} ± " in small.table()
    monkeypatch.setattr(small, "SPLITS", 3)  # one is missing
    assert "| minesweeper |" not in small.table()


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


def test_the_guide_shows_what_is_stored():
    text = (ROOT / "docs" / "graphs.md").read_text(encoding="utf-8")
    assert platonov.table() in text
