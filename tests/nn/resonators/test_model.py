"""The model of resonators with a linear readout."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.nn import Resonators
from anharmonic.nn.resonators.draw import DEFAULT_POOLS

pytest.importorskip("sklearn")
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
