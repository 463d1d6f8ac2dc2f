import os
import shutil

import pytest

from harness import isolated

COMPILER = os.environ.get("CC") or shutil.which("cc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler here: the loop runs")
@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
def test_a_step_of_ones_own_through_a_million_time_steps_takes_under_5_mb():
    call = "compiled_layers:peak_of_a_long_step"
    peak = {
        memory: isolated.run(memory, call, steps=1_000_000, memory=memory)
        for memory in ("chunked", "stored")
    }
    assert peak["chunked"] < 5
    assert peak["stored"] > 128  # a float of every neuron and step: the measure sees it
