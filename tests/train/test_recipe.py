import dataclasses

import numpy as np
import pytest

from anharmonic.data import FileTask, file_digest
from anharmonic.data.digits import Digits
from anharmonic.data.registry import make_task
from anharmonic.nn.registry import list_models
from anharmonic.train import Run, RunEnvironment, fit
from anharmonic.train.comparison import plan
from anharmonic.train.fit import _few_to_choose_by
from anharmonic.train.options import HIDDEN_SIZE
from anharmonic.train.recipe import (
    FILLED_OPTIONS,
    MODELS_WITH_STEPS,
    STEP_OPTIONS,
    DataFacts,
    fill,
    folds_of,
    recipe,
    refitted,
)


@pytest.fixture
def waves(tmp_path):
    """Writes two kinds of waves with a random phase and amplitude."""

    def write(count=60, steps=40, values=False, rare=False, parts=None, gap_in=None):
        rng, y = np.random.default_rng(0), np.arange(count) % 2
        t = np.arange(steps)[None, :, None] / steps
        phase, amplitude = rng.random((count, 1, 1)), 1 + 0.3 * rng.random((count, 1, 1))
        x = amplitude * np.sin(2 * np.pi * ((2 + 2 * y[:, None, None]) * t + phase))
        x += 0.1 * rng.standard_normal(x.shape)
        y = np.arange(count) % 6 // 5 if rare else 100.0 + 50.0 * x[:, -1, 0] if values else y
        arrays = {"x": x, "y": y}
        if parts:  # the rows of each
            arrays = {f"{k}_{n}": v[r].copy() for n, r in parts.items() for k, v in arrays.items()}
        if gap_in:
            arrays[gap_in][3, 2] = np.nan
        path = tmp_path / f"waves{len(list(tmp_path.iterdir()))}.npz"
        np.savez(path, **arrays)
        return path

    return write


def filled(model, path, **given):
    digest = {"sha256": file_digest(path)}
    given["task_options"] = digest | given.get("task_options", {})
    return fill(model, "file", given, RunEnvironment(file=path))


def test_facts_are_those_of_training(tmp_path):
    parts = {"x_train": np.zeros((6, 9, 1)), "x_test": np.zeros((2, 3, 1))}
    np.savez(tmp_path / "b.npz", **parts, y_train=np.arange(6) % 2, y_test=np.arange(2))
    assert DataFacts.of(FileTask(tmp_path / "b.npz")) == DataFacts(sequences=5, steps=9)
    task = make_task("adding", {"length": 30, "valid_size": 5, "steps_per_epoch": 7})
    assert DataFacts.of(task) == DataFacts(sequences=350, steps=30)


@pytest.mark.parametrize("model", list_models("sequence"))
def test_every_model_gets_a_complete_run_of_settings_whose_flags_are_open(waves, model):
    """A flag with its default typed would count as left open otherwise."""
    others = [waves(gap_in="x"), waves(values=True), waves(steps=2000)]
    for path in (waves(), *(others if model in ("LEM", "CoRNN", "LSTM") else [])):
        found = filled(model, path)
        assert found.run.model == model and found.run.schedule != "constant"
        assert Run.from_json(found.run.to_json()) == found.run
        places = vars(found.run) | found.run.model_options | found.run.task_options
        assert found.chosen.items() <= places.items()
        assert all(name in found.describe() for name in found.chosen)
        names = found.chosen.keys() - {f.name for f in dataclasses.fields(Run)}
        assert names <= FILLED_OPTIONS
        assert (model in MODELS_WITH_STEPS) == bool(names & STEP_OPTIONS)


PARTS = {"train": slice(10), "valid": slice(10, 20), "test": slice(20, 30)}
VALIDATED = {"valid_share": None, "select": "best"}
GIVEN = {"lr": 0.1, "epochs": 3, "schedule": "cosine", "clip_norm": None, "readout": "last"}


@pytest.mark.parametrize(
    ("data", "given", "expected"),
    [
        ({}, {}, {"missing": None, "metric": None, "valid_share": 0, "select": "last"}),
        ({"count": 800}, {}, VALIDATED),
        # Few sequences do without validation unless it is wanted.
        ({}, {"select": "best"}, VALIDATED),
        ({}, {"patience": 3}, VALIDATED),
        ({}, {"task_options": {"folds": 3}}, VALIDATED),
        ({}, {"task_options": {"valid_share": 0.2}}, {"valid_share": 0.2, "select": "best"}),
        ({}, {"task_options": {"valid_share": 0.0}}, {"valid_share": 0.0, "select": "last"}),
        ({"parts": PARTS}, {}, VALIDATED),
        ({"gap_in": "x"}, {}, {"missing": "forward"}),
        *(({"parts": PARTS, "gap_in": f"x_{n}"}, {}, {"missing": "forward"}) for n in PARTS),
        ({"values": True}, {}, {"scale_target": True, "label_smoothing": 0, "readout": "last"}),
        ({"rare": True}, {}, {"metric": "balanced_accuracy"}),
        ({"rare": True}, {"task_options": {"metric": "accuracy"}}, {"metric": "accuracy"}),
        ({}, GIVEN, GIVEN),
        ({}, {"model_options": {"dt": 0.7}}, {"dt": 0.7}),
        ({}, {}, {"chrono_length": None}),
        ({"values": True, "steps": 90}, {}, {"dt": 0.5, "chrono_length": 90}),
        ({"steps": 90}, {"readout": "last"}, {"chrono_length": 90}),
        ({"values": True}, {"model_options": {"multiscale": False}}, {"chrono_length": None}),
        ({}, {"task_options": {"difference": False}}, {"difference": False}),
        *(
            ({"count": 24, "steps": steps}, {}, {"patch": patch})
            for steps, patch in ((899, 1), (901, 2), (1200, 2), (1499, 2), (1501, 3), (2000, 3))
        ),
    ],
)
def test_settings_follow_from_the_data_and_what_is_given_stays(waves, data, given, expected):
    made = filled("LEM", waves(**data), **given)
    found = vars(made.run) | made.run.task_options | made.run.model_options
    assert {name: found.get(name) for name in expected} == expected
    asked = set(given).union(*(value for value in given.values() if isinstance(value, dict)))
    assert not asked & set(made.chosen)


