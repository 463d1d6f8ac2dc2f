"""AntisymmetricRNN: spectrum, Euler's order, the gate, and where a step does not grow."""

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def make(name="AntisymmetricRNN", H=6, **options):
    torch.manual_seed(0)
    return getattr(ah, name)(3, H, **options, dtype=F64)


def by_hand(layer, x, gate=None):
    """The equation in double loops, from the full W of the paper."""
    H = layer.hidden_size
    W = torch.zeros(H, H, dtype=F64)
    entries = iter(layer.weight_skew_l0.tolist())
    for row in range(H):
        for column in range(row):
            W[row, column] = next(entries)
    M = W - W.t() - layer.diffusion * torch.eye(H, dtype=F64)
    V, b = layer.weight_ih_l0, layer.bias_l0
    h, hs = torch.zeros(H, dtype=F64), []
    for x_t in x:
        if gate:
            z = torch.sigmoid(M @ h + V[:H] @ x_t + b[:H])
            h = h + layer.dt * z * torch.tanh(M @ h + V[H:] @ x_t + b[H:])
        else:
            h = h + layer.dt * torch.tanh(M @ h + V @ x_t + b)
        hs.append(h)
    return torch.stack(hs)


@pytest.mark.parametrize(
    "name, gate", [("AntisymmetricRNN", False), ("GatedAntisymmetricRNN", True)]
)
def test_the_printed_equations(name, gate):
    layer = make(name, dt=0.3)
    torch.nn.init.normal_(layer.bias_l0)
    x = torch.randn(9, 3, dtype=F64)
    torch.testing.assert_close(layer(x)[0], by_hand(layer, x, gate), rtol=1e-13, atol=1e-14)


def test_default_steps_of_new_layers_do_not_grow():
    torch.manual_seed(0)
    layer = ah.AntisymmetricRNN(1, 128, dtype=F64)
    step = torch.eye(128, dtype=F64) + layer.dt * layer.matrix(layer.layer_weights()).detach()
    assert torch.linalg.eigvals(step).abs().max() <= 1


def test_without_bias_and_with_one_neuron():
    layer = ah.AntisymmetricRNN(3, 1, bias=False, dtype=F64)
    assert [n for n, _ in layer.named_parameters()] == ["weight_ih_l0", "weight_skew_l0"]
    assert layer.weight_skew_l0.shape == (0,)
    assert layer(torch.ones(4, 3, dtype=F64))[0].shape == (4, 1)


def test_steps_and_gaps_that_overshoot_the_leak_are_warned_of():
    with pytest.warns(ah.StabilityWarning, match=r"dt \* diffusion.*dt=1, diffusion=2"):
        make(dt=1.0, diffusion=2.0)
    with pytest.warns(ah.StabilityWarning, match=r"dt must be <= 1.*dt=1.5, diffusion=0.1"):
        make(dt=1.5, diffusion=0.1)
    layer = make(dt=0.1, diffusion=3.0)
    x = torch.zeros(2, 1, 3, dtype=F64)
    layer(x, elapsed=torch.full((2, 1), 6.0, dtype=F64))
    with pytest.warns(ah.StabilityWarning, match="elapsed up to 7"):
        layer(x, elapsed=torch.full((2, 1), 7.0, dtype=F64))
