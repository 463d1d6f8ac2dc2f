"""Special cases of neural oscillators against closed forms, coRNN and UnICORNN."""

import itertools
import math

import pytest
import torch

import anharmonic as ah
from anharmonic_papers.models.oscillator_cases import as_neural_oscillator, harmonic_oscillators

F64 = torch.float64
OMEGA = [0.5, 2.0, 7.0]


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def signal(t):
    return torch.sin(2.0 * t) * torch.exp(-t / 3) + 0.3 * t


def windowed_sine_transform(end, omega):
    """The integral of u(t - s) sin(omega s) over [0, t], by Simpson's rule."""
    s = torch.linspace(0, end, 4001, dtype=F64)
    values = signal(end - s) * torch.sin(omega * s)
    weights = torch.ones_like(s)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    return (weights * values).sum().item() * end / 4000 / 3


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("scheme, order", [("symplectic-euler", 1), ("velocity-verlet", 2)])
def test_harmonic_oscillators_compute_the_windowed_sine_transform(scheme, order):
    """y(t) = (1/omega) * the integral of u(t - s) sin(omega s): Lemma 4.2.4, to the order."""
    end = 3.0
    exact = torch.tensor([windowed_sine_transform(end, w) / w for w in OMEGA], dtype=F64)
    errors = []
    for steps in (500, 1000, 2000):
        layer = harmonic_oscillators(OMEGA, dt=end / steps, scheme=scheme, dtype=F64)
        middles = (torch.arange(steps, dtype=F64) + 0.5) * end / steps
        output, _ = layer(signal(middles)[:, None], output="last")
        errors.append((output - exact).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(found - order) < 0.1 for found in orders), (orders, errors)
    assert errors[-1] < (1e-2, 1e-5)[order - 1]


@pytest.mark.usefixtures("loops")
def test_a_small_input_makes_tanh_linear():
    """Lemma 4.2.8, with the factor omega: omega y / s is L_t u(omega) up to O(s²)."""
    steps = 600
    u = signal((torch.arange(steps, dtype=F64) + 0.5) * 3.0 / steps)[:, None]
    words = {"dt": 3.0 / steps, "scheme": "velocity-verlet", "dtype": F64}
    exact, _ = harmonic_oscillators(OMEGA, **words)(u)
    errors = []
    for scale in (0.2, 0.1, 0.05):
        layer = harmonic_oscillators(OMEGA, activation="tanh", input_scale=scale, **words)
        errors.append((layer(u)[0] / scale - exact).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(found - 2) < 0.1 for found in orders), (orders, errors)


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("layers, bidirectional", [(1, False), (3, False), (2, True)])
@pytest.mark.parametrize("bias", [True, False])
def test_undamped_cornn_and_unicornn_are_neural_oscillators(layers, bidirectional, bias):
    """+tanh in coRNN: the weights are the same. -tanh in UnICORNN: all weights change sign."""
    torch.manual_seed(0)
    shared = {"frequency": 0.0, "bias": bias, "bidirectional": bidirectional, "dtype": F64}
    cornn = ah.CoRNN(2, 5, layers, dt=0.1, damping=0.0, **shared)
    unicornn = ah.UnICORNN(2, 5, layers, dt=0.3, **shared)
    with torch.no_grad():
        for name, parameter in (*cornn.named_parameters(), *unicornn.named_parameters()):
            if name.startswith("weight_hz"):
                parameter.zero_()
            elif name.startswith("timescale"):
                parameter.fill_(-0.4)
            elif name.startswith("bias"):
                parameter.copy_(noise(5))
    x = noise(60, 3, 2)
    for other, kind, dt in (
        (cornn, ah.NeuralOscillator, 0.1),
        (unicornn, ah.MultiLayerNeuralOscillator, 0.3 / (1 + math.exp(0.4))),
    ):
        layer = as_neural_oscillator(other)
        assert type(layer) is kind and abs(layer.dt - dt) < 1e-15
        for backend in ("auto", "reference"):
            with ah.use_backend(backend):
                output, state = layer(x)
                expected, last = other(x)
            assert expected.abs().max() > 0.1
            torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
            torch.testing.assert_close(tuple(state), tuple(last), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
def test_refusals():
    undamped = {"frequency": 0.0, "damping": 0.0}
    for layer, words in (
        (ah.CoRNN(2, 3), "frequency=0, damping=0"),
        (ah.CoRNN(2, 3, **undamped), "weight_hz not zero"),
        (ah.CoRNN(2, 3, **undamped, trainable_dt=True), "no learned scalars"),
        (ah.UnICORNN(2, 3), "frequency=0"),
        (ah.UnICORNN(2, 3, frequency=0.0), "steps from 0.04"),
        (ah.UnICORNN(2, 3, 3, frequency=0.0, skipped_layers=2), "no skipped_layers"),
    ):
        with pytest.raises(ValueError) as caught:
            as_neural_oscillator(layer)
        assert words in str(caught.value)
    with pytest.raises(TypeError, match="CoRNN or a UnICORNN; got LEM"):
        as_neural_oscillator(ah.LEM(2, 3))
    for frequencies, words in (
        ([], "frequencies must be at least one"),
        ([1.0, 0.0], r"frequencies\[1\] must be a finite number in \(0, inf\)"),
        ([1.0, float("nan")], r"frequencies\[1\]"),
    ):
        with pytest.raises(ValueError, match=words):
            harmonic_oscillators(frequencies)
    with pytest.raises(ValueError, match=r"input_scale must be .* got 0"):
        harmonic_oscillators([1.0], input_scale=0.0)
    with pytest.raises(TypeError, match=r"list of numbers; got 1.0; pass one frequency as \[1.0\]"):
        harmonic_oscillators(1.0)
    with pytest.raises(TypeError, match=r"given here; got \['bias', 'hidden_size'\]"):
        harmonic_oscillators([1.0], hidden_size=3, bias=True)


def test_frequencies_may_be_a_tensor():
    layer = harmonic_oscillators(torch.tensor([1.0, 2.0]), dt=0.1)
    assert layer.weight_hh_l0.tolist() == [-1.0, -4.0]


def test_fast_oscillators_warn():
    with pytest.warns(ah.StabilityWarning, match="dt=0.05, frequency=40") as caught:
        harmonic_oscillators([1.0, 40.0])
    assert caught[0].filename == __file__
