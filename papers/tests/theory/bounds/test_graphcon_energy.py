"""GraphCON's energy on random graphs, beyond the examples."""

import pytest
import torch

from anharmonic import GraphCON
from anharmonic_papers.theory.bounds.graphcon_energy import (
    energy,
    energy_printed,
    energy_scheme,
    features,
    oscillation,
    uncoupled,
    undamped_spread,
)
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    gcn_matrix,
    metropolis_matrix,
    path,
    random_graph,
    random_walk_matrix,
)
from anharmonic_papers.theory.integrate import rk4

TIMES = torch.tensor([0.0, 1.0, 2.0, 5.0]).double()


def case(seed, width=3):
    edges = random_graph(10 + seed, 2 * seed, seed)
    nodes = 10 + seed
    x, y = features(nodes, width, seed), features(nodes, width, 100 + seed)
    return edges, metropolis_matrix(edges, nodes), x, y


@pytest.mark.parametrize("seed", range(4))
def test_the_energy_with_one_half_is_conserved_to_eight_digits_and_the_printed_one_is_not(seed):
    _, coupling, x, y = case(seed)
    check = energy(coupling, x, y, TIMES)
    assert check.applies and check.holds
    assert (check.measured / check.measured[0] - 1).abs().max() < 1e-12
    printed = energy_printed(coupling, x, y, TIMES)
    assert printed.applies and (printed.measured / printed.measured[0] - 1).abs().max() > 0.01


def test_the_exact_solution_is_that_of_a_solver():
    _, coupling, x, y = case(1)

    def field(state, t):
        return torch.stack([state[1], coupling @ state[0] - state[0] - 0.3 * state[1]])

    solved = rk4(field, torch.stack([x, y]), TIMES, steps=200)
    xs, ys = oscillation(coupling, x, y, TIMES, 0.3)
    assert torch.allclose(solved, torch.stack([xs, ys], 1), atol=1e-8)


def test_a_coupling_that_is_not_symmetric_is_outside():
    edges, _, x, y = case(2)
    check = energy(random_walk_matrix(edges, len(x)), x, y, TIMES)
    assert not check.applies and not check.holds
    assert "A symmetric" in str(check)


def test_couplings_of_another_size_are_refused():
    with pytest.raises(ValueError, match="coupling"):
        energy(torch.eye(3).double(), features(4, 1, 0), features(4, 1, 1), TIMES)


@pytest.mark.parametrize(("seed", "dt"), [(0, 0.9), (1, 0.1), (2, 0.5)])
def test_the_scheme_conserves_the_modified_energy(seed, dt):
    edges, coupling, x, _ = case(seed)
    layer = GraphCON(MatrixCoupling(coupling), 300, dt, damping=0.0, activation="identity")
    check = energy_scheme(layer, x, edges)
    assert check.applies and check.holds
    # Without the term of order dt the sum does change.
    _, states = layer(x, edges, return_states=True)
    plain = states.y.square().sum((1, 2)) + (states.x * (states.x - coupling @ states.x)).sum(
        (1, 2)
    )
    assert (plain / plain[0] - 1).abs().max() > 0.05 * dt


@pytest.mark.parametrize(
    "options", [{"damping": 0.1}, {"frequency": 2.0}, {"activation": "tanh"}], ids=str
)
def test_other_layers_are_outside_the_scheme_statement(options):
    edges, coupling, x, _ = case(0)
    settings = {"damping": 0.0, "activation": "identity"} | options
    check = energy_scheme(GraphCON(MatrixCoupling(coupling), 50, 0.3, **settings), x, edges)
    assert not check.applies and not check.holds


def test_gcn_is_outside_as_its_rows_do_not_sum_to_one():
    edges, _, x, _ = case(0)
    operator = MatrixCoupling(gcn_matrix(edges, len(x)))
    layer = GraphCON(operator, 10, 0.3, damping=0.0, activation="identity")
    assert not energy_scheme(layer, x, edges).applies


def test_uncoupled_nodes_swing_to_first_order():
    x, gaps = features(3, 2, 0), []
    for dt in (0.02, 0.01):
        layer = GraphCON(
            MatrixCoupling(torch.eye(3).double()),
            round(5 / dt),
            dt,
            damping=0.0,
            activation=torch.zeros_like,
        )
        check = uncoupled(layer, x, path(3))
        assert check.applies and check.holds
        gaps.append((check.measured - check.bound).abs().max())
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_without_damping_differences_stay(seed):
    _, coupling, x, y = case(seed)
    times = torch.linspace(0, 50, 101).double()
    check = undamped_spread(coupling, x, y, times)
    assert check.applies and check.holds and check.ratio < 3


def test_the_mean_potential_of_one_mode():
    """Two nodes apart by 2 cos t: of cos², the mean is 1/2 + sin(2t)/(4t)."""
    coupling = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).double()  # λ = 0 and 1
    x = torch.tensor([[1.0], [-1.0]]).double()
    times = torch.linspace(0, 40, 4001).double()
    check = undamped_spread(coupling, x, 0 * x, times)
    t = times[times > 1]
    expected = 2 * (0.5 + (2 * t).sin() / (4 * t))
    torch.testing.assert_close(check.measured, expected, rtol=1e-4, atol=0)
