"""Schemes and activations that the C library lacks, and a step of velocity Verlet."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import OscillatorEquation, State


def test_only_the_reference_runs_other_schemes_and_activations():
    x, zero, W = torch.ones(2, 3, 3), torch.zeros(1, 3, 5), torch.ones(5, 3)
    weights = [ops.OscillatorWeights(W, torch.ones(5), None)]
    for words in ({"scheme": "velocity-verlet"}, {"activation": "sin"}):
        ops.oscillator(x, weights, zero, zero, dt=0.1, **words)
        if "native" in ops.available_backends("oscillator"):
            with pytest.raises(ValueError, match=next(iter(words.values()))):
                ops.oscillator(x, weights, zero, zero, dt=0.1, backend="native", **words)
        with pytest.raises(ValueError, match="reversible"):
            ops.oscillator(x, weights, zero, zero, dt=0.1, memory="reversible", **words)


@pytest.mark.parametrize("activation", ["tanh", "sin", "identity"])
def test_velocity_verlet_goes_back_the_way_it_came(activation):
    torch.manual_seed(0)
    u, y, z = torch.randn(3, 2, 4, dtype=torch.float64)
    W = torch.randn(4, 4, dtype=torch.float64)
    verlet = OscillatorEquation(0.3, "velocity-verlet", activation)
    there = verlet.step(u, State(y, z), W, 0.3)
    back = verlet.step(u, State(there.y, -there.z), W, 0.3)
    torch.testing.assert_close(back.y, y, atol=1e-12, rtol=0)
    torch.testing.assert_close(back.z, -z, atol=1e-12, rtol=0)
    assert (there.y - y).abs().max() > 0.1
    # A layer above sees the middle of the step.
    seen = verlet.passed_up(there.y[None], State(y, z))[0]
    half = y + 0.15 * (z + 0.15 * verlet._force(u, y, W))
    torch.testing.assert_close(seen, half)
    assert verlet.shapes(4, 4)["weight_hh"] == (4, 4)
