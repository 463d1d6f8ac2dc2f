"""Tuned classics beside our networks: one search for all, resumed, judged by validation."""

import json

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
def test_a_cell_is_trained_once_and_goes_on(small, model, monkeypatch, tmp_path):
    train, names = small.train, []

    def interrupted(name, *given):
        names.append(name)
        if len(names) == 3:
            raise KeyboardInterrupt
        found = train(name, *given)
        return {**found, "valid": found["valid"] + 100 * (len(names) == 2)}  # search 1 is the best

    monkeypatch.setattr(small, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small.run("minesweeper", model, 3)
    for _ in range(2):
        small.run("minesweeper", model, 3)
        assert len(names) == 6
    lines = results.read("platonov")
    found, tests = lines[:3], lines[3:]
    assert [line["case"].split(", ")[2] for line in lines] == [
        "search 0", "search 1", "search 2", "test 0", "test 1"
    ]  # fmt: skip
    best = found[1]
    assert all(line["options"] == best["options"] for line in tests)
    best["valid"] -= 100
    assert max(line["valid"] for line in found) > 75  # the classes lie a whole feature apart
    monkeypatch.setattr(small, "MODELS", {model: platonov.MODELS[model]})
    mean = (tests[0]["test"] + tests[1]["test"]) / 2
    assert f"| minesweeper | {mean:.1f} ± " in small.table(lines)
    monkeypatch.setattr(small, "SPLITS", 3)  # one is missing
    assert "| minesweeper |" not in small.table(lines)


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
