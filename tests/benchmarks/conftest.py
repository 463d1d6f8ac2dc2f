import importlib
from argparse import Namespace

import numpy as np
import pytest
import torch

from harness import isolated, results


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measures cases of a quick run, all or those named, here: each process imports torch anew.

    Data lie in the folder of the test.
    """
    monkeypatch.setattr(
        isolated, "run", lambda function, variables=None, **given: function(**given)
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before, environment = torch.get_num_threads(), results.environment(["torch"])

    def measure(question, *names):
        cases = importlib.import_module(question).cases(Namespace(quick=True, data=tmp_path))
        return [{"case": name, **cases[name](), **environment} for name in names or cases]

    yield measure
    torch.set_num_threads(before)


@pytest.fixture
def waves(tmp_path):
    """Writes a set of slow and fast waves into the folder of the test."""

    def write(name, count):
        rng, y = np.random.default_rng(0), np.arange(count) % 2
        x = np.sin(np.where(y, 0.3, 0.9)[:, None] * np.arange(30))
        x = x + 0.1 * rng.normal(size=x.shape)
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)

    return write
