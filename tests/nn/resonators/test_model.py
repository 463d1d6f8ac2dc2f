"""The model of resonators with a linear readout, and its ridge regression."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.nn import Resonators
from anharmonic.nn.resonators.draw import DEFAULT_POOLS
from anharmonic.nn.resonators.ridge import fit_ridge

linear_model = pytest.importorskip("sklearn.linear_model")
OLD_POOLS = ("share", "run", "position", "largest", "end")


@pytest.fixture
def waves():
    """Waves of three speeds in two channels [N, T, C], and their numbers."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 60)
    phase = rng.uniform(0, 6, (60, 1, 2))
    x = np.sin(np.array([0.2, 0.5, 1.2])[kind][:, None, None] * np.arange(40)[:, None] + phase)
    return (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32), kind


@pytest.mark.covering
@pytest.mark.parametrize(
    "pools", [("share", "end"), ("excess", "rms", "position"), DEFAULT_POOLS, OLD_POOLS]
)
@pytest.mark.parametrize("scaling", ["train", "series", "running"])
def test_a_saved_model_says_the_same_to_the_last_bit(waves, tmp_path, pools, scaling):
    x, y = waves
    model = Resonators(2, 3, num_oscillators=25, num_biases=3, scaling=scaling, pools=pools)
    model.fit(x, y, seed=1)
    ah.save_pretrained(model, tmp_path / "saved")
    again = ah.from_pretrained(tmp_path / "saved")
    assert again.config() == model.config() and again.num_fitted == model.num_fitted
    inputs = torch.from_numpy(x)
    assert (again(inputs) == model(inputs)).all()
    assert (again(inputs).argmax(1).numpy() == y).mean() > 0.9


def test_padding_does_not_count(waves):
    x, y = waves
    model = Resonators(2, 3, num_oscillators=25).fit(x, y, seed=1)
    padded = torch.cat([torch.from_numpy(x), torch.full((60, 5, 2), 9.0)], 1)
    assert (model(padded, torch.full((60,), 40)) == model(torch.from_numpy(x))).all()
    with pytest.raises(ValueError, match="elapsed must be None for resonators"):
        model(padded, None, torch.ones(60, 45))


WRONG = [
    ("class", {"targets": np.where(np.arange(60) % 2, 1, -1)}, r"in \[0, 2\]; got -1 to 1"),
    ("class", {"targets": np.arange(60) % 4}, r"targets must be in \[0, 2\]; got 0 to 3"),
    ("class", {"targets": np.zeros(60, int)}, r"classes of training must be two .* got \[0\]"),
    ("class", {"targets": np.arange(60) % 2 / 1}, "60 integers; got float64 of shape"),
    ("class", {"targets": np.arange(59) % 2}, "60 integers; got int64 of shape"),
    ("class", {"weights": np.arange(60)}, "weights must be 60 finite numbers > 0; got 0;"),
    ("class", {"weights": np.r_[np.ones(59), np.inf]}, "weights must be 60 .*; got inf;"),
    ("class", {"copies": np.ones(3)}, r"copies must be 60 finite .*; got shape \[3\]"),
    ("value", {"targets": np.zeros((60, 2))}, r"of shape \[60, 3\]; got float64 of shape"),
    ("value", {"targets": np.full((60, 3), np.nan)}, "targets must be finite; got nan"),
    ("class", {"sequences": [["a"]] * 60}, "sequences.* must be an array"),
    ("class", {"sequences": np.ones((60, 9, 2), complex)}, "must be an array of real numbers"),
    ("class", {"sequences": [], "targets": []}, "sequences must be at least one series; got 0"),
]


@pytest.mark.parametrize(("target", "change", "message"), WRONG)
def test_what_does_not_fit_is_refused_before_anything_is_drawn(waves, target, change, message):
    x, y = waves
    model = Resonators(2, 3, target=target, num_oscillators=5)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(**{"sequences": x, "targets": y, "seed": 0} | change)
    with pytest.raises(ValueError, match="the model must be fitted"):
        model(torch.from_numpy(x))


