"""What a training says: how far it is, how long it takes, and what went wrong."""

import dataclasses
import functools
import itertools
import re
import sys
import time
from types import SimpleNamespace

import pytest
import torch

from anharmonic.data import make_task
from anharmonic.train import Run, RunEnvironment, fit, watching
from anharmonic.train.estimate import expected_seconds
from anharmonic.train.notices import Notices, not_learned


@pytest.fixture
def said(capsys):
    """What a training with progress says, without how the data were understood."""

    def train(run, environment):
        fit(run, dataclasses.replace(environment, progress=True))
        understood, _few_to_choose_by, rest = capsys.readouterr().err.split("\n", 2)
        assert understood.startswith("adding: ") and "2 channels" in understood
        return rest

    return train


@pytest.mark.parametrize(
    ("epochs", "steps", "first"),
    [(40, 1, "   5 %: epoch 2/40, loss "), (1, 40, "   5 %: epoch 1/")],
)
def test_twenty_lines_where_there_is_no_terminal(tiny, environment, said, epochs, steps, first):
    task = {"length": 4, "valid_size": 4, "test_size": 4, "steps_per_epoch": steps}
    lines = said(tiny(epochs=epochs, task_options=task), environment).splitlines()
    lines = [line for line in lines if line.startswith("LSTM on adding")]
    assert len(lines) == 20
    assert lines[0].startswith(f"LSTM on adding{first}") and "s left" in lines[0]
    assert lines[-1].startswith(f"LSTM on adding 100 %: epoch {epochs}/{epochs}, loss ")
    for line in (lines[0], lines[-2], lines[-1]):  # within an epoch nothing is validated
        is_end = epochs == 40 or line == lines[-1]
        assert ("valid mse" in line and "kept" in line) == is_end


def test_a_bar_on_a_terminal_starts_where_a_resumed_run_stands(
    tiny, environment, monkeypatch, interrupted, said
):
    interrupted(tiny(), environment, "train 2 0")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = said(tiny(), environment)
    assert bar.startswith("Going on after epoch 2 of 4 (LSTM on adding).\n")
    first, *_, last = bar.split("\r")[1:]
    assert "12/24" in first
    assert "LSTM on adding: 100%" in last and "24/24" in last
    assert "epoch 4/4, loss" in last and "valid mse" in last


@pytest.mark.parametrize(
    ("tick", "terminal", "is_resumed", "steps"),
    [
        (0.5, False, False, []),
        (3.0, False, False, ["24 steps"]),
        (3.0, True, False, []),
        (1e-3, False, False, []),
        (4.0, False, True, ["12 steps"]),
    ],
)
def test_a_long_training_is_estimated_once_from_where_it_stands(
    tiny, environment, said, monkeypatch, interrupted, tick, terminal, is_resumed, steps
):
    if is_resumed:
        interrupted(tiny(), environment, "train 2 0")
    # The clock goes on by a tick whenever it is read.
    clock = SimpleNamespace(monotonic=functools.partial(next, itertools.count(0.0, tick)))
    monkeypatch.setattr(watching, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    error = said(tiny(), environment)
    assert re.findall(r"LSTM on adding: about \d+ \w+ for (\d+ steps)\.\n", error) == steps


@pytest.mark.parametrize("steps", [4, 8])
def test_time_is_that_of_all_steps(monkeypatch, steps):
    options = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": steps}
    run = Run("adding", "LEM", options, {"hidden_size": 4}, epochs=6, batch_size=8)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    clock = itertools.count()  # every look at the clock is a second later
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    found = expected_seconds(run, make_task("adding", options), RunEnvironment(threads=1))
    # Three steps in one second, three validations in another; 1 validation an epoch.
    assert found == pytest.approx(6 * (steps + 1) / 3, rel=0.01)
    assert torch.equal(before, torch.get_rng_state()) and torch.get_num_threads() == threads


SPIKE = {"grad_norm_max": [0.5, 0.4, 0.6, 1830.0]}
CALM = {
    "epoch": [1, 2, 3, 4],
    "train_loss": [1.0, 0.6, 0.4, 0.45],
    "grad_norm": [0.1, 0.09, 0.08, 0.1],
    "grad_norm_max": [0.5, 0.4, 0.6, 0.9],
}


@pytest.mark.parametrize(
    ("curve", "settings", "words"),
    [
        ({}, {}, []),
        (SPIKE, {}, ["Epoch 4", "1.83e+03", "clip_norm", "0.02"]),
        (SPIKE, {"clip_norm": 0.5}, []),
        (SPIKE, {"clip_norm": 100.0}, ["Epoch 4"]),  # hardly clipped
        ({"train_loss": [1.0, 0.6, 0.4, 0.9]}, {}, ["from 0.4 to 0.9", "lr", "0.02"]),
        ({"train_loss": [1.1, 1.09, 1.08, 1.1]}, {}, []),  # it wavers yet
    ],
)
def test_what_a_curve_shows_is_said_once_with_its_remedy(curve, settings, words):
    notices = Notices(Run("adding", "LEM", lr=0.02, **settings))
    assert notices.of({"epoch": [1], "train_loss": [1.0]}) == ""
    text = notices.of(CALM | curve)
    assert bool(text) == bool(words) and all(word in text for word in words)
    assert notices.of(CALM | curve) == ""


@pytest.mark.parametrize(
    ("losses", "best", "said"),
    [
        ([1.0, 0.99, 0.98], 3, "0.98"),
        ([1.2, 1.1, 2.0], 1, "1.2"),
        ([1.0, 0.9, 0.5], 3, ""),
        ([1.0, 0.9, 0.5], 1, ""),  # it learned, though what it learned was no use
        ([0.5, 0.9, 1.5], 1, ""),  # what was kept had learned
    ],
)
def test_a_model_that_did_not_learn_its_training_data(make_result, losses, best, said):
    curve = {"epoch": [1, 2, 3], "train_loss": losses}
    fields = {"curve": curve, "best_epoch": best, "trivial_loss": 1.0}
    lstm, lem = (
        not_learned(make_result(Run("adding", model, lr=0.01), **fields))
        for model in ("LSTM", "LEM")
    )
    assert bool(lstm) == bool(lem) == bool(said) and said in lstm
    if said:
        assert "0.01" in lstm and "dt" not in lstm and "a smaller dt" in lem
    older = make_result(Run("adding", "LEM"), **fields | {"trivial_loss": None})
    assert not_learned(older) == "" and "trivial_loss" not in older.to_json()
