"""What statements are made of, where no statement would notice an error in it."""

import math

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic_papers.theory import emulators, graphs, integrate, layers, lem, networks, operators
from anharmonic_papers.theory import oscillator_networks as oscillators
from anharmonic_papers.theory.oscillator_networks import solve, wave

F64 = torch.float64
SMALL = 1e-4


# Graphs, solutions, gradients


def test_random_graphs_are_connected_and_have_their_chords():
    for seed in range(4):
        edges = graphs.random_graph(15, 6, seed)
        assert edges.shape == (2, 2 * (14 + 6)) and graphs.eccentricity(edges, 15) < 15
    assert graphs.eccentricity(graphs.cycle(7), 7) == 3


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


def test_norms_are_of_sizes_in_rows_and_columns():
    matrix = torch.tensor([[1.0, -2.0], [0.0, 4.0]])
    assert layers.row_sum(matrix) == 4 and layers.column_sum(matrix) == 6


@pytest.mark.parametrize("kind", [CoRNN, UnICORNN, LEM])
def test_the_partial_gradients_of_a_step_add_up_to_its_gradient(kind):
    torch.manual_seed(0)
    layer = kind(2, 3, **({} if kind is CoRNN else {"num_layers": 2}), dtype=F64)
    x, target = torch.randn(6, 1, 2, dtype=F64), torch.ones(1, 3, dtype=F64)
    parts = [layers.partial_gradient(layer, x, target, k) for k in range(1, len(x) + 1)]
    for name, whole in layers.last_gradient(layer, x, target).items():
        torch.testing.assert_close(sum(one[name] for one in parts), whole)


# LEMs that follow networks with one hidden layer


@pytest.mark.parametrize("scale", [1e-1, 1e-2])
def test_identity_and_square_are_wrong_by_a_third_of_s_squared(scale):
    x = torch.linspace(-1, 1, 11, dtype=F64)[:, None]
    off = x - networks.identity(1, scale)(x), x**2 - networks.square(scale)(x)
    torch.testing.assert_close(off[0], scale**2 * x**3 / 3, rtol=0, atol=scale**4)
    torch.testing.assert_close(off[1], scale**2 * x**4 / 3, rtol=0, atol=scale**4 + 1e-10)


def test_the_product_of_two_numbers_and_a_multiple_of_one_argument():
    pairs = torch.cartesian_prod(*[torch.linspace(-1, 1, 5, dtype=F64)] * 2)
    found = networks.product(1e-3)(pairs)[:, 0]
    torch.testing.assert_close(found, pairs.prod(1), rtol=0, atol=2e-6)
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


# Causal operators made of oscillators


def test_a_chain_feeds_one_readout_to_the_next():
    """The time neuron before a free particle: y'' = t²/4 + c, y = t⁴/48 + c t²/2."""
    clock, half = oscillators.time_neuron(), torch.tensor([0.5], dtype=F64)
    one = torch.ones(1, 1, dtype=F64)
    free = oscillators.OscillatorLayer(0 * half, one, 0 * half)
    clock = clock._replace(layers=(clock.layers[0]._replace(b=half),), c=half)
    network = oscillators.chain(clock, oscillators.Oscillators((free,), one, 0 * half))
    t, z = solve(network, lambda t: t[:, None], dt=0.01, end=2.0, activation=lambda x: x)
    torch.testing.assert_close(z[:, 0], t**4 / 48 + t**2 / 4, rtol=0, atol=1e-9)
    assert network.neurons == 2


def test_a_delayed_signal_is_zero_before_it_starts():
    t = torch.tensor([0.0, 0.4, 0.5, 1.0], dtype=F64)
    found = oscillators.before(lambda t: (1 + t)[:, None, None], 0.5)(t)
    assert found.flatten().tolist() == [0.0, 0.0, 1.0, 1.5]


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


def refused():
    """Calls with arguments that a tool cannot use, by what is said of them."""
    for edges in ([[0], [1]], [[0, 0], [0, 0]]):
        yield "undirected and without loops", graphs.neighbours, (torch.tensor(edges), 2)
    for times in (torch.zeros(()), torch.zeros(0), [0.0, 1.0]):
        expected = r"times must be a tensor \[K\]"
        yield expected, integrate.rk4, (torch.add, torch.zeros(2), times)
        yield expected, integrate.linear_flow, (torch.eye(2), torch.zeros(2, 1), times)
    yield "steps", integrate.rk4, (torch.add, torch.zeros(2), torch.linspace(0, 1, 3), 0)
    f, G, narrow = (networks.random_network(2, 3, sizes) for sizes in ((2, 1), (2, 2, 1), (2,)))
    scales = emulators.emulate_scales
    sizes = r"fast must be a network with arguments of sizes \[2, 2, 1\]"
    yield sizes, scales, (f, [(G, 0.1)]), {"scale": 0.1}
    yield "slow must be one network or more", scales, (f, []), {"scale": 0.1}
    yield "tau must be", scales, (G, [(G, 0.0)]), {"scale": 0.1}
    yield "scale must be", emulators.emulate_system, (f,), {"scale": 0.0}
    method = {"kappa": 1, "step": 0.1, "scale": 0.1}
    yield "kappa must be", emulators.emulate_multiscale_method, (narrow, G), method
    yield "dt=1", emulators.lstm_like, (LEM(3, 5, dt=0.5),)
    yield "one layer", emulators.lstm_like, (LEM(3, 5, num_layers=2),)
    yield "smoothing must be", operators.inverse_sine, (0.0, 10, 10)
    yield "neurons must be", operators.inverse_sine, (0.1, 10, 0)
    yield "smoothing must be", operators.inverse_sine_up_to, (1.0, 0.5)
    case = oscillators.time_neuron(), wave
    yield "scheme must be one of", solve, case, {"dt": 0.1, "end": 1.0, "scheme": "euler"}
    yield r"end must be a step of 0\.1 or more after start=0", solve, case, {"dt": 0.1, "end": 0.0}


def test_what_a_tool_cannot_use_is_refused():
    for message, tool, arguments, *options in refused():
        with pytest.raises(ValueError, match=message):
            tool(*arguments, **(options[0] if options else {}))