@pytest.mark.parametrize("model", ["LEM", "resonators"])
def test_what_few_sequences_mean_is_said(waves, model):
    few, many, resonators = waves(60), waves(800), "train resonators FILE"
    said = "fewer than 300 sequences or windows would remain for training"
    assert said in filled(model, few).describe()
    assert said not in filled(model, many).describe()
    assert "validation" not in filled(model, few, task_options={"valid_share": 0.2}).describe()
    own = filled(model, waves(30, parts=PARTS))
    assert "set aside" not in own.describe() and own.task.sizes == dict.fromkeys(PARTS, 10)
    assert (resonators in filled(model, few).describe()) == (model == "LEM")
    windows = filled(model, few, task_options={"window": 5, "stride": 1}).describe()
    assert ("training recordings per class, " in windows) == (model == "LEM")  # not windows
    for other in (waves(300), waves(60, values=True)):
        assert resonators not in filled(model, other).describe()


def test_uneven_times_are_no_time_steps_of_a_model_without_one(waves, tmp_path):
    arrays = dict(np.load(waves()))
    np.savez(tmp_path / "uneven.npz", **arrays, elapsed=np.random.default_rng(0).random((60, 40)))
    for model, said in (("LSTM", "time steps of LSTM, which has none"), ("resonators", "got --")):
        with pytest.raises(ValueError, match=rf"{said}.*say --elapsed channel"):
            filled(model, tmp_path / "uneven.npz", task_options={"elapsed": "step"})


def test_the_budget_is_one_of_steps(waves):
    runs = {count: filled("LEM", waves(count)).run for count in (60, 120, 240)}
    steps = [run.epochs * -(-0.85 * n // run.batch_size) for n, run in runs.items()]
    assert max(steps) < 1.2 * min(steps)
    short = {"length": 5, "valid_size": 4, "test_size": 4, "steps_per_epoch": 40}
    assert recipe("LEM", make_task("adding", short)).run.epochs == 50
    assert recipe("NeuralODE", make_task("breast-cancer")).chosen == {}  # no sequences


def test_folds_and_refit(waves, tmp_path):
    path = waves()
    small = {"epochs": 1, "model_options": {"hidden_size": 4}}
    run = filled("LEM", path, select="best", **small, task_options={"folds": 3}).run
    environment = RunEnvironment(out=tmp_path / "runs", file=path, progress=False)
    task = run.make_task(environment)
    assert "or cross-validate with --folds 5" in _few_to_choose_by(
        filled("LEM", path, select="best", **small).run, task
    )
    assert not _few_to_choose_by(run, task)  # that advice was followed
    results = [fit(one, environment) for one in folds_of(run, 3)]
    assert len({result.hash for result in results}) == 3
    again = refitted([dataclasses.replace(results[0], best_epoch=n) for n in (2, 4)])
    assert (again.epochs, again.select) == (3, "last")
    assert {"folds", "fold"}.isdisjoint(again.task_options)
    assert again.make_task(environment).sizes == {"train": 51, "valid": 0, "test": 9}


@pytest.mark.fast("LEM")
@pytest.mark.parametrize("model", ["LEM", "LSTM", "CoRNN", "UnICORNN", "FastGRNN"])
def test_one_width_for_whoever_leaves_it_open(waves, model):
    pytest.importorskip("sklearn", reason="the estimators are scikit-learn's")
    from anharmonic.estimators import SequenceClassifier

    run = filled(model, waves()).run
    x = np.random.default_rng(0).normal(size=(12, 8))
    fitted = SequenceClassifier(model, max_steps=1).fit(x, np.arange(12) % 2)
    assert run.model_options["hidden_size"] == fitted.model_.hidden_size == HIDDEN_SIZE == 64


def test_the_recipe_sets_the_options_that_a_task_recommends(monkeypatch):
    monkeypatch.setattr(Digits, "recommended", {"split_seed": 7})
    for given, expected in (({}, 7), ({"split_seed": 3}, 3)):
        made = fill("LEM", "digits", {"task_options": given}, RunEnvironment())
        assert made.run.task_options == {"split_seed": expected}
        assert made.task.split_seed == expected
    (row, *_) = plan("digits", RunEnvironment(), models=["LEM"], seeds=[0]).rows
    assert row.run.task_options == {"split_seed": 7}
    assert Run("digits", "LEM").task_options == {}
