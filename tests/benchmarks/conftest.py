import importlib
from argparse import Namespace

import numpy as np
import pytest
import torch

from harness import isolated, results


@pytest.fixture
def in_this_process(monkeypatch):
    """Measures without a process per case (test_memory.py tests those): each imports torch anew."""

    def call(function, variables=None, **arguments):
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)(**arguments)

    before = torch.get_num_threads()
    monkeypatch.setattr(isolated, "run", call)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def quick():
    """The options of a quick run."""
    return Namespace(quick=True, data=None)


@pytest.fixture
def measured(in_this_process, quick, environment, tmp_path):
    """Measures cases of a quick run, all or those named; data lie in the folder of the test."""
    quick.data = tmp_path

    def measure(question, *names):
        cases = importlib.import_module(question).cases(quick)
        return [{"case": name, **cases[name](), **environment} for name in names or cases]

    return measure


@pytest.fixture
def waves(tmp_path, monkeypatch):
    """Writes a set of slow and fast waves into the folder of the test; measures on one thread."""

    def write(name, count):
        rng, y = np.random.default_rng(0), np.arange(count) % 2
        x = np.sin(np.where(y, 0.3, 0.9)[:, None] * np.arange(30))
        x = x + 0.1 * rng.normal(size=x.shape)
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    yield write
    torch.set_num_threads(before)


@pytest.fixture
def environment():
    return results.environment(["torch"])
