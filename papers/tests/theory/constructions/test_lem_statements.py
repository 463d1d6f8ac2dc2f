"""The emulation theorems beyond their examples, and the sizes of the errors they report."""

import pytest
import torch

from anharmonic_papers.theory.constructions.lem_statements import (
    _method,
    _three_scales,
    _two_scales,
    emulation,
    method_error,
    scales_error,
    two_scales,
)
from anharmonic_papers.theory.constructions.systems import random_rnn, scales_states

F64 = torch.float64


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_on_expanding_systems(seed):
    torch.manual_seed(seed)
    check = emulation(random_rnn(6, 2), torch.randn(30, 2, dtype=F64), scale=1e-2)
    assert check.holds and check.ratio > 0.5


@pytest.mark.parametrize("tau", [0.5, 0.05, 0.005])
def test_two_scales_at_the_scale_of_the_notes(tau):
    """1.6e-9 there, at s = 1e-4 and τ = 0.05 over 200 steps; the order of it for any τ."""
    fast, slow, u = _two_scales(tau)
    assert 2e-10 < float(scales_error(fast, slow, u, scale=1e-4)) < 1e-8


def test_two_scales_as_they_are_written():
    """ψ_n = τ g(φ_n, ψ_{n-1}, u_n) itself, not by way of G."""
    fast, slow, u = _two_scales(0.05)
    (G, tau), units = slow[0], 5
    g = G._replace(
        output=G.output[:, :units],
        inputs=tuple(weight[:units] for weight in G.inputs),
        bias=G.bias[:units],
    )
    phi, psi = torch.zeros(3, dtype=F64), torch.zeros(2, dtype=F64)
    by_G = scales_states(fast, slow, u)[1][0]
    for x, other in zip(u, by_G, strict=True):
        phi = fast(phi, psi, x)
        psi = tau * g(phi, psi, x)
        torch.testing.assert_close(psi, other, rtol=0, atol=1e-9)


def test_three_scales_are_not_two():
    assert not two_scales(*_three_scales(), scales=(1e-2, 1e-3)).applies
    assert float(scales_error(*_three_scales(), scale=1e-4)) < 1e-8


def test_the_gate_of_the_multiscale_method():
    f, G = _method()
    given = {"micro": 0.1, "micro_steps": 5, "step": 0.05, "scale": 1e-3}
    right = float(method_error(f, G, **given))
    wrong = float(method_error(f, G, **given, printed=True))
    assert right < 1e-6
    assert wrong == pytest.approx(0.085, abs=5e-4)
