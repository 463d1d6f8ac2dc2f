import dataclasses
import functools
import itertools
import re
import sys
import types

import pytest

from anharmonic.train import fit, watching


@pytest.fixture
def said(capsys):
    """What a training with progress says, without how the data were understood."""

    def train(run, environment):
        fit(run, dataclasses.replace(environment, progress=True))
        understood, _few_to_choose_by, rest = capsys.readouterr().err.split("\n", 2)
        assert understood.startswith("adding: ") and "2 channels" in understood
        return rest

    return train


def test_lines_where_there_is_no_terminal(tiny, environment, said):
    task = {"length": 4, "valid_size": 4, "test_size": 4, "steps_per_epoch": 1}
    lines = said(tiny(epochs=40, task_options=task), environment).splitlines()
    lines = [line for line in lines if line.startswith("LSTM on adding")]
    assert len(lines) == 20
    assert lines[0].startswith("LSTM on adding   5 %: epoch 2/40, loss ")
    assert "valid mse" in lines[0] and "kept" in lines[0] and "s left" in lines[0]
    assert lines[-1].startswith("LSTM on adding 100 %: epoch 40/40, loss ")


def test_lines_within_long_epochs(tiny, environment, said):
    task = {"length": 4, "valid_size": 4, "test_size": 4, "steps_per_epoch": 40}
    lines = said(tiny(task_options=task, epochs=1), environment).splitlines()
    assert len(lines) == 20
    assert "valid" not in lines[-2] and "valid mse" in lines[-1]


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


def with_clock(monkeypatch, tick):
    """The clock goes on by a tick whenever it is read."""
    clock = types.SimpleNamespace(monotonic=functools.partial(next, itertools.count(0.0, tick)))
    monkeypatch.setattr(watching, "time", clock)


@pytest.mark.parametrize(
    ("tick", "terminal", "steps"),
    [(0.5, False, []), (3.0, False, ["24 steps"]), (3.0, True, []), (1e-3, False, [])],
)
def test_a_long_training_is_estimated_once(
    tiny, environment, said, monkeypatch, tick, terminal, steps
):
    with_clock(monkeypatch, tick)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    error = said(tiny(), environment)
    assert re.findall(r"LSTM on adding: about \d+ \w+ for (\d+ steps)\.\n", error) == steps


def test_a_resumed_training_is_estimated_from_where_it_stands(
    tiny, environment, monkeypatch, interrupted, said
):
    interrupted(tiny(), environment, "train 2 0")
    with_clock(monkeypatch, 4.0)
    assert "for 12 steps." in said(tiny(), environment)
