"""What remarks tell beyond one check: orders, growth, and where bounds are met."""

import math

import pytest
import torch

from anharmonic import (
    CoRNN,
    GraphCON,
    MultiLayerNeuralOscillator,
    NeuralOscillator,
    UnICORNN,
    use_backend,
)
from anharmonic.diagnostics.smoothing import dirichlet_energy
from anharmonic_papers.theory import (
    all_statements,
    cornn,
    gating,
    graphcon,
    lem,
    oscillators,
    unicornn,
)
from anharmonic_papers.theory.graphs import (
    MatrixCoupling,
    difference_sum,
    features,
    metropolis_matrix,
    neighbours,
    random_graph,
    random_walk_matrix,
)
from anharmonic_papers.theory.layers import set_weights
from anharmonic_papers.theory.networks import identity
from anharmonic_papers.theory.operators import delay
from anharmonic_papers.theory.oscillator_networks import before, wave

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def of_cornn(dt, steps=12, **options):
    torch.manual_seed(0)
    layer = CoRNN(2, 3, dt=dt, dtype=F64, **{"scheme": "implicit"} | options)
    return layer, noise(steps, 1, 2).tanh()


def of_lem(dt, steps=20, scale=1.0):
    layer, x = lem.scaled(5, dt, scale, steps)
    return layer, x, torch.full((1, 5), -3.0, dtype=F64), 3


def formulas(dt):
    """Formulas to leading order at a step dt, and the order in dt of what each leaves out."""
    yield "cornn-product", of_cornn(dt, 5), 2
    for scheme in ("implicit", "explicit"):
        y, z = noise(2, 1, 1, 3, seed=1)
        case = *of_cornn(dt, scheme=scheme), noise(1, 3, seed=2), 3, (y, z)
        yield "cornn-long-term", case, 2
    yield "lem-long-term", of_lem(dt, 12, 2.0), 2
    yield "lem-long-term-printed", of_lem(dt, 12, 2.0), 1


def test_remainders_fall_with_the_step_as_stated():
    for (name, coarse, order), (_, fine, _) in zip(formulas(1e-3), formulas(1e-4), strict=True):
        checks = [all_statements()[name].check(*case) for case in (coarse, fine)]
        off = [
            (check.measured - check.bound).abs().max() / check.bound.abs().max() for check in checks
        ]
        assert math.log10(off[0] / off[1]) == pytest.approx(order, abs=0.04), name


# coRNN


def test_the_flow_is_the_limit_of_the_schemes():
    # first order: a tenth of the step, a tenth of the distance
    off = []
    coarse, x = of_cornn(0.1, 10, frequency=2.0)
    for refine in (10, 100):
        layer, _ = of_cornn(0.1 / refine, frequency=2.0, scheme="explicit")
        end = layer(x.repeat_interleave(refine, 0))[0].detach()[-1]
        off.append((end - cornn.flow(coarse, x, 8)[0, -1]).abs().max())
    assert 8 < float(off[0] / off[1]) < 12


def test_training_leaves_the_layer_alone():
    layer, x = of_cornn(0.01, 100)
    before = {n: p.clone() for n, p in layer.named_parameters()}
    cornn.cornn_training(layer, x, noise(100, 1, 3), rate=1e-2, r=0.5)
    assert all(torch.equal(before[n], p) for n, p in layer.named_parameters())


def test_the_variational_system_against_differences_of_solutions():
    layer, x = of_cornn(0.1, 30, frequency=2.0)
    found, W = cornn.variation(layer, x, 4)[-1], cornn.matrices(layer)[0]
    for i, j in ((0, 1), (2, 2)):
        step = torch.zeros(3, 3, dtype=F64)
        step[i, j] = 1e-5
        one, other = (cornn.flow(layer, x, 4, W + change) for change in (step, -step))
        by_y, by_z = (one - other)[:, -1, 0] / 2e-5
        expected = by_y.square().sum() + by_z.square().sum() / 2.0
        assert float(found[i, j]) == pytest.approx(float(expected), rel=1e-6)


# UnICORNN


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_sum_over_all_paths(layers):
    # Stated are ratios of 0.998, 0.996 and 0.98 at 0.05, 0.2 and 0.5 for weights that are not
    for span, off in ((0.05, 0.012), (0.2, 0.02), (0.5, 0.08)):
        check = unicornn.unicornn_long_term_deep(*unicornn.ready(layers, span, 1000))
        assert check.applies and check.holds
        assert float((check.measured / check.bound - 1).abs().max()) < off


