"""Depth and UnICORNN's gradients, beyond the examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory.bounds.unicornn_depth import (
    depth_order,
    long_term_deep,
    long_term_deep_printed,
    residual_order,
)
from anharmonic_papers.theory.bounds.unicornn_long_term import ready


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_sum_over_all_paths(layers):
    # told are ratios of 0.998, 0.996 and 0.98 at 0.05, 0.2 and 0.5 for weights that are not
    for span, off in ((0.05, 0.012), (0.2, 0.02), (0.5, 0.08)):
        check = long_term_deep(*ready(layers, span, 1000))
        assert check.applies and check.holds
        assert float((check.measured / check.bound - 1).abs().max()) < off


@pytest.mark.parametrize(("layers", "off"), [(2, 7e5), (3, 1e11)])
def test_the_printed_formula_is_off_as_told(layers, off):
    check = long_term_deep_printed(*ready(layers, 0.2, 2000))
    ratio = float((check.measured / check.bound).median())
    assert off / 2 < ratio < 2 * off


def test_the_printed_formula_is_right_for_one_layer():
    assert long_term_deep_printed(*ready(1, 0.2, 500)).holds


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_the_order_is_one_at_any_depth(layers):
    torch.manual_seed(layers)
    check = depth_order(UnICORNN(1, 3, layers, dtype=torch.float64))
    assert float(check.measured) == pytest.approx(1, abs=0.15)
    assert float(check.bound) == 2 * layers - 1


@pytest.mark.parametrize(
    ("layers", "skipped", "claimed"), [(7, 3, 5), (6, 3, 2 + 12 - 6 - 1), (3, 2, 2 + 6 - 4 - 1)]
)
def test_the_order_with_skips(layers, skipped, claimed):
    torch.manual_seed(0)
    check = residual_order(UnICORNN(1, 3, layers, skipped_layers=skipped, dtype=torch.float64))
    assert float(check.bound) == claimed
    assert float(check.measured) == pytest.approx(1, abs=0.15)


def test_plain_stacks_are_refused_by_the_residual_statement():
    with pytest.raises(ValueError, match="residual stacking; got skipped_layers=None"):
        residual_order(UnICORNN(1, 3, 2))


def test_skips_and_long_times_are_outside():
    layer, x, target, step, state = ready(3, 0.9, 100)
    assert not long_term_deep(layer, x, target, step, state).applies
    skips = UnICORNN(2, 3, 3, dt=1e-3, skipped_layers=2, dtype=torch.float64)
    assert not long_term_deep(skips, x, target, step, state).applies
