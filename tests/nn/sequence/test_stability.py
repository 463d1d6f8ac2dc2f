"""Warnings of step sizes that are not stable: when a layer is made, and when gaps are too long."""

import warnings

import pytest
import torch

import anharmonic as ah

F64 = torch.float64
CORNN = "damping > 0 and dt^2 * frequency"


@pytest.mark.parametrize(
    "kinds, options, words",
    [
        ((ah.CoRNN, ah.CoRNNCell), {"dt": 2.0, "frequency": 1.0}, (CORNN, "use a smaller dt")),
        ((ah.CoRNN,), {"dt": 0.1, "frequency": 500.0}, (CORNN, "use a smaller dt")),
        ((ah.CoRNN, ah.CoRNNCell), {"dt": 0.1, "damping": 0.0}, ("use a positive damping",)),
        ((ah.CoRNN,), {"dt": 0.1, "damping": -0.5}, (CORNN, "use a positive damping")),
        ((ah.CoRNN,), {"dt": 3.0, "frequency": 2.0, "scheme": "implicit"}, (CORNN, "smaller dt")),
        ((ah.LEM, ah.LEMCell), {"dt": 1.9}, ("dt <= 1",)),
        ((ah.UnICORNN, ah.UnICORNNCell), {"dt": 0.5, "frequency": 100.0},
         ("h * sqrt(frequency) < 2", "frequency=100", "smaller dt")),
        ((ah.NeuralOscillator, ah.MultiLayerNeuralOscillator), {"dt": 1.7}, ("frequency < 2",)),
        ((ah.SkewRNN,), {"dt": 5.0}, ("dt must be <= 1", "choose a smaller dt")),
    ],
)  # fmt: skip
def test_unstable_settings_are_said_with_the_line_of_the_caller(kinds, options, words):
    for kind in kinds:
        with pytest.warns(ah.StabilityWarning) as said:
            layer = kind(2, 3, **options)
        (warning,) = said
        assert all(word in str(warning.message) for word in (f"dt={options['dt']:g}", *words))
        assert warning.filename == __file__
        layer(torch.zeros(4, 2))


def test_tuned_settings_and_clipped_gates_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ah.UnICORNN(1, 4, num_layers=3, dt=0.482, frequency=12.53)
        ah.UnICORNN(1, 4, num_layers=2, dt=[2.81e-5, 3.43e-2], frequency=0.0)
        ah.LEM(2, 8, dt=1.9, gate_floor=0.0)


@pytest.mark.parametrize(
    "layer, longest",
    [
        (lambda: ah.LEM(1, 2), 2.1),
        (lambda: ah.CoRNN(1, 2, dt=0.1, frequency=4.0, damping=1.0), 20.0),
        (lambda: ah.UnICORNN(1, 2, dt=0.1, frequency=4.0), 11.0),
        (lambda: ah.NeuralOscillator(1, 2, dt=0.5), 4.0),
        (lambda: ah.MultiLayerNeuralOscillator(1, 2, dt=0.5), 4.0),
        (lambda: ah.SkewRNN(1, 2, dt=0.1), 30.0),
    ],
)
def test_gaps_too_long_for_a_stable_step_are_said_once(layer, longest):
    layer, x, elapsed = layer(), torch.zeros(4, 3, 1), torch.ones(4, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(x, elapsed=1.5 * elapsed)
    with pytest.warns(
        ah.StabilityWarning, match=f"up to {longest:g}; .*a run with elapsed="
    ) as said:
        layer(x, elapsed=longest * elapsed)
        layer(x, elapsed=longest * elapsed)
    assert len(said) == 1 and said[0].filename == __file__


def spectral_radius(dt, frequency, damping, scheme):
    """Of the linear part's step matrix, acting on (y, z)."""
    if scheme == "explicit":
        row = torch.tensor([-dt * frequency, 1 - dt * damping], dtype=F64)
    else:
        row = torch.tensor([-dt * frequency, 1.0], dtype=F64) / (1 + dt * damping)
    step = torch.stack([torch.tensor([1.0, 0.0], dtype=F64) + dt * row, row])
    step[0, 1] = dt * row[1]
    return torch.linalg.eigvals(step).abs().max().item()


@pytest.mark.parametrize("scheme", ["explicit", "implicit"])
def test_cornn_warns_exactly_beyond_the_stability_limit(scheme):
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for u, v, w in torch.rand(100, 3, generator=generator).tolist():
        dt, frequency, damping = 4 * u + 1e-3, 10 ** (3 * v - 1), 10 ** (3 * w - 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ah.CoRNNCell(1, 1, dt=dt, frequency=frequency, damping=damping, scheme=scheme)
        stable = spectral_radius(dt, frequency, damping, scheme) < 1
        assert stable == (not caught), (dt, frequency, damping)
        seen.add(stable)
    assert seen == {True, False}
