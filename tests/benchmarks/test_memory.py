import json
import os

import pytest

from harness import memory
from harness.memory import CASES, Case


def test_the_cases_and_targets_are_those_documented():
    found = {(c.model, c.layers, c.steps, c.batch, c.hidden, c.memory): c.target for c in CASES}
    assert found == {
        ("UnICORNN", 3, 17984, 8, 32, "auto"): 30,
        ("LEM", 1, 17984, 8, 32, "auto"): 30,
        ("CoRNN", 1, 17984, 8, 32, "auto"): 30,
        ("nn.LSTM", 1, 17984, 8, 32, "auto"): None,
        ("UnICORNN", 3, 1000000, 1, 32, "auto"): 200,
        ("LEM", 1, 1000000, 1, 32, "auto"): 200,
        ("CoRNN", 1, 1000000, 1, 32, "auto"): 200,
        ("UnICORNN", 3, 1000000, 1, 32, "reversible"): 40,
    }


def test_cases_are_measured_and_shown(in_this_process):
    said = []
    tiny = [Case("LEM", 1, 5, 1, hidden=2), Case("UnICORNN", 2, 5, 1, "reversible", hidden=2)]
    result = memory.measure(tiny, say=said.append)
    assert json.loads(json.dumps(result)) == result
    assert [one["finite"] for one in result["measurements"]] == [True, True]
    assert len(said) == 2
    text = memory.table(result)
    assert all(case.title in text for case in tiny) and "NOT" not in text


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
def test_the_peak_is_that_of_the_step_and_grows_with_its_length():
    short, long = (Case("nn.LSTM", 1, steps, 8, hidden=128) for steps in (1000, 3000))
    found = [one["peak_mb"] for one in memory.measure([short, long])["measurements"]]
    # At least output, gates, cells and the gradient of the output are held.
    assert found[0] > 4 * short.steps * short.batch * short.hidden * 7 / 1e6
    assert 2.5 < found[1] / found[0] < 3.5


def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"LEM,.*: ValueError: .*reversible"):
        memory.measure([Case("LEM", 1, 3, 1, memory="reversible", hidden=2)])
