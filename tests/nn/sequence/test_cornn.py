"""coRNN: closed forms, order in dt, stability warnings, trainable scalars."""

import itertools
import math
import warnings

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def free_layer(**options):
    """A layer without weights: y'' = -frequency y - damping y'."""
    layer = ah.CoRNN(1, 1, bias=False, dtype=F64, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    return layer


def damped_oscillation(t, frequency, damping, y0, z0):
    """Solution of y'' = -frequency y - damping y' (underdamped)."""
    omega = math.sqrt(frequency - damping**2 / 4)
    decay = torch.exp(-damping * t / 2)
    return decay * (
        y0 * torch.cos(omega * t) + (z0 + damping * y0 / 2) / omega * torch.sin(omega * t)
    )


@pytest.mark.parametrize("scheme", ["explicit", "implicit"])
def test_closed_form_and_first_order(scheme):
    frequency, damping, end = 4.0, 0.5, 3.0
    start = (torch.full((1, 1, 1), 0.8, dtype=F64), torch.full((1, 1, 1), -0.3, dtype=F64))
    errors = []
    for steps in (300, 600, 1200):
        layer = free_layer(dt=end / steps, frequency=frequency, damping=damping, scheme=scheme)
        output, _ = layer(torch.zeros(steps, 1, 1, dtype=F64), start)
        t = torch.arange(1, steps + 1, dtype=F64) * end / steps
        exact = damped_oscillation(t, frequency, damping, 0.8, -0.3)
        errors.append((output[:, 0, 0] - exact).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert errors[-1] < 5e-3
    assert all(0.9 < order < 1.1 for order in orders), orders


@pytest.mark.covering(2)
@pytest.mark.parametrize(
    "options, advice",
    [
        ({"dt": 2.0, "frequency": 1.0}, "use a smaller dt"),
        ({"dt": 0.1, "frequency": 500.0}, "use a smaller dt"),
        ({"dt": 0.1, "damping": 30.0}, "use a smaller dt"),
        ({"dt": 0.1, "damping": 0.0}, "use a positive damping"),
        ({"dt": 0.1, "damping": -0.5}, "use a positive damping"),
        ({"dt": 3.0, "frequency": 2.0, "scheme": "implicit"}, "use a smaller dt"),
    ],
)
@pytest.mark.parametrize("kind", [ah.CoRNN, ah.CoRNNCell])
def test_unstable_settings_warn(kind, options, advice):
    with pytest.warns(ah.StabilityWarning) as caught:
        kind(2, 3, **options)
    (warning,) = caught
    text = str(warning.message)
    assert "damping > 0 and dt^2 * frequency" in text and advice in text
    assert f"dt={options['dt']:g}" in text
    assert warning.filename == __file__  # it points at the caller's line


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
def test_the_warning_is_exactly_the_stability_limit(scheme):
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


def test_trainable_scalars_start_as_given_and_learn():
    layer = ah.CoRNN(
        2,
        3,
        num_layers=2,
        dt=0.2,
        frequency=1.5,
        damping=0.8,
        trainable_dt=True,
        trainable_frequency=True,
        trainable_damping=True,
        dtype=F64,
    )
    fixed = ah.CoRNN(2, 3, num_layers=2, dt=0.2, frequency=1.5, damping=0.8, dtype=F64)
    assert set(layer.state_dict()) - set(fixed.state_dict()) == {
        "raw_dt",
        "raw_frequency",
        "raw_damping",
    }
    fixed.load_state_dict({k: v for k, v in layer.state_dict().items() if "raw" not in k})
    x = torch.randn(9, 2, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x)[0], fixed(x)[0], rtol=1e-13, atol=1e-14)
    layer(x)[0].square().sum().backward()
    assert all(getattr(layer, f"raw_{n}").grad.abs() > 0 for n in ("dt", "frequency", "damping"))


def test_scales_of_the_initial_weights():
    torch.manual_seed(0)
    bound = 1 / math.sqrt(3 + 2 * 50)
    layer = ah.CoRNN(3, 50, input_scale=30.0, recurrent_scale=0.1)
    found = {name: float(p.detach().abs().max()) / bound for name, p in layer.named_parameters()}
    assert 28 < found["weight_ih_l0"] <= 30 and 20 < found["bias_l0"] <= 30
    assert 0.09 < found["weight_hy_l0"] <= 0.1 and 0.09 < found["weight_hz_l0"] <= 0.1
    torch.manual_seed(1)
    plain = ah.CoRNN(3, 50)
    torch.manual_seed(1)
    same = ah.CoRNN(3, 50, input_scale=1.0, recurrent_scale=1.0)
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), same.parameters(), strict=True)
    )
    with pytest.raises(ValueError, match=r"input_scale.*-1"):
        ah.CoRNN(3, 50, input_scale=-1.0)
