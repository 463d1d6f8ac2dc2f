"""Jacobians that are skew-symmetric, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import skew_part
from anharmonic_papers.theory.bounds.skew_jacobians import (
    cross_product,
    skew_affine,
    skew_affine_field,
    skew_no_jacobian,
)


def skew_field(d, seed):
    first, second = features(2 * d, d, seed), features(d * d, 2 * d, seed + 1)
    return lambda x: skew_part((second @ torch.sin(first @ x + 0.2)).reshape(d, d))


def point(d):
    return features(d, 1, 8)[:, 0]


@pytest.mark.parametrize("d", [2, 3, 5])
def test_no_changing_skew_field_is_a_jacobian(d):
    check = skew_no_jacobian(skew_field(d, d), point(d))
    assert check.applies and check.holds
    constant = skew_part(features(d, d, 0))
    assert not skew_no_jacobian(lambda x: constant, point(d)).applies


def test_the_example_misses_by_one():
    def example(x):
        zero = 0 * x[0]
        return torch.stack([torch.stack([zero, x[0]]), torch.stack([-x[0], zero])])

    assert skew_no_jacobian(example, point(2)).measured == 1


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_only_zero_is_antisymmetric_and_symmetric(d):
    check = skew_affine(d)
    assert check.holds and check.measured == d**3


def test_skew_affine_needs_a_dimension():
    with pytest.raises(ValueError, match="d must be"):
        skew_affine(0)


def test_fields_with_skew_jacobians_are_affine_and_others_are_outside():
    matrix = skew_part(features(5, 5, 0))
    check = skew_affine_field(lambda x: matrix @ x - 2, features(7, 5, 1))
    assert check.applies and check.holds
    # A(z)z with a changing skew A has a symmetric part in its Jacobian.
    field = skew_field(5, 0)
    off = skew_affine_field(lambda x: field(x) @ x, features(7, 5, 1))
    assert not off.applies and not off.holds


def test_the_cross_product_vanishes_on_its_axis():
    for seed in range(3):
        check = cross_product(5 * features(3, 1, seed)[:, 0])
        assert check.applies and check.holds
