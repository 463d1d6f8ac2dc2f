"""The pieces of the constructions against what they stand for."""

import pytest
import torch

from anharmonic_papers.theory.networks import (
    identity,
    plus_identity,
    product,
    random_network,
    square,
)

F64 = torch.float64


@pytest.mark.parametrize("scale", [1e-1, 1e-2])
def test_identity_and_square_are_wrong_by_a_third_of_s_squared(scale):
    x = torch.linspace(-1, 1, 11, dtype=F64)[:, None]
    off = x - identity(1, scale)(x), x**2 - square(scale)(x)
    torch.testing.assert_close(off[0], scale**2 * x**3 / 3, rtol=0, atol=scale**4)
    torch.testing.assert_close(off[1], scale**2 * x**4 / 3, rtol=0, atol=scale**4 + 1e-10)


def test_the_product_of_two_numbers():
    pairs = torch.cartesian_prod(*[torch.linspace(-1, 1, 5, dtype=F64)] * 2)
    torch.testing.assert_close(product(1e-3)(pairs)[:, 0], pairs.prod(1), rtol=0, atol=2e-6)


def test_plus_identity_adds_a_multiple_of_one_argument():
    torch.manual_seed(0)
    network = random_network(2, 5, (3, 2))
    h, c = torch.randn(4, 3, dtype=F64), torch.randn(4, 2, dtype=F64)
    added = plus_identity(network, 1, -19.0, 1e-5)(h, c)
    torch.testing.assert_close(added, network(h, c) - 19 * c, rtol=0, atol=1e-7)
