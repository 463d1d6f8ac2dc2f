"""Neural oscillators contain undamped coRNN and UnICORNN, and networks of pendula (thesis, 4.1)."""

import math

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("layers, bidirectional", [(1, False), (3, False), (2, True)])
@pytest.mark.parametrize("bias", [True, False])
def test_undamped_cornn_and_unicornn_are_neural_oscillators(layers, bidirectional, bias):
    """+tanh in coRNN: the weights are the same. -tanh in UnICORNN: all weights change sign."""
    torch.manual_seed(0)
    shared = {"bias": bias, "bidirectional": bidirectional, "dtype": F64}
    cornn = ah.CoRNN(2, 5, layers, dt=0.1, frequency=0.0, damping=0.0, **shared)
    unicornn = ah.UnICORNN(2, 5, layers, dt=0.3, frequency=0.0, **shared)
    with torch.no_grad():
        for name, parameter in (*cornn.named_parameters(), *unicornn.named_parameters()):
            if name.startswith("weight_hz"):
                parameter.zero_()
            elif name.startswith("timescale"):
                parameter.fill_(-0.4)
            elif name.startswith("bias"):
                parameter.copy_(noise(5))
    x = noise(60, 3, 2)
    for other, kind, dt, sign in (
        (cornn, ah.NeuralOscillator, 0.1, 1),
        (unicornn, ah.MultiLayerNeuralOscillator, 0.3 / (1 + math.exp(0.4)), -1),
    ):
        layer = kind(2, 5, layers, dt=dt, **shared)
        weights = {k.replace("weight_hy", "weight_hh"): v for k, v in other.state_dict().items()}
        layer.load_state_dict({k: sign * weights[k] for k in layer.state_dict()})
        for backend in ("auto", "reference"):
            with ah.use_backend(backend):
                output, state = layer(x)
                expected, last = other(x)
            assert expected.abs().max() > 0.1
            torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
            torch.testing.assert_close(tuple(state), tuple(last), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("loops")
def test_pendula_without_force_are_the_layers():
    """(4.8) is a NeuralOscillator to rounding; (4.9) in layers differs by how dt is cut."""
    sizes = 3, 2, 4
    P = 1.5 * torch.eye(9, dtype=F64) + 0.2 * noise(9, 9, seed=3)
    in_layers = torch.diag(P.diagonal())  # a block feels the one before it only
    in_layers[3:5, :3], in_layers[5:, 3:5] = P[3:5, :3], P[5:, 3:5]
    weights = {f"weight_hh_l{k}": -part for k, part in enumerate(P.diagonal().split(sizes))}
    weights |= {"weight_ih_l0": torch.zeros(3, 1)}
    weights |= {"weight_ih_l1": -P[3:5, :3], "weight_ih_l2": -P[5:, 3:5]}
    y0, z0 = noise(2, 9, seed=1), noise(2, 9, seed=2)
    options = {"bias": False, "activation": "sin", "scheme": "velocity-verlet", "dtype": F64}
    differences = []
    for steps in (50, 200):
        dt, x = 4.0 / steps, noise(steps, 2, 1)
        layer = ah.NeuralOscillator(1, 9, dt=dt, **options)
        layer.load_state_dict({"weight_ih_l0": torch.zeros(9, 1), "weight_hh_l0": -P})
        output, _ = layer(x, (y0[None], z0[None]))
        torch.testing.assert_close(output, verlet(P, steps, dt, y0, z0), rtol=0, atol=1e-12)
        layers = ah.MultiLayerNeuralOscillator(1, 4, 3, dt=dt, hidden_sizes=list(sizes), **options)
        layers.load_state_dict(weights)
        start = [pad_sequence([p.T for p in q.split(sizes, 1)]).permute(1, 2, 0) for q in (y0, z0)]
        output, _ = layers(x, tuple(start))
        last = verlet(in_layers, steps, dt, y0, z0)[..., -4:]
        differences.append((output - last).abs().max().item())
    assert math.log(differences[0] / differences[1], 4) == pytest.approx(2, abs=0.1)


def verlet(P, steps, dt, q, v):
    """q of q'' = -sin(P q) after every step."""
    found = []
    for _ in range(steps):
        v = v - dt / 2 * torch.sin(q @ P.T)
        q = q + dt * v
        v = v - dt / 2 * torch.sin(q @ P.T)
        found.append(q)
    return torch.stack(found)
