"""Networks of pendula: a closed form, and the neural oscillators (4.8) and (4.9) they compute."""

import itertools
import math

import pytest
import torch

from anharmonic_papers.models.pendula import PendulumNetwork

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def tensor(*values):
    return torch.tensor(values, dtype=F64)


def ordered(epsilon, sizes=(3, 2, 4)):
    """Blocks whose masses, and couplings to the block before, fall by a factor epsilon."""
    generator = torch.Generator().manual_seed(0)
    block = [k for k, size in enumerate(sizes) for _ in range(size)]
    level = tensor(*(epsilon**k for k in block))
    draw = torch.rand(len(block), len(block), dtype=F64, generator=generator)
    couplings = torch.zeros_like(draw)
    for a, b in itertools.combinations(range(len(block)), 2):
        if block[b] - block[a] == 1:
            couplings[a, b] = couplings[b, a] = -0.5 * draw[a, b] * level[b]
    return PendulumNetwork(level * (1 + draw[0]), couplings, lengths=1 + draw[1], gravity=1.0)


def forces_for(network, steps, dt):
    """Smooth forces, each in proportion to its mass."""
    t = (torch.arange(steps, dtype=F64) + 0.5) * dt
    phases = noise(len(network.masses), seed=3)
    return (0.5 * torch.sin(t[:, None, None] + phases) * network.masses).expand(-1, 2, -1)


def test_one_pendulum_on_its_separatrix():
    """theta = 4 arctan(exp(omega t)) - pi from theta = 0 with the velocity 2 omega; order 2."""
    network = PendulumNetwork(tensor(3.0), tensor([0.0]), lengths=tensor(2.0), gravity=8.0)
    errors = []
    for steps in (50, 100, 200):
        angles, state = network.simulate(
            torch.zeros(steps, 1, 1, dtype=F64),
            dt=1.5 / steps,
            state=(tensor([0.0]), tensor([4.0])),
        )
        exact = 4 * math.atan(math.exp(2 * 1.5)) - math.pi
        errors.append(abs(angles[-1].item() - exact))
        assert torch.equal(angles[-1], state.y)
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(order - 2) < 0.1 for order in orders), orders


def test_the_coupling_acts_on_differences():
    """(C sin theta)_l is the sum of C_ll' (sin theta_l' - sin theta_l); K = mu g / length."""
    network = ordered(0.3)
    C, sines = network.couplings, torch.sin(noise(9))
    by_hand = [sum(C[a, b] * (sines[b] - sines[a]) for b in range(9) if b != a) for a in range(9)]
    torch.testing.assert_close(C @ sines, torch.stack(by_hand), rtol=1e-12, atol=1e-14)
    k = network.restoring.diagonal() - C.diagonal()
    torch.testing.assert_close(k, network.masses / network.lengths, rtol=1e-12, atol=0)


def test_angles_are_the_transformed_oscillators():
    """(4.8) exactly: theta = P y, step for step, with forces and from a given state."""
    network = ordered(0.3)
    forces, y0, z0 = forces_for(network, 400, 0.05), noise(2, 9, seed=1), noise(2, 9, seed=2)
    P = network.transform.T
    angles, state = network.simulate(forces, dt=0.05, state=(y0 @ P, z0 @ P))
    y, last = network.simulate_reduced(forces, dt=0.05, state=(y0, z0))
    assert angles.abs().max() > 1  # far from linear
    # The pendula are chaotic: roundings grow over the 20 time units.
    torch.testing.assert_close(y @ P, angles, rtol=0, atol=1e-9)
    torch.testing.assert_close(last.z @ P, state.z, rtol=0, atol=1e-9)
    unforced, _ = network.simulate(0 * forces, dt=0.05, state=(y0 @ P, z0 @ P))
    assert (unforced - angles).abs().max() > 0.1


