"""Lyapunov exponents against maps whose exponent is known."""

import math

import pytest
import torch
from torch import nn

from anharmonic import CoRNN, UnICORNN
from anharmonic.diagnostics.lyapunov import lyapunov_exponent, map_lyapunov_exponent

F64 = torch.float64


def free(steps):
    return torch.empty(steps, 0, dtype=F64)


def test_of_a_linear_map_is_the_log_of_its_largest_eigenvalue():
    A = torch.tensor([[0.9, 0.3], [0.0, 0.5]], dtype=F64)
    found = map_lyapunov_exponent(
        lambda s, _: s @ A.t(), torch.tensor([0.1, 0.2], dtype=F64), free(400), discard=100
    )
    assert found[-1].item() == pytest.approx(math.log(0.9), abs=1e-12)
    assert len(found) == 300


def test_of_the_logistic_map_is_log_2():
    """x -> 4 x (1 - x) has the exponent log 2 on almost every orbit."""
    found = map_lyapunov_exponent(
        lambda x, _: 4 * x * (1 - x), torch.tensor([0.2137], dtype=F64), free(1000)
    )
    assert found[-1].item() == pytest.approx(math.log(2), abs=0.01)
    assert (
        map_lyapunov_exponent(lambda x, _: 0 * x, torch.tensor([1.0], dtype=F64), free(5))[-1]
        == -math.inf
    )


def test_of_a_layer_is_that_of_its_map():
    """A tanh network of one neuron without input settles: the exponent is log of the slope."""
    layer, fixed = nn.RNN(1, 1, dtype=F64), 0.5
    with torch.no_grad():
        for weight, value in zip(layer.parameters(), (0.0, 2.0, 0.0, 0.1), strict=True):
            weight.fill_(value)
    for _ in range(200):
        fixed = math.tanh(2 * fixed + 0.1)
    x = torch.zeros(100, 1, 1, dtype=F64)
    found = lyapunov_exponent(layer, x, discard=60)
    assert found[-1].item() == pytest.approx(math.log(2 * (1 - fixed**2)), abs=1e-10)


def test_damped_oscillators_are_not_chaotic_and_symplectic_ones_neither_grow_nor_decay():
    noise = torch.randn(100, 1, 1, dtype=F64)
    assert lyapunov_exponent(CoRNN(1, 8, dt=0.1, dtype=F64), noise)[-1] < 0
    # The exponents come in pairs of opposite sign, the largest is not below 0.
    assert lyapunov_exponent(UnICORNN(1, 8, dt=0.1, dtype=F64), noise)[-1] > -1e-3


def test_float32_is_near_and_the_seed_repeats():
    layer, x = CoRNN(2, 4, dt=0.1), torch.randn(60, 1, 2)
    single = lyapunov_exponent(layer, x, discard=20)[-1]
    assert torch.equal(single, lyapunov_exponent(layer, x, discard=20)[-1])
    double = lyapunov_exponent(layer.double(), x.double(), discard=20)[-1]
    assert abs(single - double) < 1e-4


def test_bad_input_is_said():
    with pytest.raises(ValueError, match=r"discard must be an int in \[0, 3\); got 3"):
        map_lyapunov_exponent(lambda x, _: x, torch.tensor([1.0], dtype=F64), free(3), discard=3)
    with pytest.raises(ValueError, match=r"start must be one state, \[M\]; got shape"):
        map_lyapunov_exponent(lambda x, _: x, torch.zeros(1, 1), free(3))
    with pytest.raises(ValueError, match=r"x must be one sequence"):
        lyapunov_exponent(CoRNN(1, 2), torch.zeros(3, 2, 1))
