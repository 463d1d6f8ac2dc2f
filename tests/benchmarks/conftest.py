import importlib

import pytest
import torch

from harness import isolated


@pytest.fixture
def in_this_process(monkeypatch):
    """Measures without a process per case (test_memory.py tests those): each imports torch anew."""

    def call(title, function, **arguments):
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)(**arguments)

    before = torch.get_num_threads()
    monkeypatch.setattr(isolated, "run", call)
    yield
    torch.set_num_threads(before)
