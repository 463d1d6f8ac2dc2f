"""expRNN: orthogonality, norms, the two initialisations, the modReLU."""

import math

import pytest
import torch
from torch import nn

import anharmonic as ah
from anharmonic_papers.models.skew import skew_matrix

F64 = torch.float64


def make(H=8, **options):
    torch.manual_seed(0)
    return ah.ExpRNN(3, H, **options, dtype=F64)


@pytest.mark.covering
@pytest.mark.parametrize("H", [1, 5, 8, 64])
@pytest.mark.parametrize("initialisation", ["cayley", "henaff"])
def test_the_recurrent_matrix_is_a_rotation(H, initialisation):
    layer = make(H, initialisation=initialisation)
    nn.init.normal_(layer.weight_skew_l0)  # anywhere, not at the start only
    Q = layer.prepare(layer.layer_weights()).Q_t.t()
    assert (Q @ Q.t() - torch.eye(H, dtype=F64)).abs().max() < 1e-12
    assert abs(torch.linalg.det(Q) - 1) < 1e-12


def test_it_is_the_exponential_map_of_torch():
    layer = make(5)
    nn.init.normal_(layer.weight_skew_l0)
    linear = nn.utils.parametrizations.orthogonal(
        nn.Linear(5, 5, bias=False, dtype=F64),
        orthogonal_map="matrix_exp",
        use_trivialization=False,
    )
    lower = torch.zeros(5, 5, dtype=F64)
    rows, columns = torch.tril_indices(5, 5, -1)
    lower[rows, columns] = layer.weight_skew_l0.detach()
    linear.parametrizations.weight.original.data = lower
    torch.testing.assert_close(
        layer.prepare(layer.layer_weights()).Q_t.t(), linear.weight, rtol=0, atol=1e-13
    )


def test_float32_keeps_norms_to_its_own_rounding():
    layer = make(64, initialisation="henaff").float()
    Q = layer.prepare(layer.layer_weights()).Q_t.t().double()
    assert (Q @ Q.t() - torch.eye(64, dtype=F64)).abs().max() < 2 * torch.finfo(torch.float32).eps


@pytest.mark.usefixtures("loops")
def test_without_input_and_bias_the_norm_stays_over_1000_steps():
    layer = make(initialisation="henaff", bias=False)
    h = torch.randn(1, 2, 8, dtype=F64)
    output, _ = layer(torch.zeros(1000, 2, 3, dtype=F64), (h,))
    torch.testing.assert_close(
        output.norm(dim=-1), h.norm(dim=-1).expand(1000, 2), rtol=1e-12, atol=0
    )


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


def test_unknown_initialisation():
    with pytest.raises(ValueError, match="initialisation must be one of 'cayley', 'henaff'"):
        make(initialisation="henaf")
