"""Recurrent models on CogScale's tasks: budgets, masks, reservoirs, and the table."""

import numpy as np
import pytest
import torch

import learning_cogscale as cogscale


def task(delay=1, count=40):
    """What was seen a step before, as the package's dictionary; nothing is asked at first."""
    rng = np.random.default_rng(0)
    found = {"category": "classification"}
    for part in ("train", "valid", "test"):
        x = np.eye(3)[rng.integers(3, size=(count, 12))]
        y = np.full_like(x, cogscale.MASK)
        y[:, delay:] = x[:, :-delay]
        found |= {f"X_{part}": x, f"Y_{part}": y}
    return found


def errors(y, output, category):
    """The score of the package, for classes."""
    asked = (y != cogscale.MASK).any(-1)
    return 1 - (output[asked].argmax(-1) == y[asked].argmax(-1)).mean()


@pytest.mark.parametrize(("power", "budget", "width"), [(2, 10, 3), (2, 9, 3), (1, 100, 100)])
def test_the_widest_that_fits(power, budget, width):
    assert cogscale.widest(lambda width: width**power, budget) == width


@pytest.mark.parametrize("name", [*cogscale.OURS, *cogscale.OTHERS])
def test_every_network_fits_its_budget_and_trains(name, monkeypatch):
    monkeypatch.setattr(cogscale, "STEPS", 20)
    found = cogscale.train(name, task(), 1000, 0, errors)
    assert 800 < found["parameters"] <= 1000
    assert 0 <= found["test"] <= 1


def test_networks_learn_what_is_easy():
    found = cogscale.train("GRU", task(), 1000, 0, errors)
    assert found["valid"] < 0.05 and found["test"] < 0.05


@pytest.mark.parametrize("name", cogscale.RESERVOIRS)
def test_reservoirs_remember_and_keep_their_budget(name):
    # A neuron of UnICORNN is not connected to others, so it mixes what came at different times.
    found = cogscale.reservoir(name, task(delay=1 if "UnI" in name else 2), 300, 0, errors)
    assert found["parameters"] <= 300
    assert found["test"] < 0.05


def test_the_states_of_a_reservoir_by_hand():
    rng = np.random.default_rng(1)
    x, matrix, entry = rng.random((1, 2, 3)), rng.random((4, 4)), rng.random((3, 4))
    first = 0.5 * np.tanh(x[0, 0] @ entry)
    second = 0.5 * first + 0.5 * np.tanh(first @ matrix + x[0, 1] @ entry)
    found = cogscale._echo(x, matrix, entry, 0.5)
    np.testing.assert_allclose(found[0, 1], second, rtol=1e-6)


def test_steps_that_are_not_asked_for_do_not_count():
    y = torch.tensor([[[1.0, 0.0], [cogscale.MASK] * 2]])
    output = torch.tensor([[[2.0, -1.0], [5.0, 9.0]]])
    for category in ("classification", "regression", "multi_classification"):
        alone = cogscale.loss(output[:, :1], y[:, :1], category)
        assert torch.equal(cogscale.loss(output, y, category), alone)
