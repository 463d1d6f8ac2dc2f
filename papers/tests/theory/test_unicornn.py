"""Statements of unicornn, beyond their examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory import unicornn


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_sum_over_all_paths(layers):
    # told are ratios of 0.998, 0.996 and 0.98 at 0.05, 0.2 and 0.5 for weights that are not
    for span, off in ((0.05, 0.012), (0.2, 0.02), (0.5, 0.08)):
        check = unicornn.unicornn_long_term_deep(*unicornn.ready(layers, span, 1000))
        assert check.applies and check.holds
        assert float((check.measured / check.bound - 1).abs().max()) < off


@pytest.mark.parametrize(("layers", "off"), [(2, 7e5), (3, 1e11)])
def test_the_printed_formula_is_off_as_told(layers, off):
    check = unicornn.unicornn_long_term_deep_printed(*unicornn.ready(layers, 0.2, 2000))
    ratio = float((check.measured / check.bound).median())
    assert off / 2 < ratio < 2 * off


def test_resonance_passes_the_printed_bound_as_told():
    layer, x = unicornn.resonance(20_000, 0.01)
    t = 0.01 * torch.arange(1, 20_001, dtype=torch.float64)
    so_far = (layer(x)[0].detach().abs()[:, 0, 0] / (2 * (1 + 8 * t)).sqrt()).cummax(0).values
    ratios = [float(so_far[100 * t - 1]) for t in (20, 60, 200)]
    assert [round(ratio, 2) for ratio in ratios] == [0.69, 1.23, 2.24]


def test_exact_over_printed_as_told():
    """Told are 0.98, 0.98, 0.88, 0.22 at α = 2; w and k are not: w = 0.9, k = 2 come near."""
    layer = UnICORNN(1, 1, dt=1e-3, frequency=2.0, dtype=torch.float64)
    values = {"weight_ih": 0.0, "weight_hh": 0.9, "bias": 0.0, "timescale": 0.0}
    with torch.no_grad():
        for name, value in values.items():
            layer.get_parameter(f"{name}_l0").fill_(value)
    y = torch.full((1, 1, 1), 0.05, dtype=torch.float64)
    target, ratios = torch.ones(1, 1, dtype=torch.float64), []
    for steps in (50, 200, 1000, 3000):
        x = torch.zeros(steps, 1, 1, dtype=torch.float64)
        ratios.append(unicornn.unicornn_long_term_printed(layer, x, target, 2, (y, 0 * y)).ratio)
    assert [round(ratio, 2) for ratio in ratios] == [0.98, 0.99, 0.88, 0.22]


def test_kept_memory_grows_by_the_input_only():
    torch.manual_seed(0)
    layer, x = UnICORNN(2, 8, 3, memory="reversible"), torch.randn(400, 5, 2)
    check = unicornn.unicornn_memory(layer, x, lengths=(100, 200, 400))
    assert check.applies and check.holds
    growth = check.measured.diff() / torch.tensor([100.0, 200.0])
    assert growth.tolist() == [10.0, 10.0]  # batch times features, nothing for states


def test_step_sizes_of_layers():
    layer = UnICORNN(2, 3, 2, dt=[0.1, 0.2])
    with torch.no_grad():
        layer.timescale_l1.zero_()
    torch.testing.assert_close(unicornn.step_sizes(layer, 1), torch.full((3,), 0.1))


def test_without_restoring_force_a_saturating_input_reaches_the_bounds():
    layer, x = unicornn.pushed_free()
    path = unicornn.trajectory(layer, x)
    for found, bound in zip(path, unicornn.state_bounds(layer, len(x)), strict=True):
        shares = found[1:].flatten(1).abs() / bound[1:]
        assert 0.999 < float(shares.min()) and float(shares.max()) < 1 + 1e-12
