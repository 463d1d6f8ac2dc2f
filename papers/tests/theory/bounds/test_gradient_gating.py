"""Gradient Gating's range and limits on random networks, beyond the examples."""

import math

import pytest
from torch import nn

from anharmonic import GradientGating
from anharmonic_papers.theory.bounds.gradient_gating import (
    euler_step,
    feature_range,
    feature_range_printed,
    limit_exponent,
    limit_plain,
)
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.graphs import gcn_matrix, random_graph

EDGES = random_graph(9, 5, 3)


class Mixing(nn.Module):
    def __init__(self, scale, seed):
        super().__init__()
        self.weight = scale * features(2, 2, seed)

    def forward(self, x, edge_index):
        return gcn_matrix(EDGES, 9) @ x @ self.weight


def layer(scale=4.0, layers=150, **options):
    settings = {"activation": "tanh", "gate_activation": "tanh"} | options
    return GradientGating([Mixing(scale, n) for n in range(layers)], layers, **settings)


@pytest.mark.parametrize("p", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("size", [0.5, 4.0])
def test_features_keep_their_range(p, size):
    x = size * features(9, 2, 1)
    check = feature_range(layer(p=p), x, EDGES, -1.0, 1.0)
    assert check.applies and check.holds and check.ratio > 0.9
    printed = feature_range_printed(layer(p=p), x, EDGES, -1.0, 1.0)
    assert printed.applies and printed.holds == bool(x.abs().max() <= 1)


def test_inside_the_unit_range_the_printed_bound_holds():
    x = features(9, 2, 1).tanh()
    assert feature_range_printed(layer(), x, EDGES, -1.0, 1.0).holds


def test_relu_is_bounded_from_below_only():
    x = features(9, 2, 1)
    grown = feature_range(layer(1.0, 30, activation="relu"), x, EDGES, 0.0, math.inf)
    assert grown.applies and grown.holds
    # With a range that the activation leaves, the statement does not apply.
    assert not feature_range(layer(1.0, 30, activation="relu"), x, EDGES, -1.0, 1.0).applies


def test_limits_are_the_plain_network_and_g2_is_not():
    x = features(9, 2, 0)
    check = limit_exponent(layer(0.7, 15, rate_exponent=0.0), x, EDGES)
    assert check.applies and check.holds
    gated = limit_exponent(layer(0.7, 15), x, EDGES)
    assert not gated.applies and not gated.holds
    assert not limit_plain(layer(0.7, 15), x, EDGES).applies


@pytest.mark.parametrize("p", [1.0, 2.5])
def test_a_layer_is_one_step_of_euler(p):
    same = GradientGating(Mixing(0.9, 0), 20, p=p, activation="tanh", gate_activation="relu")
    check = euler_step(same, features(9, 2, 0), EDGES)
    assert check.applies and check.holds
    mean = GradientGating(Mixing(0.9, 0), 20, p=p, aggr="mean", activation="tanh")
    off = euler_step(mean, features(9, 2, 0), EDGES)
    assert not off.applies and not off.holds
