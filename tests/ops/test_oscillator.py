"""What the C library lacks: schemes, activations, velocity Verlet; the grid of UnICORNN."""

import pytest
import torch

from anharmonic import ops
from anharmonic.ops import OscillatorEquation, State, UnICORNNWeights, unicornn
from anharmonic.ops.unicornn import rounded


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


# ---- the grid of reversible memory ----
def test_rounding():
    spacing = 2.0**-40
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype=torch.float64) * spacing
    assert (rounded(values) / spacing).tolist() == [0, 2, 2, 0, -2, 0]
    large = torch.tensor([4095.0 + spacing, -4095.5 - 2 * spacing], dtype=torch.float64)
    assert torch.equal(rounded(large), large)
    x = torch.tensor([0.3], requires_grad=True)
    rounded(x).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.item() == 1.0


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_leaving_the_grid_is_reported(backend):
    zero = torch.zeros(1, 1, 1)
    weight = UnICORNNWeights(zero[0], zero[0, 0], None, zero[0, 0])

    def run_away(start):
        return unicornn(
            torch.zeros(70, 1, 1), [weight], zero, zero + start, dt=[2.0], frequency=0.0,
            memory="reversible", backend=backend,
        )  # fmt: skip

    words = r"left the grid; use a smaller dt.* memory='chunked'"
    for start in (100.0, -100.0, float("inf"), float("nan")):
        with pytest.raises(OverflowError, match=words):
            run_away(start)
    with pytest.raises(OverflowError, match="1024"):
        run_away(5000.0)  # a start outside
    assert run_away(10.0)[1].item() == 700.0


def test_without_gradients_nothing_differs(make_stack):
    stack, words = make_stack("unicornn"), {"memory": "reversible", "backend": "reference"}
    with torch.no_grad():
        got = stack.call(**words)
    assert all(map(torch.equal, got, stack.call(**words)))
