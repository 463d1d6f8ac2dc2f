"""Pins are compared on one thread: with the backends that users get, or on the reference."""

import sys
from pathlib import Path

import pytest
import torch

import anharmonic as ah

# make.py, a script, and the tests share pinned.py.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def backend(request):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with ah.use_backend(getattr(request, "param", "auto")):
        yield
    torch.set_num_threads(threads)
