import os
import shutil

import pytest
import torch

import compiled
from harness import isolated


@pytest.mark.fast("a GRU as a function")
@pytest.mark.parametrize("name", ["MinimalGate", "a GRU as a function"])
def test_a_quick_run_times_all_ways(measured, name, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # takes seconds, tested by it
    case = f"{name}; B 32, H 128, T 1,000"
    (found,) = measured("compiled", case)
    assert {"compiled", "loop", "nn.LSTM"} < set(found["milliseconds"])
    assert f"| {case} |" in compiled.tables([found])["compiled"]


def test_the_gru_as_a_function_is_that_of_torch():
    torch.manual_seed(0)
    ours, theirs = compiled.FunctionGRU(3, 4), torch.nn.GRU(3, 4)
    ours.load_state_dict(theirs.state_dict())
    ours.compiled = False
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])


@pytest.mark.skipif(shutil.which(os.environ.get("CC", "cc")) is None, reason="no C compiler here")
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
@pytest.mark.slow
def test_a_step_of_ones_own_through_a_million_time_steps_takes_under_5_mb():
    peak = {
        memory: isolated.run("compiled:long_step", steps=1_000_000, memory=memory)
        for memory in ("chunked", "stored")
    }
    assert peak["chunked"] < 5
    assert peak["stored"] > 128  # a float of every neuron and step: the measure sees it
