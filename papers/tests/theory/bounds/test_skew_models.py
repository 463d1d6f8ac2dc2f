"""Models with a skew matrix: Monte Carlo over random fields, and the orthogonal limit."""

import torch

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import skew_part
from anharmonic_papers.theory.bounds.skew_models import (
    orthogonal_limit,
    skew_against_regular,
    symmetric_part,
)


def fields(d, draws, seed):
    """B_0 + Σ b_k x_k, i.i.d. entries."""
    parts = torch.randn(
        d + 1, draws, d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return lambda x: parts[0] + torch.einsum("knij,k->nij", parts[1:], x)


def test_the_skew_model_has_the_smaller_symmetric_part():
    # The notes for d = 5: off-diagonal 0.30 in the mean, diagonal up to 0.40.
    drawn = fields(5, 20000, 1)
    check = symmetric_part(drawn, torch.ones(5).double())
    assert check.holds
    ratio = check.measured / check.bound
    diagonal = ratio.diagonal()
    off = (ratio.sum() - diagonal.sum()) / 20
    assert 0.28 < off < 0.40 and 0.30 < diagonal.mean() < 0.48


def test_few_draws_do_not_decide():
    assert not symmetric_part(fields(5, 10, 0), torch.ones(5).double()).holds


def test_a_skew_field_against_itself_without_factor_holds_nowhere():
    drawn = fields(3, 2000, 0)
    check = symmetric_part(lambda x: skew_part(drawn(x)), torch.ones(3).double())
    assert not check.holds  # B_ij = -B_ji are not independent: √2 B against B


def test_orthogonal_steps_have_skew_limits():
    generator = skew_part(features(5, 5, 0))
    for h in (0.5, 0.05):
        check = orthogonal_limit(torch.linalg.matrix_exp(h * generator), h)
        assert check.applies and check.holds
        assert check.measured.abs().max() < 20 * h
    off = orthogonal_limit(torch.eye(5).double() + 0.05 * generator, 0.05)
    assert not off.applies and not off.holds


def test_a_constant_skew_matrix_has_the_best_score():
    matrix, other = skew_part(features(3, 3, 0)), features(3, 3, 1)
    x, times = features(3, 1, 2)[:, 0], torch.linspace(0, 2, 30).double()
    check = skew_against_regular(
        lambda z, t: matrix @ z, lambda z, t: other @ z, x, times, features(3, 1, 3)[:, 0], 3
    )
    assert check.holds and abs(float(check.measured) - 1) < 1e-3
