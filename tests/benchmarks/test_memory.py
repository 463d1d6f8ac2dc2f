import os
from dataclasses import asdict

import pytest

import memory
from harness import isolated
from memory import SEQUENCES, Case


def test_every_case_is_measured_and_shown(measured):
    pytest.importorskip("torch_geometric", reason="the convolution is PyG's")
    found = measured("memory")
    # The kernel counts pages in batches: a step that needs nothing may end a little below zero.
    assert all(one["is_finite"] and one["peak_mb"] > -1 for one in found)
    tables = memory.tables(found)
    assert all(f"| {title} |" in tables["memory"] for title in SEQUENCES)
    assert "| GraphCON, Adjacency, checkpoint |" in tables["graph-memory"]
    assert tables["large-graph-memory"].count(" MB ") == 4
    assert "NOT" not in "".join(tables.values())
    found[0]["is_finite"] = False
    assert "NOT FINITE" in memory.tables(found)["memory"]


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="this system cannot reset the peak"
)
@pytest.mark.slow
def test_the_peak_is_that_of_the_step_and_grows_with_its_length():
    short, long = (Case("nn.LSTM", 1, steps, 8, hidden=128) for steps in (1000, 3000))
    found = [isolated.run("memory:sequence_step", fields=asdict(one)) for one in (short, long)]
    peaks = [one["peak_mb"] for one in found]
    # At least output, gates, cells and the gradient of the output are held.
    assert peaks[0] > 4 * short.steps * short.batch * short.hidden * 7 / 1e6
    assert 2.5 < peaks[1] / peaks[0] < 3.5


@pytest.mark.slow
def test_a_process_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"memory:sequence_step: ValueError: .*reversible"):
        isolated.run("memory:sequence_step", fields=asdict(Case("LEM", 1, 3, 1, "reversible")))
