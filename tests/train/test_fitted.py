"""Models that are fitted in one pass are models: runs, results, predictions, comparisons."""

import dataclasses
import hashlib
import json
import sys

import numpy as np
import pytest

import anharmonic as ah
from anharmonic.data import make_task
from anharmonic.nn.resonators.draw import DEFAULT_POOLS
from anharmonic.train import Run, RunEnvironment, compare, fill, fit, predict, read_results, recipe
from anharmonic.train.comparison import plan
from anharmonic.train.options import frozen_defaults
from anharmonic.train.results import read_old_fitted

pytest.importorskip("sklearn")
from anharmonic.estimators import ResonatorClassifier, SequenceClassifier


def speeds(number, seed=0):
    """Sines of two speeds, of unequal lengths, with noise."""
    rng = np.random.default_rng(seed)
    speed = rng.choice([0.3, 0.6], number)
    lengths = rng.integers(40, 60, number)
    x = [np.sin(s * np.arange(n) + rng.uniform(0, 6)) for s, n in zip(speed, lengths, strict=True)]
    return [(one + 0.5 * rng.normal(size=len(one))).astype("f4")[:, None] for one in x], speed


def saved(tmp_path, x, y):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in x])])
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.concatenate(x), offsets=offsets, y=y)
    return RunEnvironment(out=tmp_path / "runs", file=path, threads=1, progress=False)


@pytest.fixture
def environment(tmp_path):
    x, speed = speeds(120)
    return saved(tmp_path, x, np.where(speed < 0.5, "slow", "fast"))


FEW = {"num_oscillators": 50}


@pytest.fixture
def trained(filled):
    """Trains on a file: the result, its folder and the task."""
    return lambda environment, **options: filled(
        "resonators", {"task_options": options, "model_options": FEW}, environment
    )


def quick(environment, **changes):
    say = [].append
    return compare("file", environment, models=["resonators"], seeds=[0], say=say, **changes)


def test_a_run_has_a_result_and_predictions_and_is_the_classifier(environment, trained):
    result, folder, task = trained(environment)
    assert result.test > result.trivial + 30 and result.device == "cpu"
    assert read_results(environment.results_path) == [result]
    model = ah.from_pretrained(folder / "best")
    assert isinstance(model, ah.nn.Resonators) and result.parameters == model.num_fitted
    found = predict(folder, environment.file)
    assert found.class_names == ("fast", "slow") and len(found.labels) == 120
    np.testing.assert_allclose(found.values.sum(1), 1, rtol=1e-5)
    # It is finished, and known: nothing is fitted again.
    assert fit(result.run, environment) == result

    def arrays(batch):
        return [a[:n].T.numpy() for a, n in zip(batch.x, batch.lengths.tolist(), strict=True)]

    train, test = task.loaders(0, 256).train(0)[0], task.loaders(0, 256).test[0]
    shares = model(*test.inputs).softmax(1).numpy()
    model = ResonatorClassifier(**FEW, random_state=0).fit(arrays(train), train.y.numpy())
    np.testing.assert_allclose(shares, model.predict_proba(arrays(test)), atol=1e-6)
    right = (model.predict(arrays(test)) == test.y.numpy()).mean()
    assert result.test == pytest.approx(100 * right)


def test_values_and_forecasts(tmp_path, trained):
    x, speed = speeds(120)
    environment = saved(tmp_path, x, speed + np.float64(0.01))
    result, *_ = trained(environment, target="value")
    assert result.metric == "rmse" and result.test < 0.7 * result.trivial
    t = np.arange(600)
    environment = dataclasses.replace(environment, file=tmp_path / "next.npz")
    np.savez(environment.file, x=np.stack([np.sin(0.3 * t), np.cos(0.5 * t)], 1)[None])
    result, *_ = trained(environment, horizon=5, window=30)
    assert result.test < 0.2 * result.trivial


def test_a_class_without_a_training_sequence_is_never_predicted():
    task = make_task("digits")
    batch = task.loaders(0, 200).train(0)[0]
    known = batch.y != 3
    module = Run("digits", "Resonators", model_options=FEW).build_model(task)
    module.fit(batch.x[known].numpy(), batch.y[known].numpy(), seed=0)
    scores = module(batch.x)
    assert scores.shape == (200, 10) and (scores.argmax(1) != 3).all()
    assert (scores[known].argmax(1) == batch.y[known]).float().mean() > 0.9


