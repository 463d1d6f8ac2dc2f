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


def test_silent(tiny, environment, capfd):
    fit(tiny(epochs=1), environment)
    assert capfd.readouterr() == ("", "")


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


def expected(epochs, steps=4):
    options = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": steps}
    run = Run("adding", "LEM", options, {"hidden_size": 4}, epochs=epochs, batch_size=8)
    return expected_seconds(run, make_task("adding", options), RunEnvironment(threads=1))


def test_time_is_that_of_all_steps(monkeypatch):
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    clock = itertools.count()  # every look at the clock is a second later
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    # Three steps in one second, three validations in another: 4 steps and 1 validation an epoch.
    assert expected(6) == pytest.approx(6 * (4 + 1) / 3, rel=0.01)
    assert expected(6, steps=8) == pytest.approx(6 * (8 + 1) / 3, rel=0.01)
    assert torch.equal(before, torch.get_rng_state()) and torch.get_num_threads() == threads
