"""Statements of graphcon, beyond their examples."""

import pytest
import torch

from anharmonic import GraphCON
from anharmonic.diagnostics.smoothing import dirichlet_energy
from anharmonic_papers.theory import graphcon
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    features,
    metropolis_matrix,
    neighbours,
    random_graph,
    random_walk_matrix,
)


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize(("seed", "layers"), [(0, 160), (1, 160), (2, 400)])
def test_relu_with_damping_oversmooths_in_a_hundred_layers(seed, layers):
    # The notes: from 10 to 5e-11, a factor 5e-12; how fast is a matter of the graph.
    edges = random_graph(12, 8, seed)
    conv = MatrixCoupling(random_walk_matrix(edges, 12))
    x = 2 + 2 * features(12, 1, seed).abs()
    check = graphcon.graphcon_algebraic_printed(GraphCON(conv, layers, 0.2), x, edges)
    assert check.applies and not check.holds
    _, (xs, _) = GraphCON(conv, 100, 0.2)(x, edges, return_states=True)
    half, end = (difference_sum(xs[n], neighbours(edges, 12)) for n in (50, 100))
    start = difference_sum(x, neighbours(edges, 12))
    assert end / start < 1e-6 and half / start < 1e-2
    undamped = graphcon.graphcon_algebraic_printed(
        GraphCON(conv, layers, 0.2, damping=0.0), x, edges
    )
    assert not undamped.applies and float(undamped.measured) < 1  # D stays


@pytest.mark.parametrize("power", [0.5, 4.0, 30.0])
def test_an_algebraic_decay_of_any_power_loses_as_much_in_every_doubling(power):
    t = 0.2 * torch.arange(1, 161, dtype=torch.float64)
    before, after = graphcon.lost_in_doublings(t**-power * (1.5 + t.cos()))
    assert after < 1.5 * before
    before, after = graphcon.lost_in_doublings((-0.01 * power * t).exp())
    assert float(after / before) == pytest.approx(2.0)


def test_the_mean_potential_of_one_mode():
    """Two nodes apart by 2 cos t: of cos², the mean is 1/2 + sin(2t)/(4t)."""
    coupling = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).double()  # λ = 0 and 1
    x = torch.tensor([[1.0], [-1.0]]).double()
    times = torch.linspace(0, 40, 4001).double()
    check = graphcon.graphcon_undamped_spread(coupling, x, 0 * x, times)
    t = times[times > 1]
    expected = 2 * (0.5 + (2 * t).sin() / (4 * t))
    torch.testing.assert_close(check.measured, expected, rtol=1e-4, atol=0)


def test_the_energy_is_that_of_the_diagnostics():
    edges = random_graph(9, 4, 0)
    x = features(9, 3, 0)
    assert torch.isclose(
        graphcon.dirichlet(x, metropolis_matrix(edges, 9)), dirichlet_energy(x, edges)
    )