def test_layers_of_neural_oscillators_up_to_the_ordering():
    """(4.9): what a block feels of the lighter ones is O(epsilon), and so is the error."""
    errors = []
    for epsilon in (0.08, 0.04, 0.02, 0.01):
        network = ordered(epsilon)
        forces = forces_for(network, 300, 0.02)
        y, _ = network.simulate_reduced(forces, dt=0.02)
        layered, _ = network.simulate_reduced(forces, dt=0.02, sizes=(3, 2, 4))
        errors.append(((layered - y).abs().max() / y.abs().max()).item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(order - 1) < 0.2 for order in orders), (orders, errors)
    assert 0 < errors[-1] < 0.02


@pytest.mark.usefixtures("loops")
def test_without_force_they_are_the_layers():
    """(4.8) is a NeuralOscillator to rounding; (4.9) in layers differs by how dt is cut."""
    network, sizes = ordered(0.3), (3, 2, 4)
    y0, z0 = noise(2, 9, seed=1), noise(2, 9, seed=2)
    differences = []
    for steps in (50, 100, 200):
        dt = 4.0 / steps
        nothing = torch.zeros(steps, 2, 9, dtype=F64)
        y, _ = network.simulate_reduced(nothing, dt=dt, state=(y0, z0))
        layer = network.oscillator(dt=dt, scheme="velocity-verlet")
        output, _ = layer(noise(steps, 2, 1), (y0[None], z0[None]))
        torch.testing.assert_close(output, y, rtol=0, atol=1e-12)
        y, _ = network.simulate_reduced(nothing, dt=dt, state=(y0, z0), sizes=sizes)
        layers = network.multilayer_oscillator(sizes, dt=dt, scheme="velocity-verlet")
        start = [
            torch.stack([
                torch.nn.functional.pad(part, (0, 4 - part.shape[1]))
                for part in whole.split(sizes, dim=1)
            ])
            for whole in (y0, z0)
        ]  # fmt: skip
        output, _ = layers(noise(steps, 2, 1), tuple(start))
        differences.append((output - y[..., -4:]).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(differences)]
    assert all(abs(order - 2) < 0.1 for order in orders), (orders, differences)


def test_refusals():
    two, none = tensor(1.0, 2.0), torch.zeros(2, 2, dtype=F64)
    make = PendulumNetwork
    network = make(two, none)
    zero = torch.zeros(3, 1, 2, dtype=F64)
    for call, error, words in (
        (lambda: make(two.float(), none), TypeError, "masses must be a float64 tensor"),
        (lambda: make(tensor(1.0, 0.0), none), ValueError, "masses must be a vector of finite"),
        (lambda: make(two, none, lengths=-two), ValueError, "lengths must be a vector of finite"),
        (lambda: make(two, none, lengths=two[:1]), ValueError, "lengths must have shape [2]"),
        (lambda: make(two, none, gravity=0.0), ValueError, "gravity must be a finite number in (0"),
        (lambda: make(two, none[:1]), ValueError, "couplings must have shape [2, 2]"),
        (lambda: make(two, none + 1), ValueError, "symmetric and zero on the diagonal"),
        (lambda: make(two, tensor([0.0, 1.0], [2.0, 0.0])), ValueError, "symmetric"),
        (lambda: network.simulate(zero, dt=0.0), ValueError, "dt must be a finite number in (0"),
        (lambda: network.simulate(zero[..., :1], dt=0.1), ValueError, "shape [T, B, 2]"),
        (lambda: network.simulate(zero.float(), dt=0.1), TypeError, "forces"),
        (lambda: network.simulate(zero, dt=0.1, state=(zero, zero)), ValueError, "state.y"),
        (lambda: network.simulate_reduced(zero, dt=0.1, sizes=[1]), ValueError, "the 2 pendula"),
        (
            lambda: network.multilayer_oscillator([2, 1]),
            ValueError,
            "sum to the 2 pendula; got [2, 1]",
        ),
        (lambda: network.oscillator(scheme="euler"), ValueError, "scheme must be one of"),
    ):
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value), str(caught.value)
