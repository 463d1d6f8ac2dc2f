"""Resonators in a comparison."""

import numpy as np
import pytest

from anharmonic.data import make_task
from anharmonic.estimators import RESONATORS, ResonatorClassifier
from anharmonic.train import Run, RunEnvironment, compare
from anharmonic.train.others import why_not


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


def quick(environment, task="file", **given):
    options = {"models": [], "others": [RESONATORS], "seeds": [0], "say": lambda line: None}
    return compare(task, environment, given=given, **options)


def test_classes_are_found_in_sequences_of_unequal_lengths(tmp_path):
    x, speed = speeds(120)
    found = quick(saved(tmp_path, x, np.where(speed < 0.5, "slow", "fast")))
    assert found.metric == "accuracy" and found.standings[0].test.mean > found.trivial + 30


def test_they_are_the_classifier(tmp_path):
    x, speed = speeds(60)
    environment = saved(tmp_path, x, np.where(speed < 0.5, "slow", "fast"))
    found = quick(environment)
    (row,) = found.plan.others
    task = row.run.make_task(environment)
    module, test = row.fitted(task), task.loaders(0, 256).test[0]
    train = task.loaders(0, 256).train(0)[0]

    def arrays(batch):
        return [a[:n].T.numpy() for a, n in zip(batch.x, batch.lengths.tolist(), strict=True)]

    model = ResonatorClassifier(random_state=0).fit(arrays(train), train.y.numpy())
    shares = module(*test.inputs).softmax(1).numpy()
    np.testing.assert_allclose(shares, model.predict_proba(arrays(test)), atol=1e-6)
    right = (model.predict(arrays(test)) == test.y.numpy()).mean()
    assert found.standings[0].test.mean == pytest.approx(100 * right)


def test_values_and_forecasts(tmp_path):
    x, speed = speeds(120)
    found = quick(saved(tmp_path, x, speed + np.float64(0.01)), task_options={"target": "value"})
    assert found.metric == "rmse" and found.standings[0].test.mean < 0.7 * found.trivial
    t = np.arange(600)
    environment = RunEnvironment(
        out=tmp_path / "next", file=tmp_path / "next.npz", threads=1, progress=False
    )
    np.savez(environment.file, x=np.stack([np.sin(0.3 * t), np.cos(0.5 * t)], 1)[None])
    found = quick(environment, task_options={"horizon": 5, "window": 30})
    assert found.standings[0].test.mean < 0.2 * found.trivial


def test_a_class_without_a_training_sequence_is_never_predicted():
    task = make_task("digits")
    batch = task.loaders(0, 200).train(0)[0]
    known = batch.y != 3
    some = batch._replace(x=batch.x[known], y=batch.y[known])
    module = RESONATORS.fit(task, [some], Run("digits", "LEM"))
    scores = module(batch.x)
    assert scores.shape == (200, 10) and (scores.argmax(1) != 3).all()
    assert (scores[known].argmax(1) == some.y).float().mean() > 0.9


def test_what_they_cannot_do_is_said():
    steps = why_not(RESONATORS, make_task("adding"))
    assert "adding" in steps and steps.startswith("resonators are left out")
    assert why_not(RESONATORS, make_task("digits")) == ""
