"""Neural oscillators contain undamped coRNN and UnICORNN, and networks of pendula (thesis, 4.1)."""

import itertools
import math

import pytest
import torch

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


SIZES = (3, 2, 4)
"""Pendula in blocks, the heaviest first."""


def pendula(epsilon):
    """M and K + C, whose masses and couplings fall by epsilon from block to block."""
    block = [k for k, size in enumerate(SIZES) for _ in range(size)]
    level = torch.tensor([epsilon**k for k in block], dtype=F64)
    draw = torch.rand(9, 9, dtype=F64, generator=torch.Generator().manual_seed(0))
    couplings = torch.zeros_like(draw)
    for a, b in itertools.combinations(range(9), 2):
        if block[b] - block[a] == 1:
            couplings[a, b] = couplings[b, a] = -0.5 * draw[a, b] * level[b]
    masses = level * (1 + draw[0])
    restoring = torch.diag(masses / (1 + draw[1]) - couplings.sum(1)) + couplings
    return masses, restoring


def verlet(pull, forces, dt, q, v):
    """q of q'' = pull(q) + force after every step."""
    found = []
    for force in forces:
        v = v + dt / 2 * (pull(q) + force)
        q = q + dt * v
        v = v + dt / 2 * (pull(q) + force)
        found.append(q)
    return torch.stack(found)


def forces_on(masses, steps, dt):
    """Smooth forces, each in proportion to its mass."""
    t = (torch.arange(steps, dtype=F64) + 0.5) * dt
    return (0.5 * torch.sin(t[:, None, None] + noise(9, seed=3)) * masses).expand(-1, 2, -1)


def in_layers(P):
    """P without what a block feels of lighter ones, and without couplings inside a block."""
    kept = torch.diag(P.diagonal())
    kept[3:5, :3], kept[5:, 3:5] = P[3:5, :3], P[5:, 3:5]
    return kept


def test_angles_of_pendula_are_transformed_oscillators():
    """M theta'' = -(K + C) sin theta + F with theta = P y is (4.8): step for step."""
    masses, restoring = pendula(0.3)
    P, forces = restoring / masses[:, None], forces_on(masses, 400, 0.05)
    y0, z0 = noise(2, 9, seed=1), noise(2, 9, seed=2)
    angles = verlet(lambda q: -torch.sin(q) @ P.T, forces / masses, 0.05, y0 @ P.T, z0 @ P.T)
    pushes = torch.linalg.solve(restoring, forces.mT).mT
    y = verlet(lambda q: -torch.sin(q @ P.T), pushes, 0.05, y0, z0)
    assert angles.abs().max() > 1  # far from linear
    # The pendula are chaotic: roundings grow over the 20 time units.
    torch.testing.assert_close(y @ P.T, angles, rtol=0, atol=1e-9)


def test_ordered_pendula_are_layers_up_to_the_order():
    """(4.9): what a block feels of the lighter ones is O(epsilon), and so is the error."""
    errors = []
    for epsilon in (0.08, 0.04, 0.02, 0.01):
        masses, restoring = pendula(epsilon)
        P = restoring / masses[:, None]
        pushes = torch.linalg.solve(restoring, forces_on(masses, 300, 0.02).mT).mT
        rest = torch.zeros(2, 9, dtype=F64)
        y, layered = (
            verlet(lambda q, A=A: -torch.sin(q @ A.T), pushes, 0.02, rest, rest)
            for A in (P, in_layers(P))
        )
        errors.append(((layered - y).abs().max() / y.abs().max()).item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(order - 1) < 0.2 for order in orders), (orders, errors)
    assert 0 < errors[-1] < 0.02


@pytest.mark.usefixtures("loops")
def test_pendula_without_force_are_the_layers():
    """(4.8) is a NeuralOscillator to rounding; (4.9) in layers differs by how dt is cut."""
    masses, restoring = pendula(0.3)
    P = restoring / masses[:, None]
    y0, z0 = noise(2, 9, seed=1), noise(2, 9, seed=2)
    options = {"bias": False, "activation": "sin", "scheme": "velocity-verlet", "dtype": F64}
    differences = []
    for steps in (50, 100, 200):
        dt, nothing = 4.0 / steps, torch.zeros(steps, 2, 9, dtype=F64)
        layer = ah.NeuralOscillator(1, 9, dt=dt, **options)
        layer.load_state_dict({"weight_ih_l0": torch.zeros(9, 1), "weight_hh_l0": -P})
        output, _ = layer(noise(steps, 2, 1), (y0[None], z0[None]))
        y = verlet(lambda q: -torch.sin(q @ P.T), nothing, dt, y0, z0)
        torch.testing.assert_close(output, y, rtol=0, atol=1e-12)
        A = in_layers(P)
        layers = ah.MultiLayerNeuralOscillator(1, 4, 3, dt=dt, hidden_sizes=list(SIZES), **options)
        diagonals = A.diagonal().split(SIZES)
        weights = {f"weight_hh_l{k}": -part for k, part in enumerate(diagonals)}
        weights |= {"weight_ih_l0": torch.zeros(3, 1)}
        weights |= {"weight_ih_l1": -A[3:5, :3], "weight_ih_l2": -A[5:, 3:5]}
        layers.load_state_dict(weights)
        start = [
            torch.stack(
                [torch.nn.functional.pad(p, (0, 4 - p.shape[1])) for p in q.split(SIZES, 1)]
            )
            for q in (y0, z0)
        ]
        output, _ = layers(noise(steps, 2, 1), tuple(start))
        y = verlet(lambda q, A=A: -torch.sin(q @ A.T), nothing, dt, y0, z0)
        differences.append((output - y[..., -4:]).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(differences)]
    assert all(abs(order - 2) < 0.1 for order in orders), (orders, differences)
