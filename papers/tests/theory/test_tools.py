"""What statements are made of, against closed forms, sums by hand and differences."""

import math

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic_papers.theory import (
    emulators,
    graphs,
    integrate,
    layers,
    lem,
    networks,
    operators,
)
from anharmonic_papers.theory import oscillator_networks as oscillators
from anharmonic_papers.theory.oscillator_networks import solve, wave

F64 = torch.float64
SMALL = 1e-4


# Graphs


def test_random_graphs_are_connected_and_have_their_chords():
    for seed in range(4):
        edges = graphs.random_graph(15, 6, seed)
        assert edges.shape == (2, 2 * (14 + 6)) and graphs.eccentricity(edges, 15) < 15


def test_graphs_have_distances_and_neither_directions_nor_loops():
    assert graphs.eccentricity(graphs.cycle(7), 7) == 3
    for edges in ([[0], [1]], [[0, 0], [0, 0]]):
        with pytest.raises(ValueError, match="undirected and without loops"):
            graphs.neighbours(torch.tensor(edges), 2)


def test_coupling_matrices_of_a_path():
    edges, root = graphs.path(3), 6**-0.5
    for matrix, rows in (
        (graphs.gcn_matrix, [[1 / 2, root, 0], [root, 1 / 3, root], [0, root, 1 / 2]]),
        (graphs.random_walk_matrix, [[0, 1, 0], [1 / 2, 0, 1 / 2], [0, 1, 0]]),
        (graphs.metropolis_matrix, [[2 / 3, 1 / 3, 0], [1 / 3] * 3, [0, 1 / 3, 2 / 3]]),
    ):
        found = matrix(edges, 3)
        torch.testing.assert_close(found, torch.tensor(rows, dtype=F64))
        assert torch.equal(graphs.joined(found), graphs.neighbours(edges, 3))


# Solutions


def turning(z, t):
    return torch.stack([z[1], -z[0]])


def test_rk4_is_of_order_four_knows_the_time_and_goes_backwards():
    times, start = torch.linspace(0, 3, 4).double(), torch.tensor([1.0, 0.0]).double()
    exact = torch.stack([times[-1].cos(), -times[-1].sin()])
    coarse, fine = ((integrate.rk4(turning, start, times, n)[-1] - exact).norm() for n in (10, 20))
    assert float(coarse / fine) == pytest.approx(16, rel=0.05)
    times = torch.linspace(2, 0, 21, dtype=F64)
    z = integrate.rk4(lambda z, t: 3 * t**2 + 0 * z, torch.tensor(8.0).double(), times)
    assert torch.allclose(z, times**3, atol=1e-12)


@pytest.mark.parametrize("times", [torch.zeros(()), torch.zeros(0), [0.0, 1.0]])
def test_times_must_be_a_curve_and_steps_positive(times):
    with pytest.raises(ValueError, match=r"times must be a tensor \[K\]"):
        integrate.rk4(turning, torch.zeros(2), times)
    with pytest.raises(ValueError, match=r"times must be a tensor \[K\]"):
        integrate.linear_flow(torch.eye(2), torch.zeros(2, 1), times)
    with pytest.raises(ValueError, match="steps"):
        integrate.rk4(turning, torch.zeros(2), torch.linspace(0, 1, 3), steps=0)


# States and derivatives of sequence layers

LAYERS = [
    CoRNN(2, 3, dtype=F64),
    UnICORNN(2, 3, 2, dtype=F64),
    LEM(2, 3, 2, dt=0.5, dtype=F64),
]


def run(layer, steps=6):
    torch.manual_seed(0)
    layer.reset_parameters()
    return torch.randn(steps, 1, 2, dtype=F64)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_the_partial_gradients_of_a_step_add_up_to_its_gradient(layer):
    x, target = run(layer), torch.ones(1, 3, dtype=F64)
    parts = [layers.partial_gradient(layer, x, target, k) for k in range(1, len(x) + 1)]
    for name, whole in layers.last_gradient(layer, x, target).items():
        torch.testing.assert_close(sum(one[name] for one in parts), whole)