@pytest.mark.parametrize(("layers", "off"), [(2, 7e5), (3, 1e11)])
def test_the_printed_formula_of_deep_stacks_is_off_as_stated(layers, off):
    check = unicornn.unicornn_long_term_deep_printed(*unicornn.ready(layers, 0.2, 2000))
    assert off / 2 < float((check.measured / check.bound).median()) < 2 * off


def test_resonance_passes_the_printed_bound_as_stated():
    layer, x = unicornn.resonance(20_000, 0.01)
    t = 0.01 * torch.arange(1, 20_001, dtype=F64)
    so_far = (layer(x)[0].detach().abs()[:, 0, 0] / (2 * (1 + 8 * t)).sqrt()).cummax(0).values
    assert [round(float(so_far[100 * t - 1]), 2) for t in (20, 60, 200)] == [0.69, 1.23, 2.24]


def test_exact_over_printed_as_stated():
    """Stated are 0.98, 0.98, 0.88, 0.22 at α = 2, without w and k; w = 0.9, k = 2 come near."""
    layer = UnICORNN(1, 1, dt=1e-3, frequency=2.0, dtype=F64)
    set_weights(layer, weight_ih=0.0, weight_hh=0.9, bias=0.0, timescale=0.0)
    y, ratios = torch.full((1, 1, 1), 0.05, dtype=F64), []
    for steps in (50, 200, 1000, 3000):
        x, target = torch.zeros(steps, 1, 1, dtype=F64), torch.ones(1, 1, dtype=F64)
        ratios.append(unicornn.unicornn_long_term_printed(layer, x, target, 2, (y, 0 * y)).ratio)
    assert [round(ratio, 2) for ratio in ratios] == [0.98, 0.99, 0.88, 0.22]


def test_kept_memory_grows_by_the_input_only():
    layer, x = UnICORNN(2, 8, 3, memory="reversible"), torch.randn(400, 5, 2)
    check = unicornn.unicornn_memory(layer, x, lengths=(100, 200, 400))
    assert check.applies and check.holds
    growth = check.measured.diff() / torch.tensor([100.0, 200.0])
    assert growth.tolist() == [10.0, 10.0]  # batch times features, nothing for states


# LEM


@pytest.mark.parametrize("s", [0.5, 4 / 7, 1.0])
def test_growth_with_the_length(s):
    check = lem.lem_step_size(of_lem(0.005)[0], s=s)
    assert float(check.bound) == pytest.approx(2 * (1 - s))
    assert float(check.measured) < float(check.bound) + 0.05
    if s == 1.0:
        assert abs(float(check.measured)) < 0.05  # bounded


def test_eta_is_the_largest_of_four_norms():
    layer, _ = lem.scaled(4, 1.0, 3.0, 1)
    W2 = torch.zeros(12, 4)
    W2[4:8, 0] = 1.0  # a column of ones
    set_weights(layer, weight_hh=W2, weight_zh=0.0)
    assert lem.eta(layer) == 1.0 and lem.eta(layer, columns=True) == 4.0


@pytest.mark.parametrize(
    "case", [*map(lem.two_scales, (0.5, 0.05, 0.005)), lem.three_scales()], ids=len
)
def test_scales_to_the_error_of_the_notes(case):
    """1.6e-9 there, at s = 1e-4 and τ = 0.05 over 200 steps; the order of it for any τ."""
    assert 2e-10 < float(lem.scales_error(*case[:3], scale=1e-4)) < 1e-8


# GraphCON and Gradient Gating


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize(("seed", "layers"), [(0, 160), (1, 160), (2, 400)])
def test_relu_with_damping_oversmooths_in_a_hundred_layers(seed, layers):
    # The notes: from 10 to 5e-11, a factor 5e-12; how fast is a matter of the graph.
    edges = random_graph(12, 8, seed)
    conv, x = MatrixCoupling(random_walk_matrix(edges, 12)), 2 + 2 * features(12, 1, seed).abs()
    check = graphcon.graphcon_algebraic_printed(GraphCON(conv, layers, 0.2), x, edges)
    assert check.applies and not check.holds
    _, (xs, _) = GraphCON(conv, 100, 0.2)(x, edges, return_states=True)
    energy = difference_sum(xs, neighbours(edges, 12)) / difference_sum(x, neighbours(edges, 12))
    assert energy[100] < 1e-6 and energy[50] < 1e-2
    undamped = GraphCON(conv, layers, 0.2, damping=0.0)
    check = graphcon.graphcon_algebraic_printed(undamped, x, edges)
    assert not check.applies and float(check.measured) < 1  # D stays


