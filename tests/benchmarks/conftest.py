import importlib
from argparse import Namespace

import pytest
import torch

from harness import results, speed


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measures cases of a quick run, all or those named, here: each process imports torch anew.

    Data lie in the folder of the test.
    """
    monkeypatch.setattr(
        speed, "isolated", lambda function, *given, variables=None: function(*given)
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before, environment = torch.get_num_threads(), results.environment(["torch"])

    def measure(question, *names):
        cases = importlib.import_module(question).cases(Namespace(quick=True, data=tmp_path))
        found = {name: cases[name][0](*cases[name][1:]) for name in names or cases}
        return [{"case": name, **one, **environment} for name, one in found.items()]

    yield measure
    torch.set_num_threads(before)