def test_the_total_gradient_is_that_of_the_mean_loss():
    layer, step = LAYERS[0], 1e-6
    x, targets = run(layer), torch.randn(6, 1, 3, dtype=F64)
    found = layers.total_gradient(layer, x, targets)["bias_l0"]
    ends = [layers.last_gradient(layer, x[:n], targets[n - 1])["bias_l0"] for n in range(1, 7)]
    torch.testing.assert_close(torch.stack(ends).mean(0), found)
    bias, losses = layer.bias_l0.detach().clone(), []
    for sign in (1, -1):
        layers.set_weights(layer, bias=bias + sign * step * torch.tensor([0.0, 1.0, 0.0]))
        losses.append(0.5 * float((layer(x)[0] - targets).detach().square().sum(-1).mean()))
    assert float(found[1]) == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-7)


def test_the_trajectory_of_a_stack_begins_at_its_start_and_ends_at_its_state():
    layer = LAYERS[1]
    x, start = run(layer), torch.randn(2, 2, 1, 3, dtype=F64)
    _, last = layer(x, tuple(start))
    for states, first, end in zip(
        layers.trajectory(layer, x, tuple(start)), start, last, strict=True
    ):
        assert torch.equal(states[0], first)
        torch.testing.assert_close(states[-1], end, rtol=1e-13, atol=0)


def test_weights_by_their_short_names_and_norms():
    layer = UnICORNN(2, 3, 2, bias=False, trainable_timescales=False, dtype=F64)
    found = layers.weights(layer, 1)
    assert torch.equal(found["weight_hh"], layer.weight_hh_l1)
    assert torch.equal(found["timescale"], layer.timescale_l1)
    assert torch.equal(found["bias"], torch.zeros(3, dtype=F64))
    assert not any(value.requires_grad for value in found.values())
    matrix = torch.tensor([[1.0, -2.0], [0.0, 4.0]])
    assert layers.row_sum(matrix) == 4 and layers.column_sum(matrix) == 6


# Networks with one hidden layer, and LEMs that follow them


@pytest.mark.parametrize("scale", [1e-1, 1e-2])
def test_identity_and_square_are_wrong_by_a_third_of_s_squared(scale):
    x = torch.linspace(-1, 1, 11, dtype=F64)[:, None]
    off = x - networks.identity(1, scale)(x), x**2 - networks.square(scale)(x)
    torch.testing.assert_close(off[0], scale**2 * x**3 / 3, rtol=0, atol=scale**4)
    torch.testing.assert_close(off[1], scale**2 * x**4 / 3, rtol=0, atol=scale**4 + 1e-10)


def test_the_product_of_two_numbers():
    pairs = torch.cartesian_prod(*[torch.linspace(-1, 1, 5, dtype=F64)] * 2)
    torch.testing.assert_close(
        networks.product(1e-3)(pairs)[:, 0], pairs.prod(1), rtol=0, atol=2e-6
    )