@pytest.mark.parametrize("power", [0.5, 4.0, 30.0])
def test_an_algebraic_decay_of_any_power_loses_as_much_in_every_doubling(power):
    t = 0.2 * torch.arange(1, 161, dtype=F64)
    before, after = graphcon.lost_in_doublings(t**-power * (1.5 + t.cos()))
    assert after < 1.5 * before
    before, after = graphcon.lost_in_doublings((-0.01 * power * t).exp())
    assert float(after / before) == pytest.approx(2.0)


def test_the_mean_potential_of_one_mode():
    """Two nodes apart by 2 cos t: of cos², the mean is 1/2 + sin(2t)/(4t)."""
    coupling = torch.full((2, 2), 0.5, dtype=F64)  # λ = 0 and 1
    x, times = torch.tensor([[1.0], [-1.0]], dtype=F64), torch.linspace(0, 40, 4001, dtype=F64)
    check = graphcon.graphcon_undamped_spread(coupling, x, 0 * x, times)
    t = times[times > 1]
    expected = 2 * (0.5 + (2 * t).sin() / (4 * t))
    torch.testing.assert_close(check.measured, expected, rtol=1e-4, atol=0)


def test_the_energy_is_that_of_the_diagnostics():
    edges, x = random_graph(9, 4, 0), features(9, 3, 0)
    found = graphcon.dirichlet(x, metropolis_matrix(edges, 9))
    torch.testing.assert_close(found, dirichlet_energy(x, edges))


@pytest.mark.parametrize(
    ("p", "size", "spread"), [(2.0, 1.0, 0.64 / 0.46), (4.0, 1 / 3, 0.85 / 0.38)]
)
def test_gated_decay_is_algebraic(p, size, spread):
    # The notes: S t^(2/p) within 0.46 to 0.64 (p = 2) and 0.38 to 0.85 (p = 4) from t = 1e2 to 1e5.
    coupling = metropolis_matrix(random_graph(10, 6, 0), 10)
    times = gating.slow_times(1e5, 41)
    check = gating.g2_gated_decay(coupling, size * gating.deviations(10, 0), p, times, steps=12)
    assert check.applies and check.holds
    kept = (check.measured * times ** (2 / p))[times > 1e2]
    assert float(kept.max() / kept.min()) < spread


# Neural oscillators


def test_the_error_falls_like_one_over_the_width():
    build = oscillators.behind(lambda inverse, _: delay(inverse, 0.5, 1e-4), identity(1, 1e-2))
    case = wave, 1.5, (0.15, 0.075)
    neurons, errors = oscillators.errors_by_width(build, before(wave, 0.5), case)
    assert neurons.tolist() == [462, 920]
    order = math.log(errors[1] / errors[0]) / math.log(neurons[1] / neurons[0])
    assert order == pytest.approx(-1, abs=0.15)


@pytest.mark.slow
def test_read_earlier_the_delay_is_second_order_down_to_a_thousandth():
    check = oscillators.oscillators_universal_delay_aligned(
        lambda t: wave(t) * t[:, None] ** 2, 0.7, 1.5, (0.2, 0.1, 0.05)
    )
    assert check.measured[1] > 1.3


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("layers, bidirectional", [(1, False), (3, False), (2, True)])
@pytest.mark.parametrize("bias", [True, False])
def test_undamped_cornn_and_unicornn_are_neural_oscillators(layers, bidirectional, bias):
    """+tanh in coRNN: the weights are the same. -tanh in UnICORNN: all weights change sign."""
    torch.manual_seed(0)
    shared = {"bias": bias, "bidirectional": bidirectional, "dtype": F64}
    cornn = CoRNN(2, 5, layers, dt=0.1, frequency=0.0, damping=0.0, **shared)
    unicornn = UnICORNN(2, 5, layers, dt=0.3, frequency=0.0, **shared)
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
        (cornn, NeuralOscillator, 0.1, 1),
        (unicornn, MultiLayerNeuralOscillator, 0.3 / (1 + math.exp(0.4)), -1),
    ):
        layer = kind(2, 5, layers, dt=dt, **shared)
        weights = {k.replace("weight_hy", "weight_hh"): v for k, v in other.state_dict().items()}
        layer.load_state_dict({k: sign * weights[k] for k in layer.state_dict()})
        for backend in ("auto", "reference"):
            with use_backend(backend):
                output, state = layer(x)
                expected, last = other(x)
            assert expected.abs().max() > 0.1
            torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
            torch.testing.assert_close(tuple(state), tuple(last), rtol=0, atol=1e-12)
