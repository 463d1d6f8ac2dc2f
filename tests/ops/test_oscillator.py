"""The compiled backend, by way of coRNN and UnICORNN, beside the reference."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import OscillatorEquation, State

F64 = torch.float64


def stack(alone, bias, layers=2, hidden=5, inputs=3):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, dtype=F64, generator=generator).requires_grad_()

    return [
        ops.OscillatorWeights(
            draw(hidden, hidden if k else inputs),
            draw(hidden) if alone else draw(hidden, hidden),
            draw(hidden) if bias else None,
        )
        for k in range(layers)
    ]


@pytest.mark.covering(2)
@pytest.mark.skipif("native" not in ops.available_backends("oscillator"), reason="no C library")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("memory", ["stored", "chunked"])
def test_native_equals_reference(alone, bias, memory):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(70, 3, 3, dtype=F64, generator=generator).requires_grad_()
    start = torch.randn(2, 2, 3, 5, dtype=F64, generator=generator).requires_grad_()
    gaps = torch.rand(70, 3, dtype=F64, generator=generator).requires_grad_()
    weights = stack(alone, bias)
    flat = [w for weight in weights for w in weight if w is not None]
    results = []
    for backend in ("native", "reference"):
        out, y, z = ops.oscillator(
            x, weights, *start, dt=0.1, elapsed=gaps, lengths=torch.tensor([70, 30, 2]),
            masks=[torch.tensor([[2.0, 0, 2, 2, 0]], dtype=F64).expand(3, 5)], memory=memory,
            backend=backend,
        )  # fmt: skip
        loss = out.sin().sum() + y.cos().sum() + (z * z).sum()
        results.append((out, y, z, torch.autograd.grad(loss, [x, start, gaps, *flat])))
    # 70 steps over 3.5 time units; sums are taken in another order.
    torch.testing.assert_close(results[0], results[1], rtol=1e-11, atol=1e-11)


def test_only_the_reference_runs_other_schemes_and_activations():
    x, zero, weights = torch.ones(2, 3, 3, dtype=F64), torch.zeros(2, 3, 5, dtype=F64), stack(1, 1)
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
