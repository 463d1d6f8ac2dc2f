"""Solves: closed forms, counts of evaluations, refusals."""

import math
import sys

import pytest
import torch

from anharmonic.nn.ode.solve import ADAPTIVE, FIXED, Solver, StiffError, solve

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
F64 = torch.float64


def solver(method, tolerance=1e-9, **words):
    step = 0.01 if method in FIXED else None
    return Solver(method, tolerance, tolerance, step)._replace(**words)


def spin(t, z):
    """z' = J z, a rotation."""
    return torch.stack((z[..., 1], -z[..., 0]), dim=-1)


@pytest.mark.parametrize("method", [*ADAPTIVE, *FIXED])
def test_rotation_in_closed_form(method):
    times = torch.linspace(0, 2, 5, dtype=F64)
    start, tolerance = torch.tensor([1.0, 0.0], dtype=F64), 1e-4 if "heun" in method else 1e-7
    path, evaluations = solve(spin, start, times, solver(method, tolerance))
    exact = torch.stack((times.cos(), -times.sin()), dim=-1)
    # Euler's steps of 0.01 are right to 1e-2, the others' and adaptive ones to 1e-3 and better.
    assert (path - exact).abs().max() < (2e-2 if method == "euler" else 1e-3)
    assert evaluations > 0


def test_evaluations_grow_with_the_frequency_and_are_those_made():
    counts, times, calls = [], torch.tensor([0.0, 1.0], dtype=F64), []
    for rate in (1.0, 10.0):

        def fast(t, z, rate=rate):
            calls.append(t)
            return rate * spin(t, z)

        counts.append(solve(fast, torch.ones(2, dtype=F64), times, Solver())[1])
    assert sum(counts) == len(calls) and counts[1] > 2 * counts[0]


def test_tuples_are_solved_together():
    ends = torch.tensor([0.0, 1.0], dtype=F64)
    start = (torch.ones(2, dtype=F64), torch.ones(3, dtype=F64))
    (a, b), _ = solve(lambda t, z: (-z[0], z[1]), start, ends, solver("dopri5"))
    assert a[-1].sub(math.exp(-1)).abs().max() < 1e-7 and b[-1].sub(math.e).abs().max() < 1e-7


BLOW_UP, STIFF = (lambda t, z: 50 * z * z), (lambda t, z: -1e9 * z)


@pytest.mark.parametrize(
    "dynamics, words, came",
    [
        (BLOW_UP, Solver(), "a step of"),
        (STIFF, Solver(max_evaluations=500), "more than max_evaluations=500"),
        (BLOW_UP, Solver("rk4", step_size=0.01), "a state that is not finite"),
        (lambda t, z: z * math.nan, Solver(), "a step of"),
        # The memory for these steps is never taken.
        (lambda t, z: -z, Solver("euler", step_size=1e-30), "more than max_evaluations=10000"),
    ],
)
def test_too_stiff_is_one_error_that_says_what_to_change(dynamics, words, came):
    with pytest.raises(StiffError) as caught:
        solve(dynamics, torch.ones(1), torch.tensor([0.0, 1.0]), words)
    text = str(caught.value)
    for part in (f"solver {words.method!r}", came, "loosen rtol", "matrix_activation='tanh'"):
        assert part in text


class Decay(torch.nn.Module):
    """Slow while values are asked for, another while gradients are."""

    def __init__(self, backwards):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.ones(1, dtype=F64))
        self.backwards = backwards

    def forward(self, t, z):
        return -self.rate * z * (self.backwards if torch.is_grad_enabled() else 1.0)


@pytest.mark.parametrize("rate, came", [(1e9, "max_evaluations=200"), (math.nan, "not finite")])
def test_too_stiff_backwards_is_the_same_error(rate, came):
    words = Solver(adjoint=True, max_evaluations=200)
    times = torch.tensor([0.0, 1.0], dtype=F64)
    path, _ = solve(Decay(rate), torch.ones(1, dtype=F64), times, words)
    with pytest.raises(StiffError, match=came):
        path[-1].sum().backward()


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r'torchdiffeq; .*pip install "anharmonic\[ode\]"'):
        solve(spin, torch.ones(2), torch.tensor([0.0, 1.0]), Solver())
