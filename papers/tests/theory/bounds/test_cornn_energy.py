"""coRNN's energies on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic.nn.stability import StabilityWarning
from anharmonic_papers.theory.bounds.cornn_energy import (
    energy_continuous,
    energy_explicit,
    energy_implicit,
    energy_implicit_sharp,
    flow,
)

# Table 2.8 of the thesis: dt, γ, ε.
TUNED = {
    "adding": (0.016, 94.5, 9.5),
    "sMNIST-128": (0.053, 1.7, 4.0),
    "sMNIST-256": (0.042, 2.7, 4.7),
    "psMNIST-128": (0.083, 0.13, 4.1),
    "psMNIST-256": (0.076, 0.4, 8.0),
    "noise-padded CIFAR-10": (0.034, 1.3, 12.7),
    "HAR-2": (0.1, 0.2, 6.4),
    "IMDB": (0.054, 4.9, 4.8),
}


def network(seed, dt, gamma=1.0, epsilon=1.0, scheme="implicit", steps=300, scale=5.0):
    torch.manual_seed(seed)
    layer = CoRNN(2, 5, dt=dt, frequency=gamma, damping=epsilon, scheme=scheme, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    return layer, scale * torch.randn(steps, 4, 2, dtype=torch.float64)


def drawn(seed):
    torch.manual_seed(100 + seed)
    gamma, epsilon = float(10 ** torch.empty(()).uniform_(-1, 1)), 0.6 + 5 * float(torch.rand(()))
    return gamma, epsilon


@pytest.mark.parametrize("seed", range(5))
def test_explicit_energy_on_random_networks(seed):
    gamma, epsilon = drawn(seed)
    dt = 0.99 * (2 * epsilon - 1) / (gamma + epsilon**2)
    check = energy_explicit(*network(seed, dt, gamma, epsilon, "explicit"))
    assert check.applies and check.holds
    assert check.ratio > 0.01  # the bound is not met for want of motion


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dt", [0.01, 0.3, 1.0])
def test_implicit_energy_on_random_networks(seed, dt):
    layer, x = network(seed, dt)
    printed, sharp = energy_implicit(layer, x), energy_implicit_sharp(layer, x)
    assert printed.applies and printed.holds and sharp.applies and sharp.holds
    assert sharp.ratio == pytest.approx((2 - dt) * printed.ratio)
    assert sharp.ratio > 0.01


@pytest.mark.parametrize("seed", range(5))
def test_sharp_implicit_energy_for_any_frequency_and_damping(seed):
    gamma, epsilon = drawn(seed)
    check = energy_implicit_sharp(*network(seed, min(1.0, 1.9 * epsilon / gamma), gamma, epsilon))
    assert check.applies and check.holds


@pytest.mark.parametrize("seed", range(2))
def test_continuous_energy_at_the_smallest_damping(seed):
    layer, x = network(seed, 0.1, drawn(seed)[0], 0.5, "explicit", steps=80)
    check = energy_continuous(layer, x)
    assert check.applies and check.holds and check.ratio > 0.01
    assert float(check.places[-1]) == pytest.approx(8.0)


def test_the_flow_is_the_limit_of_the_schemes():
    # first order: a tenth of the step, a tenth of the distance
    off = []
    for refine in (10, 100):
        layer, x = network(0, 0.1 / refine, 2.0, 1.0, "explicit", steps=10, scale=1.0)
        coarse = CoRNN(2, 5, dt=0.1, frequency=2.0, dtype=torch.float64)
        coarse.load_state_dict(layer.state_dict())
        y, _ = flow(coarse, x, 8)
        end = layer(x.repeat_interleave(refine, 0))[0].detach()[-1]
        off.append((end - y[-1]).abs().max())
    assert 8 < float(off[0] / off[1]) < 12


def test_the_flow_of_one_free_neuron_in_closed_form():
    # y'' = tanh(b) - y, from rest: tanh(b) (1 - cos t)
    with pytest.warns(StabilityWarning):
        layer = CoRNN(1, 1, dt=0.1, damping=0.0, frequency=1.0, dtype=torch.float64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.fill_(0.7 if name == "bias_l0" else 0.0)
    y, z = flow(layer, torch.zeros(30, 1, 1, dtype=torch.float64), 4)
    t = 0.1 * torch.arange(1, 31, dtype=torch.float64)
    push = torch.tensor(0.7, dtype=torch.float64).tanh()
    torch.testing.assert_close(y[:, 0, 0], push * (1 - t.cos()), atol=1e-7, rtol=0)
    torch.testing.assert_close(z[:, 0, 0], push * t.sin(), atol=1e-7, rtol=0)


@pytest.mark.parametrize("task", TUNED)
def test_every_tuned_setting_is_within_the_explicit_assumptions(task):
    dt, gamma, epsilon = TUNED[task]
    layer, x = network(0, dt, gamma, epsilon, "explicit")
    check = energy_explicit(layer, x)
    assert check.applies and check.holds
    assert not energy_implicit(layer, x).applies  # those are about another scheme


def test_continuous_energy_needs_damping():
    layer, x = network(0, 0.1, 1.0, 0.4, steps=3)
    assert not energy_continuous(layer, x).applies


def test_stacks_are_refused():
    layer = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    for check in (energy_explicit, energy_implicit, energy_continuous, energy_implicit_sharp):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(layer, torch.zeros(4, 1, 2, dtype=torch.float64))