def test_forward_checks_its_input_and_numbers_keep_their_precision(waves):
    x, y = waves
    model = Resonators(2, 3, num_oscillators=25).fit(x, y, seed=1)
    inputs = torch.from_numpy(x)
    for lengths in (torch.full((60,), 99), torch.full((60,), -5)):
        with pytest.raises(ValueError, match=r"lengths must lie in \[1, T=40\]"):
            model(inputs, lengths)
    with pytest.raises(ValueError, match=r"x must be a tensor \[B, T, 2\]"):
        model(inputs[0])
    out = model(inputs)
    assert torch.equal(model(inputs.clone().requires_grad_()), out)
    assert (model(inputs.bfloat16()).argmax(1) == out.argmax(1)).double().mean() > 0.9
    assert torch.equal(model.half()(inputs), out) and torch.equal(model.double()(inputs), out)
    whole = (1000 * x).astype(np.int64)
    model = Resonators(2, 3, num_oscillators=25).fit(whole + 2**30, y, seed=1)
    exact = model(torch.from_numpy(whole + 2**30).double())
    assert torch.equal(model(torch.from_numpy(whole + 2**30)), exact)
    with pytest.raises(ValueError, match="device must be the CPU; got 'meta'"):
        model.to("meta")(inputs)


def test_values_have_their_shape_and_weights_count(waves):
    x, y = waves
    goals = np.stack([x.mean((1, 2)), x.std((1, 2))], 1)
    model = Resonators(2, 2, target="value", num_oscillators=25).fit(x, goals, seed=0)
    assert model(torch.from_numpy(x)).shape == (60, 2)
    even, odd = (
        Resonators(2, 3, num_oscillators=25).fit(x, y, seed=0, weights=weights)
        for weights in (None, 1.0 + 5 * (y == 1))
    )
    assert (odd.readout != even.readout).any()


def test_a_class_that_training_lacks_is_never_likely(waves):
    (x, y), model = waves, Resonators(2, 3, num_oscillators=25)
    model.fit(x[y != 1], y[y != 1], seed=1)
    assert (model(torch.from_numpy(x))[:, 1].exp() < 1e-12).all()
    with pytest.raises(ValueError, match=r"classes of training must be two or more; got \[0\]"):
        model.fit(x, 0 * y, seed=0)


def test_lengths_are_saved_along(waves, tmp_path):
    x, y = waves
    lengths = 30 + 2 * y + np.arange(60) % 2
    cut = [one[:length] for one, length in zip(x, lengths, strict=True)]
    model = Resonators(2, 3, num_oscillators=25, pools=["length"]).fit(cut, y, seed=1)
    ah.save_pretrained(model, tmp_path / "saved")
    given = torch.from_numpy(x), torch.from_numpy(lengths)
    found = ah.from_pretrained(tmp_path / "saved")(*given)
    assert (found == model(*given)).all()
    assert (found.argmax(1).numpy() == y).mean() > 0.9


# ---- ridge regression ----
ALPHAS = np.logspace(-2, 3, 6)


@pytest.mark.covering(2)
@pytest.mark.parametrize("rows", [30, 90])  # fewer than features, and more
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_finds_what_scikit_learn_finds(rows, targets, weighted):
    rng = np.random.default_rng(0)
    x = rng.normal(2, 1, size=(rows, 60))
    y = x[:, :targets] + 3 + rng.normal(size=(rows, targets))
    weights = rng.uniform(0.2, 3, rows) if weighted else None
    known = linear_model.RidgeCV(ALPHAS, scoring="neg_mean_squared_error", store_cv_results=True)
    known.fit(x, y, weights)
    found, left_out = fit_ridge(x.copy(), y, ALPHAS, weights)
    assert found.alpha_ == known.alpha_
    assert found.coef_.shape == known.coef_.shape
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.predict(x), known.predict(x), rtol=1e-8)
    np.testing.assert_allclose(found.best_score_, known.best_score_, rtol=1e-8)
    best = known.cv_results_[..., list(ALPHAS).index(known.alpha_)]
    np.testing.assert_allclose(left_out, best.reshape(rows, targets), rtol=1e-8)


@pytest.mark.parametrize("alphas", [[], [1.0, 0.0], [[1.0]]])
def test_penalties_out_of_range_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas"):
        fit_ridge(np.eye(3), np.ones((3, 1)), np.array(alphas))
