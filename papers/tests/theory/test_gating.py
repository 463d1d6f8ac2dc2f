"""Statements of gating, beyond their examples."""

import pytest

from anharmonic_papers.theory import gating
from anharmonic_papers.theory.graphs import (
    metropolis_matrix,
    random_graph,
)


@pytest.mark.parametrize(
    ("p", "size", "spread"), [(2.0, 1.0, 0.64 / 0.46), (4.0, 1 / 3, 0.85 / 0.38)]
)
def test_gated_decay_is_algebraic(p, size, spread):
    # The notes: S t^(2/p) within 0.46 to 0.64 (p = 2) and 0.38 to 0.85 (p = 4) from t = 1e2 to 1e5.
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    times = gating.slow_times(1e5, 41)
    check = gating.g2_gated_decay(coupling, size * gating.deviations(10, 0), p, times, steps=12)
    assert check.applies and check.holds
    kept = (check.measured * times ** (2 / p))[times > 1e2]
    assert float(kept.max() / kept.min()) < spread
