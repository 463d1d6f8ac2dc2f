import gc
import importlib.util

import pytest
import torch

import cpu
from anharmonic.nn.registry import model_class
from cpu import CASES, ENTRANTS, make, modes, small, work
from harness import speed

INSTALLED = [
    name
    for name in ENTRANTS
    if name != cpu.PEER or importlib.util.find_spec("torchrecurrent") is not None
]


@pytest.mark.covering
@pytest.mark.parametrize("entrant", INSTALLED)
@pytest.mark.parametrize("name", CASES)
def test_every_entrant_has_the_sizes_and_runs(entrant, name):
    case = small(CASES[name])
    output, _ = make(entrant, case)(torch.zeros(3, case.batch, 1))
    assert output.shape == (3, case.batch, case.hidden)
    for mode in modes(case):
        work(entrant, case, mode, 3)()


def test_a_training_step_leaves_gradients_and_inference_none(monkeypatch):
    made = []
    monkeypatch.setattr(cpu, "make", lambda *a: made.append(make(*a)) or made[-1])
    for mode in ("training", "inference"):
        work("anharmonic", small(CASES["unicornn-b32"]), mode, 4)()
    trained, asked = made
    assert all(p.grad is not None for p in trained.parameters())
    assert all(p.grad is None for p in asked.parameters())


def test_streams_use_step_and_carry_the_state(monkeypatch):
    case = small(CASES["lem-streaming"])
    seen = []
    step = model_class(case.model).step

    def watched(self, x_t, state=None):
        seen.append((tuple(x_t.shape), state is None))
        return step(self, x_t, state)

    monkeypatch.setattr(model_class(case.model), "step", watched)
    work("anharmonic", case, "streaming", 3)()
    assert seen == [((1, 1), True), ((1, 1), False), ((1, 1), False)]


def test_loops_that_would_take_seconds_and_missing_packages_are_left_out(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(cpu, "_guess", lambda *a: 12.3)
    found = cpu.times("unicornn-b32", "training", torch.get_num_threads(), quick=True)
    assert found["left_out"] == {"reference": "about 12 s", "torchrecurrent": "not installed"}
    assert set(found["seconds"]) == {"nn.LSTM", "anharmonic", "nn.GRU"}


def test_the_best_round_counts_and_a_stream_is_timed_by_the_step(monkeypatch):
    rounds = [{"nn.LSTM": 4.0, "anharmonic": 1.0}, {"nn.LSTM": 2.0, "anharmonic": 3.0}]
    monkeypatch.setattr(cpu, "work", lambda *a: None)
    monkeypatch.setattr(cpu, "ENTRANTS", ("nn.LSTM", "anharmonic"))
    monkeypatch.setattr(cpu, "medians", lambda *a, **k: rounds.pop(0))
    monkeypatch.setattr(cpu, "ROUNDS", 2)
    found = cpu.times("lem-streaming", "streaming", torch.get_num_threads())
    expected = {"nn.LSTM": 2.0 / cpu.STREAM_STEPS, "anharmonic": 1.0 / cpu.STREAM_STEPS}
    assert found["seconds"] == expected


def test_turns_alternate_without_garbage_and_the_median_of_those_after_the_first_counts():
    now, order = [0.0], []
    seconds = {
        "ours": [9.0, 0.2, 7.0, 0.2],
        "theirs": [9.0, 2.0, 2.0, 8.0],
        "loop": [9.0, 3.0, 5.0],
    }

    def turn(name):
        order.append((name, gc.isenabled()))
        now[0] += seconds[name].pop(0)

    turns = {name: lambda name=name: turn(name) for name in seconds}
    found = speed.medians(turns, 3, slow=("loop",), clock=lambda: now[0])
    assert found == pytest.approx({"ours": 0.2, "theirs": 2.0, "loop": 4.0})
    rounds = [("ours", False), ("theirs", False), ("loop", False)]
    assert order == [*rounds * 3, *rounds[:2]] and gc.isenabled()
