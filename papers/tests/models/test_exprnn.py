"""expRNN: orthogonality, norms, the two initialisations, the modReLU."""

import math

import pytest
import torch
from torch import nn

import anharmonic as ah
from anharmonic_papers.models.base import free_entries, skew_matrix

F64 = torch.float64


def make(H=8, **options):
    torch.manual_seed(0)
    return ah.ExpRNN(3, H, **options, dtype=F64)


@pytest.mark.parametrize("H", [1, 5, 8, 64])
def test_the_recurrent_matrix_is_the_exponential_map_of_torch(H):
    layer = make(H)
    nn.init.normal_(layer.weight_skew_l0)
    linear = nn.utils.parametrizations.orthogonal(
        nn.Linear(H, H, bias=False, dtype=F64),
        orthogonal_map="matrix_exp",
        use_trivialization=False,
    )
    lower = torch.zeros(H, H, dtype=F64)
    rows, columns = torch.tril_indices(H, H, -1)
    lower[rows, columns] = layer.weight_skew_l0.detach()
    linear.parametrizations.weight.original.data = lower
    torch.testing.assert_close(
        layer.prepare(layer.layer_weights()).Q_t.t(), linear.weight, rtol=0, atol=1e-12
    )


def test_float32_keeps_norms_to_its_own_rounding():
    layer = make(64, initialisation="henaff").float()
    Q = layer.prepare(layer.layer_weights()).Q_t.t().double()
    assert (Q @ Q.t() - torch.eye(64, dtype=F64)).abs().max() < 2 * torch.finfo(torch.float32).eps


def test_modrelu_by_hand():
    layer = make(4)
    layer.weight_skew_l0.data.zero_()  # exp(0) = I
    layer.bias_l0.data = torch.tensor([0.5, -0.5, -2.0, 0.0], dtype=F64)
    layer.weight_ih_l0.data = torch.ones(4, 3, dtype=F64)
    for value, expected in ((1.0, [1.5, 0.5, 0.0, 1.0]), (-1.0, [-1.5, -0.5, 0.0, -1.0])):
        output, _ = layer.step(torch.tensor([value, 0.0, 0.0], dtype=F64))
        assert output.tolist() == expected


@pytest.mark.parametrize("initialisation", ["cayley", "henaff"])
def test_angles_of_the_blocks_have_the_printed_distribution(initialisation):
    layer = make(601, initialisation=initialisation)  # an odd size leaves one neuron alone
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


def test_every_skew_matrix_is_met_once():
    torch.manual_seed(0)
    for size in (1, 2, 5, 8):
        M = torch.randn(size, size, dtype=F64)
        skew = M - M.t()
        rows, columns = torch.tril_indices(size, size, -1)
        assert len(rows) == free_entries(size)
        assert torch.equal(skew_matrix(skew[rows, columns], size), skew)


def test_gradient_of_the_skew_matrix():
    entries = torch.arange(6.0, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda e: skew_matrix(e, 4), entries)
