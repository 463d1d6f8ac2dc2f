"""How GraphCON keeps nodes apart, on random graphs, beyond the examples."""

import math

import pytest
import torch

from anharmonic import GraphCON
from anharmonic_papers.theory.bounds.graphcon_damping import (
    algebraic_printed,
    constant_neutral,
    constant_steady,
    damped_decay,
    linear_identity,
    lost_in_doublings,
)
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    metropolis_matrix,
    neighbours,
    random_graph,
    random_walk_matrix,
)

TIMES = torch.tensor([0.0, 10.0, 20.0, 40.0, 80.0]).double()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("damping", [0.1, 0.5, 3.0])
def test_damped_differences_decay_exponentially(seed, damping):
    coupling = metropolis_matrix(random_graph(12, 8, seed), 12)
    check = damped_decay(coupling, features(12, 2, seed), features(12, 2, 9), TIMES, damping)
    assert check.applies and check.holds and check.ratio > 0.01


def test_damped_energies_fall_as_the_notes_measured():
    # 14.8, 7e-2, 4e-4, 1e-8, 3e-17 there for another draw: e^(-t/2), times a number of order one.
    coupling = metropolis_matrix(random_graph(12, 8, 0), 12)
    energy = damped_decay(coupling, features(12, 2, 0), features(12, 2, 1), TIMES, 0.5).measured
    for here, noted in zip(energy / energy[0], (1, 7e-2, 4e-4, 1e-8, 3e-17), strict=True):
        assert abs(math.log10(float(here) * 14.8 / noted)) < 1.2


def test_undamped_differences_are_outside():
    coupling = metropolis_matrix(random_graph(12, 8, 0), 12)
    check = damped_decay(coupling, features(12, 1, 0), features(12, 1, 1), TIMES, 0.0)
    assert not check.applies


@pytest.mark.parametrize("damping", [0.0, 0.51, 2.0])
@pytest.mark.parametrize("matrix", [metropolis_matrix, random_walk_matrix])
def test_constant_perturbations_stay(damping, matrix):
    coupling = matrix(random_graph(9, 4, 2), 9)
    check = constant_neutral(coupling, -0.2, TIMES, damping)
    assert check.applies and check.holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("matrix", [metropolis_matrix, random_walk_matrix])
def test_the_identity_of_the_linearised_energy(seed, matrix):
    coupling = matrix(random_graph(10, 5, seed), 10)
    check = linear_identity(coupling, features(10, 2, seed), features(10, 2, 5), 10.0, 0.7, 500)
    assert check.applies and check.holds


def test_the_identity_needs_the_asymmetry():
    # With T3 left out (A symmetrised in it), the sides differ: the test above can fail.
    coupling = random_walk_matrix(random_graph(10, 5, 0), 10)
    check = linear_identity(coupling, features(10, 1, 0), features(10, 1, 5), 10.0, 0.7, 500)
    again = linear_identity(
        (coupling + coupling.T) / 2, features(10, 1, 0), features(10, 1, 5), 10.0, 0.7, 500
    )
    assert not torch.allclose(check.bound, again.bound, rtol=1e-2)


def test_constants_are_steady_with_relu_and_differences_are_not():
    edges = random_graph(9, 4, 1)
    layer = GraphCON(
        MatrixCoupling(random_walk_matrix(edges, 9)), 50, 0.7, damping=0.3, initial_velocity="zero"
    )
    check = constant_steady(layer, torch.full((9, 2), 0.4).double(), edges)
    assert check.applies and check.holds
    assert not constant_steady(layer, features(9, 2, 0).abs(), edges).applies
    tanh = GraphCON(
        MatrixCoupling(random_walk_matrix(edges, 9)),
        50,
        0.7,
        activation="tanh",
        initial_velocity="zero",
    )
    assert not constant_steady(tanh, torch.full((9, 2), 0.4).double(), edges).holds


@pytest.mark.parametrize(("seed", "layers"), [(0, 160), (1, 160), (2, 400)])
def test_relu_with_damping_oversmooths_in_a_hundred_layers(seed, layers):
    # The notes: from 10 to 5e-11, a factor 5e-12; how fast is a matter of the graph.
    edges = random_graph(12, 8, seed)
    conv = MatrixCoupling(random_walk_matrix(edges, 12))
    x = 2 + 2 * features(12, 1, seed).abs()
    check = algebraic_printed(GraphCON(conv, layers, 0.2), x, edges)
    assert check.applies and not check.holds
    _, (xs, _) = GraphCON(conv, 100, 0.2)(x, edges, return_states=True)
    half, end = (difference_sum(xs[n], neighbours(edges, 12)) for n in (50, 100))
    start = difference_sum(x, neighbours(edges, 12))
    assert end / start < 1e-6 and half / start < 1e-2
    undamped = algebraic_printed(GraphCON(conv, layers, 0.2, damping=0.0), x, edges)
    assert not undamped.applies and float(undamped.measured) < 1  # D stays


@pytest.mark.parametrize("power", [0.5, 4.0, 30.0])
def test_an_algebraic_decay_of_any_power_loses_as_much_in_every_doubling(power):
    t = 0.2 * torch.arange(1, 161, dtype=torch.float64)
    before, after = lost_in_doublings(t**-power * (1.5 + t.cos()))
    assert after < 1.5 * before
    before, after = lost_in_doublings((-0.01 * power * t).exp())
    assert float(after / before) == pytest.approx(2.0)
