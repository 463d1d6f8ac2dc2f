"""Networks beside resonators on few series."""

from argparse import Namespace

import numpy as np
import pytest
import torch

import few

pytest.importorskip("sklearn")


def test_networks_are_trained_by_the_recipe_and_shown(tmp_path, monkeypatch, environment):
    rng = np.random.default_rng(0)
    y = np.arange(12) % 2
    x = np.sin(np.where(y, 0.3, 0.9)[:, None] * np.arange(30)) + 0.1 * rng.normal(size=(12, 30))
    np.savez(tmp_path / "CBF.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    threads = torch.get_num_threads()
    cases = few.cases(Namespace(data=tmp_path, quick=True))
    found = [{"case": case, **measure(), **environment} for case, measure in cases.items()]
    torch.set_num_threads(threads)
    assert [one["case"] for one in found] == [f"CBF, {method}" for method in few.METHODS]
    assert found[0]["accuracy"] == 1.0 and all(one["per class"] == 6 for one in found)
    assert "| CBF | 6 | 100.0 (" in few.tables(found)["few"]
