"""Initial weights and bounds of the rival models, and where their steps stay stable."""

import math

import pytest
import torch

import anharmonic as ah
from anharmonic_papers.models.base import skew_matrix

F64 = torch.float64


def make(name, H=6, *more, **options):
    torch.manual_seed(0)
    return getattr(ah, name)(3, H, *more, **options, dtype=F64)


def recurrent_matrix(layer):
    return layer.prepare(layer.layer_weights()).Q_t.t()


def test_default_steps_of_new_antisymmetric_layers_do_not_grow():
    torch.manual_seed(0)
    layer = ah.AntisymmetricRNN(1, 128, dtype=F64)
    step = torch.eye(128, dtype=F64) + layer.dt * layer.matrix(layer.layer_weights()).detach()
    assert torch.linalg.eigvals(step).abs().max() <= 1


@pytest.mark.parametrize("name", ["AntisymmetricRNN", "ExpRNN"])
def test_one_neuron_without_bias(name):
    layer = make(name, 1, bias=False)
    assert [n for n, _ in layer.named_parameters()] == ["weight_ih_l0", "weight_skew_l0"]
    assert layer.weight_skew_l0.shape == (0,)
    assert layer(torch.ones(4, 3, dtype=F64))[0].shape == (4, 1)


def test_steps_and_gaps_that_overshoot_the_leak_are_warned_of():
    with pytest.warns(ah.StabilityWarning, match=r"dt \* diffusion.*dt=1, diffusion=2"):
        make("AntisymmetricRNN", dt=1.0, diffusion=2.0)
    with pytest.warns(ah.StabilityWarning, match=r"dt must be <= 1.*dt=1.5, diffusion=0.1"):
        make("AntisymmetricRNN", dt=1.5, diffusion=0.1)
    layer = make("AntisymmetricRNN", dt=0.1, diffusion=3.0)
    x = torch.zeros(2, 1, 3, dtype=F64)
    layer(x, elapsed=torch.full((2, 1), 6.0, dtype=F64))
    with pytest.warns(ah.StabilityWarning, match="elapsed up to 7"):
        layer(x, elapsed=torch.full((2, 1), 7.0, dtype=F64))


def test_exprnn_in_float32_keeps_norms_to_its_own_rounding():
    Q = recurrent_matrix(make("ExpRNN", 64, initialisation="henaff").float()).double()
    assert (Q @ Q.t() - torch.eye(64, dtype=F64)).abs().max() < 2 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("initialisation", ["cayley", "henaff"])
def test_angles_of_the_blocks_have_the_printed_distribution(initialisation):
    # An odd size leaves one neuron alone.
    layer = make("ExpRNN", 601, initialisation=initialisation)
    A = skew_matrix(layer.weight_skew_l0.detach(), 601)
    s = A.diagonal(1)[::2]  # blocks (0 s; -s 0)
    assert torch.count_nonzero(A) == 2 * len(s) == 600
    if initialisation == "henaff":
        u = (s / math.pi + 1) / 2
    else:
        assert (s <= 0).all()
        u = torch.acos((1 - s**2) / (1 + s**2)) / (math.pi / 2)  # s^2 = (1 - cos u) / (1 + cos u)
    # 300 draws of U(0, 1): Kolmogorov's distance is below 1.63 / sqrt(300) in 99 of 100 cases.
    grid = (torch.arange(300, dtype=F64) + 0.5) / 300
    assert (u.sort().values - grid).abs().max() < 1.63 / math.sqrt(300)


def test_the_bound_of_indrnn_holds_and_an_unbounded_layer_has_none():
    x = torch.zeros(10, 3, dtype=F64)
    h = torch.ones(1, 5, dtype=F64)
    for longest, end in ((10, 2.0), (None, 3.0**10)):
        layer = make("IndRNN", 5, longest_dependency=longest, bias=False)
        layer.weight_hh_l0.data.fill_(3.0)
        output, _ = layer(x, (h,))
        torch.testing.assert_close(output[-1], torch.full((5,), end, dtype=F64))


def test_the_last_layer_of_indrnn_starts_with_long_memories_and_those_below_mix():
    layer = make("IndRNN", 400, 2, bidirectional=True, longest_dependency=7)
    bound = 2 ** (1 / 7)
    for suffix in ("", "_reverse"):
        for name, low in ((f"weight_hh_l0{suffix}", 0), (f"weight_hh_l1{suffix}", 1 / bound)):
            w = getattr(layer, name)
            assert low <= w.min() < low + 0.02 and bound - 0.02 < w.max() <= bound
    plain = make("IndRNN", 400).weight_hh_l0
    assert 0 <= plain.min() < 0.02 and 0.98 < plain.max() <= 1


@pytest.mark.parametrize("hidden", [1, 2, 5, 40])
def test_every_direction_of_a_new_lipschitz_layer_decays(hidden):
    for seed in range(20):
        torch.manual_seed(seed)
        layer = ah.LipschitzRNN(3, hidden, dtype=F64)
        A = layer.blended(layer.weight_linear_l0).detach()
        assert torch.linalg.eigvalsh((A + A.t()) / 2).max() < -0.05 + 1e-12
