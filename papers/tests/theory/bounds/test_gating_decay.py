"""How fast gated nodes grow alike, on random graphs, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.bounds.gating_decay import (
    gated_decay,
    gated_decay_printed,
    gated_lower,
    slow_times,
)
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.held_node import deviations, ramp
from anharmonic_papers.theory.graphs import (
    metropolis_matrix,
    path,
    random_graph,
    random_walk_matrix,
)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(2))
def test_gated_nodes_never_decay_exponentially(p, seed):
    coupling = random_walk_matrix(random_graph(10, 6, seed), 10)
    check = gated_lower(coupling, features(10, 1, seed).abs(), p, slow_times(1e4, 21))
    assert check.applies and check.holds
    later = check.measured[1:] > 0.2 * check.measured[0]
    assert not later.all()  # it did move


@pytest.mark.parametrize(
    ("p", "size", "spread"), [(2.0, 1.0, 0.64 / 0.46), (4.0, 1 / 3, 0.85 / 0.38)]
)
def test_gated_decay_is_algebraic(p, size, spread):
    # The notes: S t^(2/p) within 0.46 to 0.64 (p = 2) and 0.38 to 0.85 (p = 4) from t = 1e2 to 1e5.
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    times = slow_times(1e5, 41)
    check = gated_decay(coupling, size * deviations(10, 0), p, times, steps=12)
    assert check.applies and check.holds
    kept = (check.measured * times ** (2 / p))[times > 1e2]
    assert float(kept.max() / kept.min()) < spread


def test_the_printed_constant_is_passed_on_a_long_path():
    coupling = metropolis_matrix(path(40), 40)
    arguments = coupling, ramp(40) / 40, 2.0, slow_times(3e4, 11), 50
    printed = gated_decay_printed(*arguments)
    assert printed.applies and not printed.holds
    assert gated_decay(*arguments).holds


def test_gating_is_slower_than_none():
    times = slow_times(1e3, 21)
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    check = gated_decay(coupling, deviations(10, 0), 2.0, times)
    assert check.measured[-1] > 1e-4 * check.measured[0]


def test_bad_input():
    coupling = metropolis_matrix(path(4), 4)
    with pytest.raises(ValueError, match="scalar features"):
        gated_lower(coupling, features(4, 2, 0), 2.0, slow_times(10, 5))
    with pytest.raises(ValueError, match="scalar features"):
        gated_decay(coupling, features(4, 2, 0), 2.0, slow_times(10, 5))
    assert not gated_lower(coupling, -ramp(4), 2.0, slow_times(10, 5)).applies
    assert not gated_decay(coupling, ramp(4) + 1, 2.0, slow_times(10, 5)).applies
    with pytest.raises(ValueError, match=r"the solution must stay finite.*steps=1"):
        gated_decay(coupling, 9 * ramp(4), 2.0, slow_times(1e6, 3), steps=1)
    assert torch.allclose(slow_times(99, 3), torch.tensor([0.0, 9.0, 99.0]).double())
