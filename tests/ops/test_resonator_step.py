"""One exact step: against the matrix exponential, a closed form, and itself."""

import pytest
import torch

from anharmonic.ops import State
from anharmonic.ops.resonator import Propagator, propagator, resonator_step

FREQUENCY = [1e-4, 0.01, 0.7, 1.0, 2.5]
# Over-, critically, nearly critically and underdamped.
Q = [0.05, 0.3, 0.4999, 0.5, 0.5001, 0.7, 5.0, 100.0]
GRID = torch.cartesian_prod(
    torch.tensor(FREQUENCY, dtype=torch.float64), torch.tensor(Q, dtype=torch.float64)
)


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 1.0, 7.0])
def test_the_step_is_the_matrix_exponential(elapsed):
    frequency, q = GRID.T
    found = propagator(frequency, q, elapsed)
    one = torch.ones(len(GRID), dtype=torch.float64)
    # (y, y'/w, u) with u held: d/dt of it is a matrix.
    matrix = torch.zeros(len(GRID), 3, 3, dtype=torch.float64)
    matrix[:, 0, 1], matrix[:, 1, 0] = frequency, -frequency
    matrix[:, 1, 1], matrix[:, 1, 2] = -frequency / q, frequency
    exact = torch.linalg.matrix_exp(matrix * elapsed)
    start = torch.tensor([0.3, -1.2, 0.8], dtype=torch.float64)
    y, z = resonator_step(start[2] * one, State(start[0] * one, start[1] * one), found)
    want = exact @ start
    # 3 s of exponentials of size 1; matrix_exp itself is as exact.
    torch.testing.assert_close(y, want[:, 0], rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(z, want[:, 1], rtol=1e-11, atol=1e-13)


@pytest.mark.fast("2000")
@pytest.mark.parametrize("steps", [2000, 200_000])
def test_constant_input_moves_slow_oscillators_in_float32(steps):
    # In float32, 1 - cos(w) of this oscillator is 5e-9: a product with cos(w) would not move.
    ends = []
    for dtype in (torch.float32, torch.float64):
        step = propagator(torch.tensor([1e-4], dtype=dtype), torch.tensor([0.5], dtype=dtype))
        state = State(torch.zeros(1, dtype=dtype), torch.zeros(1, dtype=dtype))
        for _ in range(steps):
            state = resonator_step(torch.ones(1, dtype=dtype), state, step)
        ends.append(state.y.item())
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
    assert steps < 200_000 or ends[0] == pytest.approx(1.0, abs=1e-3)


def test_gradients_over_all_kinds_of_damping():
    w, q = (v.clone().requires_grad_() for v in GRID[5:].T)  # 1e-4 is beyond finite differences
    elapsed = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *args: tuple(propagator(*args)), (w, q, elapsed))
    assert isinstance(propagator(w, q), Propagator)
