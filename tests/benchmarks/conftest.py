import importlib
from argparse import Namespace

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
def environment():
    return results.environment(["torch"])
