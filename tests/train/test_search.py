"""The search: values within ranges, the best by validation, continued as if never interrupted."""

import pytest

from anharmonic.train import search as module
from anharmonic.train.results import read
from anharmonic.train.run import Place, Run
from anharmonic.train.search import Range, changed, sweep

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")

TASK = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
SPACE = {
    "lr": Range(1e-3, 1e-1, log=True),
    "dt": Range(0.1, 1.0),
    "hidden_size": Range(choices=(2, 4)),
}


@pytest.fixture
def place(tmp_path):
    return Place(out=tmp_path / "runs", progress=False)


def tiny():
    return Run("adding", "LEM", TASK, {"hidden_size": 4}, epochs=1)


def test_the_best_trial_is_the_one_with_the_best_validation(place, tmp_path):
    best = sweep(tiny(), SPACE, 4, place, tmp_path / "a" / "study.journal")
    results = read(place.results_path)
    assert len(results) == best.trials == 4
    assert best.valid == min(result.valid for result in results)
    assert best.run.hash in {result.hash for result in results}
    for result in results:
        assert 1e-3 <= result.run.lr <= 1e-1
        assert result.run.model_options["hidden_size"] in (2, 4)


def test_a_continued_search_draws_what_it_would_have(place, tmp_path):
    whole = sweep(tiny(), SPACE, 4, place, tmp_path / "one.journal")
    sweep(tiny(), SPACE, 2, place, tmp_path / "two.journal")
    parts = sweep(tiny(), SPACE, 4, place, tmp_path / "two.journal")
    assert parts == whole
    assert len(read(place.results_path)) == 4  # the same runs, trained once


def test_several_seeds_are_averaged(place, tmp_path):
    best = sweep(tiny(), SPACE, 1, place, tmp_path / "s.journal", seeds=(0, 1, 2))
    results = read(place.results_path)
    assert sorted(result.run.seed for result in results) == [0, 1, 2]
    assert best.valid == pytest.approx(sum(result.valid for result in results) / 3)


def test_a_diverged_trial_is_the_worst(place, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    real, calls = module.fit, []

    def fit(run, place):
        calls.append(run)
        if len(calls) == 1:
            raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)
        return real(run, place)

    monkeypatch.setattr(module, "fit", fit)
    best = sweep(tiny(), SPACE, 2, place, tmp_path / "d.journal")
    assert best.run == calls[1]


def test_an_interrupted_trial_is_done_again(place, tmp_path, monkeypatch):
    whole = sweep(tiny(), SPACE, 2, place, tmp_path / "whole.journal")
    monkeypatch.setattr(module, "fit", lambda run, place: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        sweep(tiny(), SPACE, 2, place, tmp_path / "cut.journal")
    monkeypatch.undo()
    assert sweep(tiny(), SPACE, 2, place, tmp_path / "cut.journal") == whole


def test_other_seeds_or_ranges_are_another_study(place, tmp_path):
    journal = tmp_path / "same.journal"
    sweep(tiny(), SPACE, 1, place, journal)
    sweep(tiny(), SPACE, 1, place, journal, seeds=(0, 1))
    assert len(read(place.results_path)) == 2
    sweep(tiny(), {**SPACE, "dt": Range(choices=(0.5,))}, 1, place, journal)
    assert len(read(place.results_path)) == 3


def test_nothing_is_chosen_where_all_diverged(place, tmp_path, monkeypatch):
    from anharmonic.train.losses import DivergedError

    def fit(run, place):
        raise DivergedError("nan", step=0, epoch=1, value=float("nan"), lr=1.0)

    monkeypatch.setattr(module, "fit", fit)
    with pytest.raises(ValueError, match="2 trials that all diverged; narrow the ranges"):
        sweep(tiny(), SPACE, 2, place, tmp_path / "x.journal")


def test_bad_arguments(place, tmp_path):
    with pytest.raises(ValueError, match="low must be below high"):
        Range(1.0, 1.0)
    with pytest.raises(ValueError, match="above 0 if log"):
        Range(0.0, 1.0, log=True)
    with pytest.raises(ValueError, match="space and seeds must hold something"):
        sweep(tiny(), {}, 1, place, tmp_path / "x.journal")
    with pytest.raises(ValueError, match="trials must be an int >= 1"):
        sweep(tiny(), SPACE, 0, place, tmp_path / "x.journal")
    with pytest.raises(ValueError, match="sampler must be one of"):
        sweep(tiny(), SPACE, 1, place, tmp_path / "x.journal", sampler="grid")
    with pytest.raises(ValueError, match="a key of model_options"):
        changed(tiny(), {"dampness": 1.0})
    with pytest.raises(ValueError, match="a key of model_options"):
        sweep(tiny(), {"dampness": Range()}, 1, place, tmp_path / "x.journal")
