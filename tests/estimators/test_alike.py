"""What networks and resonators do alike."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from anharmonic import save_pretrained
from anharmonic.estimators import (
    ResonatorClassifier,
    ResonatorRegressor,
    ResonatorTransformer,
    SequenceClassifier,
    SequenceRegressor,
)

BRIEF = {"hidden_size": 4, "max_steps": 4, "random_state": 0}
FEW = {"num_oscillators": 20, "random_state": 0}
CLASSIFIERS = {
    "networks": SequenceClassifier("CoRNN", **BRIEF),
    "resonators": ResonatorClassifier(**FEW),
}
REGRESSORS = {
    "networks": SequenceRegressor("CoRNN", **BRIEF),
    "resonators": ResonatorRegressor(**FEW),
}


@pytest.fixture(scope="module", params=CLASSIFIERS)
def fitted(request, waves):
    return clone(CLASSIFIERS[request.param]).fit(*waves)


def test_the_seed_decides(waves, fitted):
    x = waves[0]
    same, other = (clone(fitted).set_params(random_state=seed).fit(*waves) for seed in (0, 1))
    assert (same.predict_proba(x) == fitted.predict_proba(x)).all()
    assert not (other.predict_proba(x) == fitted.predict_proba(x)).all()


def test_an_interrupted_fit_leaves_the_earlier_model_with_its_classes(waves, fitted, monkeypatch):
    x, y = waves
    model = copy.deepcopy(fitted)
    before = model.predict(x)
    with monkeypatch.context() as patch:
        for place in ("sequence.fit_in_memory", "resonators.Resonators.fit"):
            patch.setattr(f"anharmonic.estimators.{place}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(x, np.array([f"new {name}" for name in y]))
    assert (model.predict(x) == before).all()


def interrupted(*args, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("model", "numbers"),
    [
        (CLASSIFIERS["networks"], {"hidden_size": np.int64(4), "lr": np.float32(0.01)}),
        (CLASSIFIERS["resonators"], {"num_oscillators": np.arange(20, 30)[0]}),
    ],
    ids=str,
)
def test_numbers_may_be_those_of_numpy(waves, model, numbers, tmp_path):
    plain = {name: value.item() for name, value in numbers.items()}
    made, same = (clone(model).set_params(**given).fit(*waves) for given in (numbers, plain))
    assert (made.predict_proba(waves[0]) == same.predict_proba(waves[0])).all()
    save_pretrained(made.model_, tmp_path / "model")


@pytest.mark.parametrize("kind", REGRESSORS)
def test_values_have_the_shape_of_the_targets(waves, kind):
    x, _ = waves
    model, y = clone(REGRESSORS[kind]), np.stack([x.mean((1, 2)), x.std((1, 2))], axis=1)
    for targets in (y, y[:, :1], y[:, 0]):
        assert model.fit(x, targets).predict(x).shape == targets.shape


@pytest.mark.parametrize("model", [*CLASSIFIERS.values(), *REGRESSORS.values()], ids=str)
def test_sequences_of_weight_0_are_not_there(waves, model):
    x, y = waves
    y = y if hasattr(model, "predict_proba") else x.mean((1, 2))
    weights = np.arange(60) % 3
    kept = weights > 0
    mine = clone(model).fit(x, y, sample_weight=weights)
    other = clone(model).fit(x[kept], y[kept], sample_weight=weights[kept])
    assert (mine.predict(x) == other.predict(x)).all()
    with pytest.raises(ValueError, match="non-zero"):
        clone(model).fit(x, y, sample_weight=np.zeros(60))


@pytest.mark.covering
@pytest.mark.parametrize(
    ("model", "outputs"),
    [
        *[(SequenceRegressor(name, hidden_size=24, max_steps=2, random_state=0), outputs)
          for name in ("CoRNN", "LEM", "UnICORNN", "GRU", "NeuralOscillator")
          for outputs in (1, 3)],
        (ResonatorTransformer(**FEW), None),
        (ResonatorClassifier(**FEW), None),
        (ResonatorRegressor(**FEW), 2),
    ],
)  # fmt: skip
def test_predictions_do_not_depend_on_what_else_is_predicted(model, outputs):
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(3, steps)) for steps in rng.integers(5, 9, 90)]
    y = np.arange(90) % 3 if outputs is None else rng.normal(size=(90, outputs))
    model = clone(model).fit(x, y)
    for name in ("transform", "decision_function", "predict_proba", "predict"):
        if (method := getattr(model, name, None)) is None:
            continue
        whole, order = method(x), rng.permutation(90)
        assert (method([x[i] for i in order]) == whole[order]).all()
        for rows in ([0], [5], range(3), range(40, 57)):
            assert (method([x[i] for i in rows]) == whole[list(rows)]).all()


def test_wrong_sequences_are_said(waves, fitted):
    x, _ = waves
    for wrong, words in (
        (x[:, :1], r"channels of X must be 2, as in fit.*got 1"),
        ([np.zeros((2, 3, 4))], r"sequence 0 of x"),
        (pd.DataFrame({"a": list(x[:, 0]), "b": list(x[:, 1])}), r"no table, as in fit"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted.predict(wrong)
    with pytest.raises(ValueError, match=r"classes of y must be two or more"):
        clone(fitted).fit(x, np.full(60, "a"))
