"""The search: values within ranges, the best by validation, continued as if never interrupted."""

import contextlib
import dataclasses
import sys
import tempfile
from types import SimpleNamespace

import pytest

from anharmonic.train.fit import fit as real_fit
from anharmonic.train.folder import locked, run_folder
from anharmonic.train.results import read_results
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.trials import Range, search, with_settings

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")

module = sys.modules["anharmonic.train.trials"]
TASK = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
SPACE = {
    "lr": Range(1e-3, 1e-1, log=True),
    "dt": Range(0.1, 1.0),
    "hidden_size": Range(choices=(2, 4)),
}


@pytest.fixture
def environment(tmp_path):
    return RunEnvironment(out=tmp_path / "runs", progress=False)


def tiny():
    return Run("adding", "LEM", TASK, {"hidden_size": 4}, epochs=1)


def test_the_best_trial_is_the_one_with_the_best_validation(environment, tmp_path):
    best = search(tiny(), SPACE, 4, environment, tmp_path / "a" / "study.db")
    results = read_results(environment.results_path)
    assert len(results) == best.trials == 4
    assert best.valid == min(result.valid for result in results)
    assert best.run.hash in {result.hash for result in results}
    for result in results:
        assert 1e-3 <= result.run.lr <= 1e-1
        assert result.run.model_options["hidden_size"] in (2, 4)


def test_a_continued_search_draws_what_it_would_have(environment, tmp_path):
    whole = search(tiny(), SPACE, 4, environment, tmp_path / "one.db")
    search(tiny(), SPACE, 2, environment, tmp_path / "two.db")
    parts = search(tiny(), SPACE, 4, environment, tmp_path / "two.db")
    assert parts == whole
    assert len(read_results(environment.results_path)) == 4  # the same runs, trained once


def test_several_seeds_are_averaged(environment, tmp_path):
    best = search(tiny(), SPACE, 1, environment, tmp_path / "s.db", seeds=(0, 1, 2))
    results = read_results(environment.results_path)
    assert sorted(result.run.seed for result in results) == [0, 1, 2]
    assert best.valid == pytest.approx(sum(result.valid for result in results) / 3)


def test_a_diverged_trial_is_the_worst(environment, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    real, calls = module.fit, []

    def fit(run, environment, on_epoch_end=None):
        calls.append(run)
        if len(calls) == 1:
            raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)
        return real(run, environment)

    monkeypatch.setattr(module, "fit", fit)
    best = search(tiny(), SPACE, 2, environment, tmp_path / "d.db")
    assert best.run == calls[1]


def test_a_trial_whose_validation_is_not_a_number_is_the_worst(environment, tmp_path, monkeypatch):
    real, calls = module.fit, []

    def fit(run, environment, on_epoch_end=None):
        calls.append(run)
        result = real(run, environment)
        return dataclasses.replace(result, valid=float("nan")) if len(calls) == 1 else result

    monkeypatch.setattr(module, "fit", fit)
    best = search(tiny(), SPACE, 2, environment, tmp_path / "n.db")
    assert best.run == calls[1] and len(calls) == best.trials == 2


def test_an_interrupted_trial_is_done_again(environment, tmp_path, monkeypatch):
    whole = search(tiny(), SPACE, 2, environment, tmp_path / "whole.db")
    monkeypatch.setattr(
        module,
        "fit",
        lambda run, environment, on_epoch_end: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    with pytest.raises(KeyboardInterrupt):
        search(tiny(), SPACE, 2, environment, tmp_path / "cut.db")
    monkeypatch.undo()
    assert search(tiny(), SPACE, 2, environment, tmp_path / "cut.db") == whole


def test_values_that_another_process_trains_are_waited_for(
    environment, tmp_path, monkeypatch, capsys
):
    """Few choices are soon drawn twice."""
    run = with_settings(tiny(), {"hidden_size": 2})
    others = contextlib.ExitStack()
    others.enter_context(locked(run_folder(run, environment)))
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: others.close()))
    telling = dataclasses.replace(environment, progress=True)
    choices = {"hidden_size": Range(choices=(2,))}
    assert search(tiny(), choices, 1, telling, tmp_path / "w.db").run == run
    assert capsys.readouterr().err.count("waits for the process that trains in") == 1


