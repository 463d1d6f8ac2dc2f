"""Skew-symmetric matrix fields, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import skew_part
from anharmonic_papers.theory.bounds.skew_fields import (
    mean_jacobian,
    skew_generator,
    skew_generator_printed,
    skew_mean,
)


def network(d, seed, out):
    first, second = features(2 * d, d, seed), features(out, 2 * d, seed + 1)
    return lambda x: second @ torch.sin(first @ x + 0.2)


def skew_field(d, seed):
    inner = network(d, seed, d * d)
    return lambda x: skew_part(inner(x).reshape(d, d))


def point(d):
    return features(d, 1, 8)[:, 0]


@pytest.mark.parametrize("d", [2, 5])
def test_a_field_is_its_mean_jacobian_times_the_point(d):
    assert mean_jacobian(network(d, 0, d), point(d)).holds
    # A Jacobian at the point itself is not the mean.
    x = point(1)
    check = mean_jacobian(lambda x: x**3, x)
    assert check.holds and float(check.bound[0]) == pytest.approx(float(x[0] ** 3))


@pytest.mark.parametrize("d", [2, 3, 5])
def test_skew_fields_have_skew_means_and_generators(d):
    mean = skew_mean(skew_field(d, d), point(d))
    assert mean.applies and mean.holds
    check = skew_generator(skew_field(d, d), point(d))
    assert check.applies and check.holds
    assert (check.measured - check.bound).abs().max() < 1e-12
    printed = skew_generator_printed(skew_field(d, d), point(d))
    assert printed.applies and not printed.holds
    inner = network(d, 0, d * d)
    assert not skew_mean(lambda x: inner(x).reshape(d, d), point(d)).applies


def test_the_proofs_generator_is_right_for_constant_fields():
    constant = skew_part(features(3, 3, 0))
    assert skew_generator_printed(lambda x: constant + 0 * x.sum(), point(3)).holds