def test_what_they_cannot_do_is_said(tmp_path):
    rows = [f"{i},{t},{t % 3},{'ab'[t % 2]}" for i in range(9) for t in range(8)]
    (tmp_path / "log.csv").write_text("id,time,v,label\n" + "\n".join(rows))
    here = RunEnvironment(file=tmp_path / "log.csv")
    for task, said in (
        ("adding", r"the task of Resonators must have .*got adding"),
        ("file", r"got one of 2 classes per step; .* --labels sequence tells"),
    ):
        with pytest.raises(ValueError, match=said):
            fill("resonators", task, {}, here if task == "file" else RunEnvironment())
    made = plan("adding", RunEnvironment(), models=None)
    assert "Resonators" not in made.recipes and made.refused == ()
    assert made.notes[0].startswith("Resonators is left out")
    assert plan("adding", RunEnvironment(), models=["lem", "resonators"]).refused
    with pytest.raises(ValueError, match=r"call anharmonic\.nn\.Resonators"):
        ah.SequenceModel("Resonators", 1, 2, hidden_size=3)


def test_every_fold_validates_once(environment):
    found = quick(environment, folds=2, given={"class_weights": "balanced"})
    assert found.judged_by == "validation" and len(found.standings[0].results) == 2
    assert found.standings[0].results[0].run.class_weights == "balanced"


def test_it_is_diagnosed_without_gradients_and_can_be_searched(cli, environment, trained):
    result, folder, _ = trained(environment)
    code, out, err = cli("diagnose", folder, "--file", environment.file)
    assert code == 0 and "balanced accuracy" in out and "gradients" not in out + err
    with pytest.raises(ValueError, match="Resonators"):
        fit(result.run, dataclasses.replace(environment, diagnose=("gradients",)))
    pytest.importorskip("optuna")
    code, out, err = cli("search", "resonators", environment.file, "--trials", "1")
    assert code == 0 and "anharmonic train resonators" in out and "num_oscillators" in err


def test_it_is_an_estimator():
    x, speed = speeds(60)
    model = SequenceClassifier("Resonators", random_state=0, model_options=FEW)
    model.fit([one.T for one in x[:40]], speed[:40] < 0.5)
    assert model.score([one.T for one in x[40:]], speed[40:] < 0.5) > 0.9
    assert model.run_.model == model.result_.run.model == "Resonators"


def test_fewer_oscillators_for_many_sequences(monkeypatch):
    monkeypatch.setattr(sys.modules["anharmonic.train.recipe"], "_MOST_RESPONSES", 100_000)
    made = recipe("resonators", make_task("digits"))
    number = max(50, 100_000 // make_task("digits").sizes["train"])
    assert made.run.model_options == {"num_oscillators": number, "pools": list(DEFAULT_POOLS)}
    assert made.chosen["num_oscillators"] == number and "pools" not in made.chosen


def test_a_line_of_version_0_1_counts_for_the_pools_of_that_version(environment):
    run = plan("file", environment, models=["resonators"], seeds=[0]).rows[0].run
    settings = {"num_oscillators": 1000, "at_most": 10_000_000}
    facts = ["resonators", settings, "file", run.task_options | {"difference": False}, 0, "none"]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
    line = {
        "other": "resonators", "hash": digest, "test": 12.5, "valid": None, "metric": "accuracy",
        "higher_is_better": True, "parameters": 7, "seconds": 1.0, "trivial": 50.0,
        "device": "cpu", "threads": 1, "hardware": "x", "started": "2026-01-01", "curve": {},
    }  # fmt: skip
    path = environment.results_path.with_name("results-others.jsonl")
    path.parent.mkdir()
    path.write_text(json.dumps(line) + '\n{"hash": "cut sh')
    old = dataclasses.replace(run, model_options={})  # the frozen defaults are those of 0.1
    pools = frozen_defaults("model", "Resonators")["pools"]
    assert pools == ["share", "run", "position", "largest", "end"]
    assert [one.test for one in read_old_fitted(environment.results_path, [old, run])] == [12.5]
    assert read_old_fitted(environment.results_path, [dataclasses.replace(old, seed=1)]) == []
    assert quick(environment).standings[0].test.mean != 12.5