def test_plus_identity_adds_a_multiple_of_one_argument():
    torch.manual_seed(0)
    network = networks.random_network(2, 5, (3, 2))
    h, c = torch.randn(4, 3, dtype=F64), torch.randn(4, 2, dtype=F64)
    added = networks.plus_identity(network, 1, -19.0, 1e-5)(h, c)
    torch.testing.assert_close(added, network(h, c) - 19 * c, rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_an_rnn_to_the_size_of_the_notes(seed):
    """5.9e-5 at s = 1e-2 and 5.9e-7 at 1e-3 there, over 60 steps of one random tanh RNN."""
    torch.manual_seed(seed)
    f, u = networks.random_rnn(8, 3), torch.randn(60, 3, dtype=F64)
    (truth,) = networks.scales_states(f, [], u)
    coarse, fine = (lem.emulated(emulators.emulate_system(f, scale=s), u) for s in (1e-2, 1e-3))
    first, second = (float((read - truth).abs().max()) for (read,), _ in (coarse, fine))
    assert 3e-5 < first < 2e-4 and first / second == pytest.approx(100, rel=1e-3)
    assert float((coarse[1] - truth).abs().max()) < 2e-4  # read from z


def test_size_does_not_depend_on_tau_and_weights_do():
    torch.manual_seed(0)
    f, G = networks.random_network(2, 3, (2, 2, 1)), networks.random_network(2, 3, (2, 2, 1))
    slow, fast = (emulators.emulate_scales(f, [(G, tau)], scale=1e-3).layer for tau in (0.05, 0.5))
    assert slow.hidden_size == fast.hidden_size
    assert not torch.equal(slow.bias_l0, fast.bias_l0)


F, G, NARROW = (networks.random_network(2, 3, sizes) for sizes in ((2, 1), (2, 2, 1), (2,)))


@pytest.mark.parametrize(
    ("message", "emulate"),
    [
        (
            r"fast must be a network with arguments of sizes \[2, 2, 1\]",
            lambda: emulators.emulate_scales(F, [(G, 0.1)], scale=0.1),
        ),
        ("slow must be one network or more", lambda: emulators.emulate_scales(F, [], scale=0.1)),
        ("tau must be", lambda: emulators.emulate_scales(G, [(G, 0.0)], scale=0.1)),
        ("scale must be", lambda: emulators.emulate_system(F, scale=0.0)),
        (
            "kappa must be",
            lambda: emulators.emulate_multiscale_method(NARROW, G, kappa=1, step=0.1, scale=0.1),
        ),
        ("dt=1", lambda: emulators.lstm_like(LEM(3, 5, dt=0.5))),
        ("one layer", lambda: emulators.lstm_like(LEM(3, 5, num_layers=2))),
    ],
)
def test_what_a_lem_cannot_follow_is_refused(message, emulate):
    with pytest.raises(ValueError, match=message):
        emulate()


@pytest.mark.parametrize(
    ("name", "rows", "value"),
    [
        ("weight_zh_l0", slice(None), 2.0),  # the document alone: gates, but not W_y = I
        ("weight_ih_l0", slice(5, 10), 0.1),
        ("weight_hh_l0", slice(5, 10), 0.1),
        ("bias_l0", slice(5, 10), 0.0),
        ("bias_l0", slice(15, 20), 0.1),
    ],
)
def test_an_lstm_is_made_of_layers_like_it_only(name, rows, value):
    layer = emulators.lstm_like(LEM(3, 5, batch_first=True, dtype=F64))
    assert emulators.lstm_from_lem(layer).batch_first
    with torch.no_grad():
        layer.get_parameter(name)[rows] = value
    with pytest.raises(ValueError, match="W_y = I, V_y = 0 and b_y = 0, whose gate of y has"):
        emulators.lstm_from_lem(layer)


# Networks of oscillators, and causal operators made of them


def test_a_chain_feeds_one_readout_to_the_next():
    """The time neuron before a free particle: y'' = t²/4 + c, y = t⁴/48 + c t²/2."""
    clock, half = oscillators.time_neuron(), torch.tensor([0.5], dtype=F64)
    clock = clock._replace(layers=(clock.layers[0]._replace(b=half),), c=half)
    one = torch.ones(1, 1, dtype=F64)
    particle = oscillators.Oscillators(
        (oscillators.OscillatorLayer(0 * half, one, 0 * half),), one, 0 * half
    )
    network = oscillators.chain(clock, particle)
    t, z = solve(network, lambda t: t[:, None], dt=0.01, end=2.0, activation=lambda x: x)
    torch.testing.assert_close(z[:, 0], t**4 / 48 + t**2 / 4, rtol=0, atol=1e-9)
    assert network.neurons == 2


def test_the_windowed_sine_in_closed_form():
    """It sees u(t - r) with sin(ωr), so what is recent least."""
    omega = torch.tensor([0.3, 2.0, 50.0], dtype=F64)
    found = oscillators.windowed_sine(lambda t: torch.ones_like(t)[:, None], omega, 2.0)
    torch.testing.assert_close(found, (1 - torch.cos(2 * omega)) / omega, rtol=0, atol=1e-9)
    found = oscillators.windowed_sine(lambda t: t[:, None], omega[:2], 2.0)
    expected = (2 * omega[:2] - torch.sin(2 * omega[:2])) / omega[:2] ** 2
    torch.testing.assert_close(found, expected)


def test_a_delayed_signal_is_zero_before_it_starts():
    t = torch.tensor([0.0, 0.4, 0.5, 1.0], dtype=F64)
    found = oscillators.before(lambda t: (1 + t)[:, None, None], 0.5)(t)
    assert found.flatten().tolist() == [0.0, 0.0, 1.0, 1.5]


def test_what_is_read_is_the_mean_of_the_past():
    """Not u(t-τ) but the bump's mean of u over [t-τ-e, t-τ], and that to five digits."""
    e, tau, t = 0.2, 0.5, 2.0
    inverse = operators.inverse_sine_up_to(2.0, e)
    s = torch.linspace(0, 1, 4001, dtype=F64)[1:-1]
    bump = torch.exp(-1 / (s * (1 - s)))
    mean = bump / bump.sum() @ wave(t - tau - e * s)[:, 0]
    found = inverse.reads(tau) @ oscillators.windowed_sine(wave, inverse.frequencies, t)
    torch.testing.assert_close(found, mean, rtol=0, atol=1e-5)


def late_wave(t):
    """Starts with slope 0, so that nothing but the lag is seen."""
    return wave(t) * t[:, None] ** 2


@pytest.mark.parametrize(
    "cutoff, lag, error",
    [(40, 0.1, 0.0125), (40, 1e-3, 0.595), (40, 1e-5, 0.636), (120, 1e-3, 0.005)],
)
def test_what_is_cut_off_comes_back_as_the_square_of_the_cut_off(cutoff, lag, error):
    """Beside the lag: bounded as Δ falls, and gone with a larger Λe."""
    e, end = 0.2, 1.5
    inverse = operators.inverse_sine(e, cutoff / e, math.ceil(1.2 * end * cutoff / e / math.pi))
    network = operators.function(networks.identity(1, 1e-2), inverse, lag, SMALL)
    t, z = solve(network, late_wave, dt=e / cutoff, end=end)
    found = float((z - oscillators.before(late_wave, lag + e / 2)(t)).abs().max())
    assert found == pytest.approx(error, rel=0.02)


def squares(e, scale):
    """Three layers that give u²."""
    inverse = operators.inverse_sine_up_to(1.5, e)
    return oscillators.chain(
        operators.delay(inverse, 0.0, SMALL),
        operators.function(networks.square(scale), inverse, 0.1, SMALL),
    )


@pytest.mark.parametrize("scale, low, high", [(1e-2, 0.5, 5.0), (1e-1, 3e-3, 5e-2)])
def test_rounding_is_amplified_by_both_second_differences(scale, low, high):
    """A square in float32: noise of 1/(s Δ)² roundings."""
    network = squares(0.2, scale)
    layers = tuple(type(layer)(*(w.float() for w in layer)) for layer in network.layers)
    single = type(network)(layers, network.A.float(), network.c.float())
    _, exact = solve(network, late_wave, dt=0.005, end=1.5)
    _, rounded = solve(single, late_wave, dt=0.005, end=1.5)
    assert low < float((rounded - exact).abs().max()) < high


def test_operators_are_causal():
    """Two inputs that agree before t = 1 give the same until then, to the last bit."""
    network = squares(0.3, 1e-2)
    _, whole = solve(network, wave, dt=0.005, end=1.5)
    _, held = solve(network, lambda t: wave(t.clamp(max=1.0)), dt=0.005, end=1.5)
    assert torch.equal(whole[:200], held[:200])
    assert float((whole[-1] - held[-1]).abs()) > 0.1


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("smoothing must be", lambda: operators.inverse_sine(0.0, 10, 10)),
        ("neurons must be", lambda: operators.inverse_sine(0.1, 10, 0)),
        ("smoothing must be", lambda: operators.inverse_sine_up_to(1.0, 0.5)),
        (
            "scheme must be one of",
            lambda: solve(oscillators.time_neuron(), wave, dt=0.1, end=1.0, scheme="euler"),
        ),
        (
            r"end must be a step of 0\.1 or more after start=0",
            lambda: solve(oscillators.time_neuron(), wave, dt=0.1, end=0.0),
        ),
    ],
)
def test_sizes_and_schemes_that_are_none_are_refused(message, make):
    with pytest.raises(ValueError, match=message):
        make()
