"""UnICORNN's structure on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory.bounds.unicornn_structure import (
    gradient_hamiltonian,
    hamiltonian,
    inverse,
    memory,
    step_sizes,
    volume,
)


def network(seed, layers=1, steps=10, dtype=torch.float64, **words):
    torch.manual_seed(seed)
    layer = UnICORNN(2, 3, layers, dtype=dtype, **words)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(2).add_(0.1 * torch.randn_like(weight))
    return layer, 2 * torch.randn(steps, 1, 2, dtype=dtype)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 9.0])
def test_the_scheme_is_that_of_the_hamiltonian(seed, alpha):
    assert hamiltonian(*network(seed, frequency=alpha, dt=0.4)).holds


def test_a_weight_of_zero_is_outside():
    layer, x = network(0)
    with torch.no_grad():
        layer.weight_hh_l0[0] = 0.0
    assert not hamiltonian(layer, x).applies


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("parameter", ["weight_hh", "weight_ih", "bias"])
def test_the_gradients_have_a_hamiltonian(seed, parameter):
    check = gradient_hamiltonian(*network(seed, frequency=2.0, dt=0.4), parameter=parameter)
    assert check.holds and float(check.measured.abs().max()) > 1e-3


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_volume_is_preserved_with_skips_too(layers):
    words = {"skipped_layers": 2} if layers == 4 else {}
    assert volume(*network(0, layers, frequency=5.0, dt=0.5, **words)).holds


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("steps", [20, 200])
def test_the_way_back_with_and_without_skips(dtype, steps):
    for words in ({}, {"skipped_layers": 2}):
        check = inverse(*network(0, 3, steps, dtype, frequency=5.0, dt=0.1, **words))
        assert check.holds
        assert float(check.measured[0]) > 0  # floating point does not come back exactly


def test_the_error_of_the_way_back_grows_with_the_length():
    # Rounding errors, which need not be the same in every process: only lengths far apart tell.
    errors = [float(inverse(*network(0, 1, n, frequency=0.0)).measured[0]) for n in (50, 5000)]
    assert errors[1] > 20 * errors[0]


def test_kept_memory_grows_by_the_input_only():
    torch.manual_seed(0)
    layer, x = UnICORNN(2, 8, 3, memory="reversible"), torch.randn(400, 5, 2)
    check = memory(layer, x, lengths=(100, 200, 400))
    assert check.applies and check.holds
    growth = check.measured.diff() / torch.tensor([100.0, 200.0])
    assert growth.tolist() == [10.0, 10.0]  # batch times features, nothing for states


def test_stored_states_break_the_promise():
    check = memory(UnICORNN(2, 8, 3, memory="stored"), torch.zeros(400, 5, 2), lengths=(100, 400))
    assert not check.applies and not check.holds


def test_step_sizes_of_layers():
    layer = UnICORNN(2, 3, 2, dt=[0.1, 0.2])
    with torch.no_grad():
        layer.timescale_l1.zero_()
    torch.testing.assert_close(step_sizes(layer, 1), torch.full((3,), 0.1))


def test_bad_input():
    stack, x = network(0, 2)
    for check in (hamiltonian, lambda *a: gradient_hamiltonian(*a, parameter="bias")):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(stack, x)
    with pytest.raises(ValueError, match="parameter must be one of"):
        gradient_hamiltonian(*network(0), parameter="timescale")
    both = UnICORNN(2, 3, bidirectional=True, dtype=torch.float64)
    with pytest.raises(ValueError, match="bidirectional"):
        inverse(both, x)
