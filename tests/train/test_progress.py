import dataclasses
import functools
import itertools
import re
import sys
import types

import pytest

from anharmonic.train import fit, watching


def test_lines_where_there_is_no_terminal(tiny, environment, capsys):
    fit(tiny(epochs=40), dataclasses.replace(environment, progress=True))
    understood, _few_to_choose_by, *lines = capsys.readouterr().err.splitlines()
    assert understood.startswith("adding: ") and "2 channels" in understood
    assert len(lines) == 20
    assert lines[0].startswith("LSTM on adding   5 %: epoch 2/40, loss ")
    assert "valid mse" in lines[0] and "kept" in lines[0] and "s left" in lines[0]
    assert lines[-1].startswith("LSTM on adding 100 %: epoch 40/40, loss ")


def test_lines_within_long_epochs(tiny, environment, capsys):
    task = {"length": 4, "valid_size": 4, "test_size": 4, "steps_per_epoch": 40}
    fit(tiny(task_options=task, epochs=1), dataclasses.replace(environment, progress=True))
    _understood, _few_to_choose_by, *lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 20
    assert "valid" not in lines[-2] and "valid mse" in lines[-1]


def stop_after_two_epochs(run, environment, hook_batches):
    def fail(name, batch):
        if name == "train 2 0":
            raise OSError("gone")

    hook_batches(fail)
    with pytest.raises(OSError, match="gone"):
        fit(run, environment)
    hook_batches(lambda name, batch: None)


def test_bar_on_a_terminal(tiny, environment, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fit(tiny(), dataclasses.replace(environment, progress=True))
    error = capsys.readouterr().err
    last = error.split("\r")[-1]
    assert "LSTM on adding: 100%" in last and "24/24" in last
    assert "epoch 4/4, loss" in last and "valid mse" in last


def test_resumed_bar_starts_where_the_run_stands(
    tiny, environment, capsys, monkeypatch, hook_batches
):
    stop_after_two_epochs(tiny(), environment, hook_batches)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fit(tiny(), dataclasses.replace(environment, progress=True))
    understood, _few_to_choose_by, said = capsys.readouterr().err.split("\n", 2)
    assert understood.startswith("adding: ")
    assert said.startswith("Going on after epoch 2 of 4 (LSTM on adding).\n")
    assert "12/24" in said.split("\r")[1]


def test_silent(tiny, environment, capfd):
    fit(tiny(), environment)
    out, error = capfd.readouterr()
    assert (out, error) == ("", "")


@pytest.mark.parametrize(
    ("tick", "terminal", "said"),
    [(0.5, False, []), (3.0, False, ["24 steps"]), (3.0, True, []), (1e-3, False, [])],
)
def test_a_long_training_is_estimated_once(
    tiny, environment, capsys, monkeypatch, tick, terminal, said
):
    """With a clock that goes on by a tick whenever it is read."""
    clock = types.SimpleNamespace(monotonic=functools.partial(next, itertools.count(0.0, tick)))
    monkeypatch.setattr(watching, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    fit(tiny(), dataclasses.replace(environment, progress=True))
    error = capsys.readouterr().err
    assert re.findall(r"LSTM on adding: about \d+ \w+ for (\d+ steps)\.\n", error) == said


def test_a_resumed_training_is_estimated_from_where_it_stands(
    tiny, environment, capsys, monkeypatch, hook_batches
):
    stop_after_two_epochs(tiny(), environment, hook_batches)
    clock = types.SimpleNamespace(monotonic=functools.partial(next, itertools.count(0.0, 4.0)))
    monkeypatch.setattr(watching, "time", clock)
    fit(tiny(), dataclasses.replace(environment, progress=True))
    assert "for 12 steps." in capsys.readouterr().err
