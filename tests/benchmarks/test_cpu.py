import importlib.util

import pytest
import torch

import cpu
from anharmonic.nn.registry import model_class
from cpu import CASES, ENTRANTS, make, work
from harness.speed import LSTM

INSTALLED = [
    name
    for name in ENTRANTS
    if name != cpu.PEER or importlib.util.find_spec("torchrecurrent") is not None
]


@pytest.mark.covering
@pytest.mark.parametrize("entrant", INSTALLED)
@pytest.mark.parametrize("name", CASES)
def test_every_entrant_has_the_sizes_and_runs(entrant, name):
    case = CASES[name].quick()
    output, _ = make(entrant, case)(torch.zeros(3, case.batch, case.inputs))
    assert output.shape == (3, case.batch, case.hidden)
    for mode in case.modes:
        work(entrant, case, mode, 3)()


def test_a_training_step_leaves_gradients_and_inference_none(monkeypatch):
    made = []
    monkeypatch.setattr(cpu, "make", lambda *a: made.append(make(*a)) or made[-1])
    case = CASES["unicornn-b32"].quick()
    for mode in case.modes:
        work("anharmonic", case, mode, 4)()
    trained, asked = made
    assert all(p.grad is not None for p in trained.parameters())
    assert all(p.grad is None for p in asked.parameters())


def test_streams_use_step_and_carry_the_state(monkeypatch):
    case = CASES["lem-streaming"].quick()
    seen = []
    step = model_class(case.model).step

    def watched(self, x_t, state=None):
        seen.append((tuple(x_t.shape), state is None))
        return step(self, x_t, state)

    monkeypatch.setattr(model_class(case.model), "step", watched)
    work("anharmonic", case, "streaming", 3)()
    assert seen == [((1, 1), True), ((1, 1), False), ((1, 1), False)]


def test_a_peer_that_is_missing_is_no_error(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert make(cpu.PEER, CASES["lem-b32"]) is None
    assert work(cpu.PEER, CASES["lem-b32"], "training", 3) is None


def times(name, mode, **turns):
    case = CASES[name].quick()
    return cpu.times(vars(case), mode, torch.get_num_threads(), **turns)


@pytest.mark.parametrize(
    ("name", "mode", "medians", "seconds"),
    [
        # The best of the medians.
        ("unicornn-b32", "training", [(4.0, 1.0), (2.0, 2.0)], (2.0, 1.0)),
        # A stream's time is that of one step.
        ("lem-streaming", "streaming", [(cpu.STREAM_STEPS * 2.0, cpu.STREAM_STEPS)], (2.0, 1.0)),
    ],
)
def test_the_time_that_counts(monkeypatch, name, mode, medians, seconds):
    entrants = (LSTM, "anharmonic")
    rounds = [dict(zip(entrants, one, strict=True)) for one in medians]
    monkeypatch.setattr(cpu, "work", lambda *a: lambda: None)
    monkeypatch.setattr(cpu, "ENTRANTS", entrants)
    monkeypatch.setattr(cpu, "medians", lambda *a, **k: rounds.pop(0))
    found = times(name, mode, rounds=len(medians))
    assert found == {"seconds": dict(zip(entrants, seconds, strict=True)), "left_out": {}}


def test_loops_that_would_take_seconds_are_left_out(monkeypatch):
    monkeypatch.setattr(cpu, "_guess", lambda *a: 12.3)
    found = times("unicornn-b32", "training", repeats=1, rounds=1)
    assert found["left_out"]["reference"] == "about 12 s"
    assert set(found["seconds"]) == {LSTM, "anharmonic", "nn.GRU"}