def test_other_seeds_or_ranges_are_another_study(environment, tmp_path):
    study = tmp_path / "same.db"
    search(tiny(), SPACE, 1, environment, study)
    search(tiny(), SPACE, 1, environment, study, seeds=(0, 1))
    assert len(read_results(environment.results_path)) == 2
    search(tiny(), {**SPACE, "dt": Range(choices=(0.5,))}, 1, environment, study)
    assert len(read_results(environment.results_path)) == 3


def test_the_searches_of_two_runs_try_other_points(environment, tmp_path):
    for width in (4, 5):
        run = dataclasses.replace(tiny(), model_options={"hidden_size": width})
        search(run, {"lr": SPACE["lr"]}, 1, environment, tmp_path / "x.db")
    one, other = (result.run.lr for result in read_results(environment.results_path))
    assert one != other


@pytest.mark.parametrize("sequences", [True, False])
def test_dropout_is_not_drawn_where_it_cannot_act(sequences):
    # That of a sequence model acts between layers, that of a graph model also around the only one.
    space = {"num_layers": Range(choices=(1,)), "dropout": Range(0.2, 0.5)}
    trial = optuna.trial.FixedTrial({"num_layers": 1, "dropout": 0.3})
    drawn = module._all_drawn(trial, space, sequences)
    assert drawn == {"num_layers": 1, "dropout": 0.0 if sequences else 0.3}


def test_nothing_is_chosen_where_all_diverged(environment, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    def fit(run, environment, on_epoch_end=None):
        raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)

    monkeypatch.setattr(module, "fit", fit)
    with pytest.raises(ValueError, match="2 trials that all diverged; narrow the ranges"):
        search(tiny(), SPACE, 2, environment, tmp_path / "x.db")


def slow(monkeypatch, values):
    """Trains nothing: trial i reports values[i] after every one of six epochs."""
    calls = []

    def fit(run, environment, on_epoch_end=None):
        calls.append(run)
        value = values[len(calls) - 1]
        for epoch in range(1, 7):
            epochs.append((len(calls) - 1, epoch))
            if on_epoch_end is not None:
                on_epoch_end(epoch, {"valid": value})
        return dataclasses.replace(real, valid=value)

    epochs = []
    real = make_a_result()
    monkeypatch.setattr(module, "fit", fit)
    return epochs


def make_a_result():
    with tempfile.TemporaryDirectory() as folder:
        return real_fit(tiny(), RunEnvironment(out=folder, progress=False))


def test_trials_that_fall_behind_are_stopped(environment, tmp_path, monkeypatch):
    run = dataclasses.replace(tiny(), epochs=6)
    values = [0.5, 0.4, 0.3, 0.2, 9.0, 0.1]
    epochs = slow(monkeypatch, values)
    best = search(run, SPACE, 6, environment, tmp_path / "p.db", sampler="tpe")
    done = [max(epoch for trial, epoch in epochs if trial == i) for i in range(6)]
    assert done == [6, 6, 6, 6, 2, 6]  # two epochs, a third of all, are given to each
    assert best.valid == 0.1 and best.trials == 6


def test_a_stopped_trial_is_not_done_again(environment, tmp_path, monkeypatch):
    run = dataclasses.replace(tiny(), epochs=6)
    epochs = slow(monkeypatch, [0.5, 0.4, 0.3, 0.2, 9.0, 0.1])
    search(run, SPACE, 5, environment, tmp_path / "p.db", sampler="tpe")
    best = search(run, SPACE, 6, environment, tmp_path / "p.db", sampler="tpe")
    assert best.trials == 6 and {trial for trial, _ in epochs} == set(range(6))


def test_random_trials_go_to_their_end(environment, tmp_path, monkeypatch):
    run = dataclasses.replace(tiny(), epochs=6)
    epochs = slow(monkeypatch, [0.5, 0.4, 0.3, 0.2, 9.0, 0.1])
    search(run, SPACE, 6, environment, tmp_path / "r.db")
    assert len(epochs) == 36


def test_one_layer_has_no_dropout(environment, tmp_path):
    space = {"num_layers": Range(choices=(1, 2)), "dropout": Range(0.2, 0.5)}
    search(tiny(), space, 8, environment, tmp_path / "l.db")
    found = [result.run.model_options for result in read_results(environment.results_path)]
    assert {options["num_layers"] for options in found} == {1, 2}
    assert all((options["dropout"] == 0) == (options["num_layers"] == 1) for options in found)
