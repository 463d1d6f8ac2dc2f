"""The search: values within ranges, the best by validation, continued as if never interrupted."""

import contextlib
import dataclasses
import math
import sys
from types import SimpleNamespace

import pytest

from anharmonic.nn.registry import model_kind
from anharmonic.train import Run, read_results, run_folder
from anharmonic.train.folder import locked
from anharmonic.train.losses import DivergedError
from anharmonic.train.trials import Range, search, space_around, with_settings

optuna = pytest.importorskip("optuna", reason="the search is Optuna's")

module = sys.modules["anharmonic.train.trials"]
TASK = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
RUN = Run("adding", "LEM", TASK, {"hidden_size": 4}, epochs=1)
SPACE = {
    "lr": Range(1e-3, 1e-1, log=True),
    "dt": Range(0.1, 1.0),
    "hidden_size": Range(choices=(2, 4)),
}


@pytest.mark.parametrize(
    ("task", "model"),
    [
        *(("digits", model) for model in ("LEM", "CoRNN", "UnICORNN", "LSTM", "GRU")),
        *(("cora", model) for model in ("GraphCON", "PlainGNN")),
    ],
)
def test_every_value_is_one_that_the_run_takes(task, model):
    run = Run(task, model, lr=0.01)
    for name, within in space_around(run).items():
        needs = name == "dropout" and model_kind(model) == "sequence"
        for value in within.choices or (within.low, within.high):
            with_settings(run, {name: value} | ({"num_layers": 2} if needs else {}))


@pytest.mark.parametrize(
    ("model", "options", "fixed", "absent", "present"),
    [
        ("LSTM", {}, [], {"dt"}, set()),
        ("UnICORNN", {"dt": [0.1, 0.2], "num_layers": 2}, [], {"dt"}, set()),
        # Dropout acts between layers.
        ("LEM", {"num_layers": 1}, ["lr", "num_layers"], {"lr", "num_layers", "dropout"}, {"dt"}),
        ("LEM", {"num_layers": 2}, ["num_layers"], {"num_layers"}, {"dropout"}),
    ],
)
def test_what_is_fixed_or_has_no_single_value_is_not_searched(
    model, options, fixed, absent, present
):
    space = space_around(Run("digits", model, model_options=options), fixed=fixed)
    assert not absent & set(space) and present <= set(space)


def test_the_best_is_that_of_validation_and_a_continued_search_draws_the_same(
    environment, tmp_path
):
    whole = search(RUN, SPACE, 3, environment, tmp_path / "a" / "study.db")
    search(RUN, SPACE, 1, environment, tmp_path / "two.db")
    assert search(RUN, SPACE, 3, environment, tmp_path / "two.db") == whole
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
    best = search(RUN, SPACE, 1, environment, study, seeds=(0, 1))
    results = read_results(environment.results_path)
    assert sorted(result.run.seed for result in results) == [0, 1]
    assert best.valid == pytest.approx(sum(result.valid for result in results) / 2)
    search(RUN, SPACE, 1, environment, study, seeds=(2,))
    search(RUN, {**SPACE, "dt": Range(choices=(0.5,))}, 1, environment, study)
    wider = dataclasses.replace(RUN, model_options={"hidden_size": 5})
    search(wider, SPACE, 1, environment, study)
    rates = [result.run.lr for result in read_results(environment.results_path)]
    assert len(rates) == 5 and rates[-1] not in rates[:-1]


def test_values_that_another_process_trains_are_waited_for(
    environment, tmp_path, monkeypatch, capsys
):
    """Few choices are soon drawn twice."""
    run, choices = with_settings(RUN, {"hidden_size": 2}), {"hidden_size": Range(choices=(2,))}
    others = contextlib.ExitStack()
    others.enter_context(locked(run_folder(run, environment)))
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: others.close()))
    telling = dataclasses.replace(environment, progress=True)
    assert search(RUN, choices, 1, telling, tmp_path / "w.db").run == run
    assert capsys.readouterr().err.count("waits for the process that trains in") == 1


@pytest.mark.parametrize(
    ("sequences", "layers", "dropout"), [(True, 1, 0.0), (True, 2, 0.3), (False, 1, 0.3)]
)
def test_dropout_is_not_drawn_where_it_cannot_act(sequences, layers, dropout):
    # That of a sequence model acts between layers, that of a graph model also around the only one.
    space = {"num_layers": Range(choices=(1, 2)), "dropout": Range(0.2, 0.5)}
    trial = optuna.trial.FixedTrial({"num_layers": layers, "dropout": 0.3})
    drawn = module._all_drawn(trial, space, sequences)
    assert drawn == {"num_layers": layers, "dropout": dropout}


@pytest.fixture
def fake_fit(monkeypatch):
    """Trains nothing: trial i diverges or reports values[i] after every epoch.

    Gives the runs and the number of epochs of each.
    """

    def install(*values):
        runs, epochs = [], [0] * len(values)

        def fit(run, environment, task=None, on_epoch_end=None):
            trial, value = len(runs), values[len(runs)]
            runs.append(run)
            if value is None:
                raise DivergedError("nan", step=0, epoch=1, value=math.nan, lr=1.0)
            for epochs[trial] in range(1, run.epochs + 1):
                if on_epoch_end is not None:
                    on_epoch_end(epochs[trial], {"valid": value})
            return SimpleNamespace(valid=value)

        monkeypatch.setattr(module, "fit", fit)
        return runs, epochs

    return install


def test_trials_that_diverge_or_are_not_a_number_are_the_worst(environment, tmp_path, fake_fit):
    runs, _ = fake_fit(None, math.nan, 0.5)
    best = search(RUN, SPACE, 3, environment, tmp_path / "d.db")
    assert best.run == runs[2] and len(runs) == best.trials == 3
    fake_fit(None)
    with pytest.raises(ValueError, match="trials that all diverged; narrow the ranges"):
        search(RUN, SPACE, 1, environment, tmp_path / "x.db")


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_trials_that_fall_behind_are_stopped_and_not_done_again(
    environment, tmp_path, fake_fit, sampler
):
    run = dataclasses.replace(RUN, epochs=3)
    _, epochs = fake_fit(0.5, 0.4, 0.3, 0.2, 9.0, 0.1)  # the fifth is worse than the median
    search(run, SPACE, 5, environment, tmp_path / "p.db", sampler=sampler)
    best = search(run, SPACE, 6, environment, tmp_path / "p.db", sampler=sampler)
    # One epoch, a third of all, is given to each; random trials go to their end.
    assert epochs == [3, 3, 3, 3, 1 if sampler == "tpe" else 3, 3]
    assert best.valid == 0.1 and best.trials == 6
