import importlib.util
import sys
import types

import pytest
import torch

from anharmonic.nn.registry import model_class
from harness import cases
from harness.cases import CASES, ENTRANTS, make, work

INSTALLED = [
    name
    for name in ENTRANTS
    if name != cases.PEER or importlib.util.find_spec("torchrecurrent") is not None
]
NAMES = [case.name for case in CASES]


def test_cases_are_those_documented():
    wanted = {
        "unicornn-b32": ("UnICORNN", 1, 32, 128, 1000, 20, 40),
        "unicornn-3-layers": ("UnICORNN", 3, 32, 128, 1000, 9, 15),
        "unicornn-long": ("UnICORNN", 2, 8, 32, 17984, 15, 35),
        "cornn-b32": ("CoRNN", 1, 32, 128, 1000, 4, 7),
        "cornn-b128": ("CoRNN", 1, 128, 128, 1000, 4, 7),
        "cornn-long": ("CoRNN", 1, 8, 32, 17984, 9, 20),
        "lem-b32": ("LEM", 1, 32, 128, 1000, 2.2, 3.5),
        "lem-b128": ("LEM", 1, 128, 128, 1000, 2.2, 3.5),
        "lem-long": ("LEM", 1, 8, 32, 17984, 5, 10),
        **{f"{m.lower()}-streaming": (m, 1, 1, 128, 1, 2, 5) for m in ("UnICORNN", "CoRNN", "LEM")},
    }
    found = {
        c.name: (c.model, c.layers, c.batch, c.hidden, c.steps, c.target, c.stretch) for c in CASES
    }
    assert found == wanted and len(NAMES) == len(wanted)


@pytest.mark.parametrize("entrant", INSTALLED)
@pytest.mark.parametrize("name", NAMES)
def test_every_entrant_has_the_sizes_and_runs(entrant, name):
    case = CASES[NAMES.index(name)].quick()
    output, _ = make(entrant, case)(torch.zeros(3, case.batch, case.inputs))
    assert output.shape == (3, case.batch, case.hidden)
    for mode in case.modes:
        work(entrant, case, mode, 3)()


def test_a_training_step_leaves_gradients_and_inference_none(monkeypatch):
    made = []
    monkeypatch.setattr(cases, "make", lambda *a: made.append(make(*a)) or made[-1])
    case = CASES[0].quick()
    for mode in case.modes:
        work("anharmonic", case, mode, 4)()
    trained, asked = made
    assert all(p.grad is not None for p in trained.parameters())
    assert all(p.grad is None for p in asked.parameters())


def test_streams_use_step_and_carry_the_state(monkeypatch):
    case = CASES[-1].quick()
    seen = []
    step = model_class(case.model).step

    def watched(self, x_t, state=None):
        seen.append((tuple(x_t.shape), state))
        return step(self, x_t, state)

    monkeypatch.setattr(model_class(case.model), "step", watched)
    work("anharmonic", case, "streaming", 3)()
    assert [shape for shape, _ in seen] == [(1, 1)] * 3
    assert [state is None for _, state in seen] == [True, False, False]


def test_a_peer_that_is_missing_is_no_error(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert make(cases.PEER, CASES[0]) is None
    assert work(cases.PEER, CASES[0], "training", 3) is None


@pytest.mark.parametrize(("name", "theirs"), [("CoRNN", "coRNN"), ("UnICORNN", "UnICORNN")])
def test_the_peer_is_made_with_our_sizes(monkeypatch, name, theirs):
    package = types.ModuleType("torchrecurrent")
    setattr(package, theirs, torch.nn.LSTM)
    monkeypatch.setitem(sys.modules, "torchrecurrent", package)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    case = next(case for case in CASES if case.model == name)
    assert repr(make(cases.PEER, case)) == repr(torch.nn.LSTM(1, 128))
