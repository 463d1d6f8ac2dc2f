import tempfile

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.sequences import Sequences
from anharmonic.estimators import SequenceClassifier, SequenceRegressor
from anharmonic.estimators.sequence import with_weights

QUICK = {"hidden_size": 16, "max_steps": 60, "lr": 0.03, "random_state": 0}
BRIEF = {"hidden_size": 4, "max_steps": 4, "random_state": 0}


@pytest.fixture(scope="module")
def trained(waves):
    return SequenceClassifier("CoRNN", **QUICK).fit(*waves)


def test_values_are_learned(waves):
    x, _ = waves
    y = np.stack([x.mean((1, 2)), 100 * x[:, 0].std(1)], axis=1)
    model = SequenceRegressor("GRU", **QUICK | {"max_steps": 80})
    assert model.fit(x, y).score(x, y) > 0.3


def test_random_states_threads_and_folders_are_left_alone(waves, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *a, **k: pytest.fail("a temporary folder"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.get_num_threads()
    SequenceClassifier("CoRNN", **BRIEF, n_jobs=torch.get_num_threads() + 1).fit(*waves)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]
    assert list(tmp_path.iterdir()) == []


def test_says_nothing_unless_asked(waves, capfd):
    SequenceClassifier("CoRNN", **BRIEF).fit(*waves)
    assert capfd.readouterr() == ("", "")
    SequenceClassifier("CoRNN", **BRIEF, verbose=True).fit(*waves)
    assert "60" in capfd.readouterr().err


@pytest.mark.parametrize("given", ["class_weight", "sample_weight"])
def test_weights_move_the_decision(waves, given):
    x, y = waves
    noise = np.random.default_rng(1).normal(size=x.shape)
    for favoured in ("fast", "slow"):
        by_class = {"fast": 1e-3, "slow": 1e-3, favoured: 1.0}
        model, weights = SequenceClassifier("CoRNN", **QUICK), None
        if given == "class_weight":
            model.set_params(class_weight=by_class)
        else:
            weights = [by_class[name] for name in y]
        assert (model.fit(noise, y, weights).predict(noise) == favoured).mean() > 0.9


@pytest.mark.parametrize("missing", ["mean", "forward", "mask"])
def test_missing_values(waves, trained, missing):
    x, y = waves
    x = np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)
    model = SequenceClassifier("CoRNN", missing=missing, **QUICK).fit(x, y)
    assert model.score(x, y) > 0.8
    with pytest.raises(ValueError, match=r"x in x|NaN|nan"):
        SequenceClassifier("CoRNN", **BRIEF).fit(x, y)
    x = waves[0].copy()
    x[3, 1, 7] = np.nan
    with pytest.raises(ValueError, match="nan at sequence 3, step 7, channel 1"):
        trained.predict(x)


def test_options_of_the_model_the_run_and_the_budget(waves):
    further = {"model_options": {"hidden_size": 4}, "task_options": {"difference": False}}
    model = SequenceClassifier(
        "lem", batch_size=10, max_steps=13, model_options={"dt": 0.2},
        run_options=further | {"weight_decay": 0.5, "lr": 0.03, "seed": 3},
    ).fit(*waves)  # fmt: skip
    run = model.run_
    assert (run.model, run.lr, run.batch_size, run.weight_decay) == ("LEM", 0.03, 10, 0.5)
    assert run.model_options["hidden_size"] == 4 and run.model_options["dt"] == 0.2
    assert run.seed == 3 and not model.preprocessing_.difference
    assert model.result_.epochs_run == 2  # 6 steps each
    assert isinstance(model.model_, ah.SequenceModel)
    model.partial_fit(*waves).predict(waves[0][:2])


FEW = {"hidden_size": 16, "max_steps": 8, "lr": 0.1, "random_state": 0}


def test_partial_fit_goes_on(waves):
    x, y = waves
    model = SequenceClassifier("GRU", **FEW).partial_fit(x, y, classes=["fast", "slow"])
    prepared, first = model.preprocessing_, model.predict_proba(x)
    assert (first == SequenceClassifier("GRU", **FEW).fit(x, y).predict_proba(x)).all()
    before = model.result_.curve["train_loss"][-1]
    for _ in range(5):
        model.partial_fit(x, y)
    assert model.preprocessing_ == prepared and model.result_.epochs_run == 1
    assert model.result_.curve["train_loss"][-1] < before and model.score(x, y) > 0.9
    fast = y == "fast"
    model.partial_fit(x[fast], y[fast], sample_weight=np.ones(fast.sum()))  # one class of both
    assert model.predict_proba(x).shape == (60, 2)
    with pytest.raises(ValueError, match=r"classes of y must be of \['fast', 'slow'\]"):
        model.partial_fit(x, np.where(fast, "fast", "late"))
    with pytest.raises(ValueError, match="without a sequence"):
        SequenceClassifier("GRU", **FEW).partial_fit(x, y, classes=["fast", "late", "slow"])
    with pytest.raises(ValueError, match=r"classes of y must be of the given \['fast'\]; .*slow"):
        SequenceClassifier("GRU", **FEW).partial_fit(x, y, classes=["fast"])


def test_partial_fit_of_values(waves):
    x, _ = waves
    y = 100 + 10 * x.mean((1, 2))
    model = SequenceRegressor("GRU", **FEW).partial_fit(x, y)
    before = model.score(x, y)
    for _ in range(8):
        model.partial_fit(x, y)
    assert model.score(x, y) > before
    with pytest.raises(ValueError, match="numbers of y"):
        model.partial_fit(x, np.stack([y, y], 1))


@pytest.fixture
def labelled():
    """Sequences [n, 2, 10]; label k says whether channel k is high."""
    rng = np.random.default_rng(0)
    y = (rng.random((80, 2)) < 0.4).astype(int)
    return rng.normal(size=(80, 2, 10)) + 2.0 * y[:, :, None], y


def test_several_labels(labelled):
    x, y = labelled
    model = SequenceClassifier("GRU", **QUICK).fit(x, y)
    assert model.classes_.tolist() == [0, 1]
    found = model.predict(x)
    assert found.shape == y.shape and (found == y).mean() > 0.9
    assert ((model.predict_proba(x) > 0.5) == found).all()
    assert model.score(x, y) == (found == y).all(axis=1).mean()
    before = {name: value.clone() for name, value in model.model_.state_dict().items()}
    model.partial_fit(x[:20], y[:20])
    assert any((value != before[name]).any() for name, value in model.model_.state_dict().items())
    with pytest.raises(ValueError, match=r"y must be zeros and ones \[n, 2\], as in fit"):
        model.partial_fit(x[:20], y[:20, 0])
    with pytest.raises(ValueError, match="class_weight must be None for several labels"):
        SequenceClassifier("GRU", class_weight="balanced").fit(x, y)


def test_weights_of_sequences_keep_the_size_of_the_loss():
    part = Sequences("here", np.zeros((4, 1), np.float32), np.array([0, 2, 4]))
    assert with_weights(part, None, [10.0, 30.0])[0].weights.tolist() == [0.5, 1.5]
    assert with_weights(part, None, None) == (part, None)
