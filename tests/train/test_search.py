"""The search: values within ranges, the best by validation, continued as if never interrupted."""

import sys

import pytest

from anharmonic.train.results import read_results
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.search import Range, search, with_settings

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")

module = sys.modules["anharmonic.train.search"]  # (the package's name is the function)
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
    best = search(tiny(), SPACE, 4, environment, tmp_path / "a" / "study.journal")
    results = read_results(environment.results_path)
    assert len(results) == best.trials == 4
    assert best.valid == min(result.valid for result in results)
    assert best.run.hash in {result.hash for result in results}
    for result in results:
        assert 1e-3 <= result.run.lr <= 1e-1
        assert result.run.model_options["hidden_size"] in (2, 4)


def test_a_continued_search_draws_what_it_would_have(environment, tmp_path):
    whole = search(tiny(), SPACE, 4, environment, tmp_path / "one.journal")
    search(tiny(), SPACE, 2, environment, tmp_path / "two.journal")
    parts = search(tiny(), SPACE, 4, environment, tmp_path / "two.journal")
    assert parts == whole
    assert len(read_results(environment.results_path)) == 4  # the same runs, trained once


def test_several_seeds_are_averaged(environment, tmp_path):
    best = search(tiny(), SPACE, 1, environment, tmp_path / "s.journal", seeds=(0, 1, 2))
    results = read_results(environment.results_path)
    assert sorted(result.run.seed for result in results) == [0, 1, 2]
    assert best.valid == pytest.approx(sum(result.valid for result in results) / 3)


def test_a_diverged_trial_is_the_worst(environment, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    real, calls = module.fit, []

    def fit(run, environment):
        calls.append(run)
        if len(calls) == 1:
            raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)
        return real(run, environment)

    monkeypatch.setattr(module, "fit", fit)
    best = search(tiny(), SPACE, 2, environment, tmp_path / "d.journal")
    assert best.run == calls[1]


def test_an_interrupted_trial_is_done_again(environment, tmp_path, monkeypatch):
    whole = search(tiny(), SPACE, 2, environment, tmp_path / "whole.journal")
    monkeypatch.setattr(
        module, "fit", lambda run, environment: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        search(tiny(), SPACE, 2, environment, tmp_path / "cut.journal")
    monkeypatch.undo()
    assert search(tiny(), SPACE, 2, environment, tmp_path / "cut.journal") == whole


def test_other_seeds_or_ranges_are_another_study(environment, tmp_path):
    journal = tmp_path / "same.journal"
    search(tiny(), SPACE, 1, environment, journal)
    search(tiny(), SPACE, 1, environment, journal, seeds=(0, 1))
    assert len(read_results(environment.results_path)) == 2
    search(tiny(), {**SPACE, "dt": Range(choices=(0.5,))}, 1, environment, journal)
    assert len(read_results(environment.results_path)) == 3


def test_nothing_is_chosen_where_all_diverged(environment, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    def fit(run, environment):
        raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)

    monkeypatch.setattr(module, "fit", fit)
    with pytest.raises(ValueError, match="2 trials that all diverged; narrow the ranges"):
        search(tiny(), SPACE, 2, environment, tmp_path / "x.journal")


def test_bad_arguments(environment, tmp_path):
    with pytest.raises(ValueError, match="low must be below high"):
        Range(1.0, 1.0)
    with pytest.raises(ValueError, match="above 0 if log"):
        Range(0.0, 1.0, log=True)
    with pytest.raises(ValueError, match="space and seeds must hold something"):
        search(tiny(), {}, 1, environment, tmp_path / "x.journal")
    with pytest.raises(ValueError, match="trials must be an int >= 1"):
        search(tiny(), SPACE, 0, environment, tmp_path / "x.journal")
    with pytest.raises(ValueError, match="sampler must be one of"):
        search(tiny(), SPACE, 1, environment, tmp_path / "x.journal", sampler="grid")
    with pytest.raises(ValueError, match="a key of model_options"):
        with_settings(tiny(), {"dampness": 1.0})
    with pytest.raises(ValueError, match="a key of model_options"):
        search(tiny(), {"dampness": Range()}, 1, environment, tmp_path / "x.journal")
