"""The search: values within ranges, the best by validation, continued as if never interrupted."""

import contextlib
import dataclasses
import math
import sys
from types import SimpleNamespace

import pytest

from anharmonic.train.folder import locked, run_folder
from anharmonic.train.losses import DivergedError
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


def test_the_best_is_that_of_validation_and_a_continued_search_draws_the_same(
    environment, tmp_path
):
    whole = search(tiny(), SPACE, 3, environment, tmp_path / "a" / "study.db")
    search(tiny(), SPACE, 1, environment, tmp_path / "two.db")
    assert search(tiny(), SPACE, 3, environment, tmp_path / "two.db") == whole
    results = read_results(environment.results_path)
    assert len(results) == whole.trials == 3  # the same runs, trained once
    assert whole.valid == min(result.valid for result in results)
    assert whole.run.hash in {result.hash for result in results}
    for result in results:
        assert 1e-3 <= result.run.lr <= 1e-1
        assert result.run.model_options["hidden_size"] in (2, 4)


def test_several_seeds_are_averaged_and_other_seeds_or_ranges_are_another_study(
    environment, tmp_path
):
    study = tmp_path / "s.db"
    best = search(tiny(), SPACE, 1, environment, study, seeds=(0, 1))
    results = read_results(environment.results_path)
    assert sorted(result.run.seed for result in results) == [0, 1]
    assert best.valid == pytest.approx(sum(result.valid for result in results) / 2)
    search(tiny(), SPACE, 1, environment, study, seeds=(2,))
    search(tiny(), {**SPACE, "dt": Range(choices=(0.5,))}, 1, environment, study)
    assert len(read_results(environment.results_path)) == 4


@pytest.fixture
def fake_fit(monkeypatch):
    """Trains nothing: trial i diverges or reports values[i] after every epoch.

    Gives the runs and the pairs of trial and epoch.
    """

    def install(*values):
        runs, epochs = [], []

        def fit(run, environment, task=None, on_epoch_end=None):
            runs.append(run)
            value = values[len(runs) - 1]
            if value is None:
                raise DivergedError("nan", step=0, epoch=1, value=math.nan, lr=1.0)
            for epoch in range(1, run.epochs + 1):
                epochs.append((len(runs) - 1, epoch))
                if on_epoch_end is not None:
                    on_epoch_end(epoch, {"valid": value})
            return SimpleNamespace(valid=value)

        monkeypatch.setattr(module, "fit", fit)
        return runs, epochs

    return install


def test_trials_that_diverge_or_are_not_a_number_are_the_worst(environment, tmp_path, fake_fit):
    runs, _ = fake_fit(None, math.nan, 0.5)
    best = search(tiny(), SPACE, 3, environment, tmp_path / "d.db")
    assert best.run == runs[2] and len(runs) == best.trials == 3


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


def test_the_searches_of_two_runs_try_other_points(environment, tmp_path):
    for width in (4, 5):
        run = dataclasses.replace(tiny(), model_options={"hidden_size": width})
        search(run, {"lr": SPACE["lr"]}, 1, environment, tmp_path / "x.db")
    one, other = (result.run.lr for result in read_results(environment.results_path))
    assert one != other


@pytest.mark.parametrize(
    ("sequences", "layers", "dropout"), [(True, 1, 0.0), (True, 2, 0.3), (False, 1, 0.3)]
)
def test_dropout_is_not_drawn_where_it_cannot_act(sequences, layers, dropout):
    # That of a sequence model acts between layers, that of a graph model also around the only one.
    space = {"num_layers": Range(choices=(1, 2)), "dropout": Range(0.2, 0.5)}
    trial = optuna.trial.FixedTrial({"num_layers": layers, "dropout": 0.3})
    drawn = module._all_drawn(trial, space, sequences)
    assert drawn == {"num_layers": layers, "dropout": dropout}


def test_nothing_is_chosen_where_all_diverged(environment, tmp_path, fake_fit):
    fake_fit(None)
    with pytest.raises(ValueError, match="trials that all diverged; narrow the ranges"):
        search(tiny(), SPACE, 1, environment, tmp_path / "x.db")


# The fifth is worse than the median.
VALUES = (0.5, 0.4, 0.3, 0.2, 9.0, 0.1)


def test_trials_that_fall_behind_are_stopped_and_not_done_again(environment, tmp_path, fake_fit):
    run = dataclasses.replace(tiny(), epochs=3)
    _, epochs = fake_fit(*VALUES)
    search(run, SPACE, 5, environment, tmp_path / "p.db", sampler="tpe")
    best = search(run, SPACE, 6, environment, tmp_path / "p.db", sampler="tpe")
    done = [sum(trial == i for trial, _ in epochs) for i in range(6)]
    assert done == [3, 3, 3, 3, 1, 3]  # one epoch, a third of all, is given to each
    assert best.valid == 0.1 and best.trials == 6


def test_random_trials_go_to_their_end(environment, tmp_path, fake_fit):
    _, epochs = fake_fit(*VALUES)
    search(dataclasses.replace(tiny(), epochs=3), SPACE, 5, environment, tmp_path / "r.db")
    assert len(epochs) == 15
