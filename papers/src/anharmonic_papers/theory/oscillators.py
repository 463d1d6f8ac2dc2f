"""Neural oscillators (thesis, chapter 4): universality, and what the oscillators conserve.

The networks are built with explicit weights and solved. Lemmas 4.2.4 and 4.2.8: oscillators compute
a windowed sine transform; 4.2.5 to 4.2.9: the past of an input from its transforms; 4.2.10:
functions.

Arguments: network, oscillators; u, an input with u(0) = 0, of size 1 unless a statement takes more;
end, the last time; smoothings e, falling; frequencies ω, up to about 20; scales s, falling; t, the
time at which transforms are read.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from anharmonic_papers.theory.layers import seeded
from anharmonic_papers.theory.networks import TanhNetwork, identity, product, random_network, square
from anharmonic_papers.theory.operators import (
    InverseSine,
    delay,
    function,
    function_of_a_point,
    inverse_sine,
    inverse_sine_up_to,
    running_integral,
)
from anharmonic_papers.theory.oscillator_networks import (
    F64,
    OscillatorLayer,
    Oscillators,
    Signal,
    before,
    beside,
    chain,
    extended,
    sine_transform,
    solve,
    states,
    steepest,
    time_neuron,
    times,
    wave,
    waves,
    windowed_sine,
)
from anharmonic_papers.theory.statements import Case, Check, order, statement

claim = partial(statement, chapter="Neural oscillators")
of_formula = partial(claim, relation="==")
by_smoothing = partial(claim, tolerance=0.01, axis="smoothing e", quantity="largest error")
by_width = partial(claim, tolerance=0.01, axis="neurons", quantity="largest error over time")

SMALL = 1e-4
"""The s of a bank whose own error is not looked at."""
END = 1.5


def from_zero(u: Signal) -> dict[str, bool]:
    """What most statements assume of the input."""
    return {"u(0) = 0": bool((u(torch.zeros(1, dtype=F64)) == 0).all())}


# What oscillators conserve


@seeded()
def random_oscillators(*widths: int) -> Oscillators:
    """Layers with w in (-5, -1) and normal V and b; the size of the input comes first."""
    layers = []
    for below, m in pairwise(widths):
        w = -1 - 4 * torch.rand(m, dtype=F64)
        V, b = torch.randn(m, below, dtype=F64), torch.randn(m, dtype=F64)
        layers.append(OscillatorLayer(w, V, b))
    readout = torch.eye(widths[-1], dtype=F64)
    return Oscillators(tuple(layers), readout, torch.zeros(widths[-1], dtype=F64))


def energy(layer: OscillatorLayer, y: Tensor, v: Tensor, below: Tensor) -> Tensor:
    """H = |v|²/2 - Σ log cosh(w y + V y_below + b)/w of a layer, y, v [..., m] -> [...]."""
    a = layer.w * y + below @ layer.V.T + layer.b
    log_cosh = torch.logaddexp(a, -a) - math.log(2)
    return v.square().sum(-1) / 2 - (log_cosh / layer.w).sum(-1)


@of_formula(
    "T (4.5)",
    "holds",
    lambda: (random_oscillators(2, 8), torch.tensor([0.5, -1.0], dtype=F64), 10.0),
    "H",
    tolerance=1e-8,
    axis="t",
)
def oscillators_layer_energy(network: Oscillators, held: Tensor, end: float) -> Check:
    """A layer conserves H = |y'|²/2 - Σ S(w y + V y_below + b)/w, S' = σ, while what is below it
    rests.
    """
    times = torch.arange(round(end / 0.01) + 1, dtype=F64) * 0.01
    layer = network.layers[0]
    walk = states(network, lambda t: held.expand(len(t), -1), times, dt=0.01)
    found = torch.stack([energy(layer, y[0], v[0], held) for y, v in walk])
    return Check(found, found[0], {"w ≠ 0": bool((layer.w != 0).all())}, times)


@claim(
    "T 4.1 (reversibility)",
    "holds",
    lambda: (random_oscillators(1, 4, 3), lambda t: torch.sin(3 * t)[:, None], 0.02, 500),
    "distance from rest",
    axis="layer",
)
def oscillators_layers_reversible(network: Oscillators, u: Signal, dt: float, steps: int) -> Check:
    """Symplectic Euler on the layers is undone step by step, whatever the input.

    It holds up to rounding, here of 500 steps. The order of layers is reversed as well.
    """
    times = dt * torch.arange(steps + 1, dtype=F64)
    *_, (y, v) = states(network, u, times, dt=dt, scheme="symplectic-euler")
    y, v, inputs = [*y], [*v], u(times)
    for n in range(steps, 0, -1):
        for k in reversed(range(len(y))):
            layer, below = network.layers[k], (y[k - 1] if k else inputs[n])
            y[k] = y[k] - dt * v[k]
            v[k] = v[k] - dt * torch.tanh(layer.w * y[k] + below @ layer.V.T + layer.b)
    left = [torch.maximum(a.abs().max(), b.abs().max()) for a, b in zip(y, v, strict=True)]
    return Check(torch.stack(left), torch.tensor(1e-11))


# Sine transforms


FREQUENCIES = torch.tensor([0.5, 1.0, 3.0, 7.0, 15.0], dtype=F64)


@of_formula("T 4.2.4", "holds", lambda: (wave, FREQUENCIES, 3.0), "y(t)", tolerance=3e-8, axis="ω")
def oscillators_sine_transform_linear(u: Signal, frequencies: Tensor, t: float) -> Check:
    """y'' = -ω² y + u from rest gives y(t) = L_t u(ω)/ω, L_t u(ω) = ∫ u(t-r) sin(ωr) dr.

    In our copy the last line of the proof reads -ωy.
    """
    network = sine_transform(frequencies, 1.0)
    _, z = solve(network, u, dt=1e-3, end=t, activation=lambda x: x)
    exact = windowed_sine(u, frequencies, t) / frequencies
    return Check(z[-1] / frequencies, exact, places=frequencies)


@of_formula("T 4.2.5 (t²/4)", "corrected", lambda: (wave, 5.0), "y", axis="t")
def oscillators_time(u: Signal, end: float) -> Check:
    """A neuron with w = 0, V = 0, b = artanh(1/2) is at t²/4, whatever the input.

    This statement is ours. It explains why the second argument of the lemma's Ψ is t²/4.
    """
    times, z = solve(time_neuron(), u, dt=0.05, end=end)
    return Check(z[:, 0], times**2 / 4, places=times)


def transform_error(u: Signal, t: float, network: Oscillators, exact: Tensor) -> Tensor:
    """The largest error of what a network outputs at a time."""
    _, z = solve(network, u, dt=5e-3, end=t)
    return (z[-1] - exact).abs().max()


@of_formula(
    "T 4.2.8",
    "corrected",
    lambda: (wave, FREQUENCIES, 3.0, (0.05, 0.025, 0.0125)),
    "order of the error in s",
    tolerance=0.02,
    axis="scale s",
)
def oscillators_sine_transform(
    u: Signal, frequencies: Tensor, t: float, scales: Sequence[float]
) -> Check:
    """y'' = tanh(-ω² y + s u), read with A = ω/s, is L_t u(ω) up to O(s²).

    The text reads y with A = 1/s. The next statement refutes that.
    """
    exact = windowed_sine(u, frequencies, t)
    errors = [transform_error(u, t, sine_transform(frequencies, s), exact) for s in scales]
    return order(errors, scales, 2.0, places=torch.tensor(scales[:-1]))


@claim(
    "T 4.2.8 as printed",
    "false",
    lambda: (wave, FREQUENCIES, 3.0, (1e-1, 1e-2, 1e-3)),
    "error at the smallest s",
)
def oscillators_sine_transform_printed(
    u: Signal, frequencies: Tensor, t: float, scales: Sequence[float]
) -> Check:
    """Read with A = 1/s, it is L_t u(ω) up to an error that vanishes with s.

    The factor ω of Lemma 4.2.4 is missing. The error is compared with a hundredth of the largest
    transform.
    """
    exact, s = windowed_sine(u, frequencies, t), scales[-1]
    network = sine_transform(frequencies, s)._replace(A=torch.eye(len(frequencies)).double() / s)
    return Check(transform_error(u, t, network, exact), exact.abs().max() / 100)


# The past of an input


def of_means(errors: Sequence[Tensor], u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """Errors against those of a mean over the last e: e/2 times the slope of u."""
    bound = torch.tensor(smoothings, dtype=F64) / 2 * steepest(u, end)
    return Check(torch.stack(list(errors)), bound, from_zero(u), torch.tensor(smoothings))


def bank_size(end: float, e: float) -> InverseSine:
    """An inverse transform whose own error does not count."""
    return inverse_sine(e, 40 / e, int(16 * end / e))


@by_smoothing("T 4.2.5", "holds", lambda: (wave, 2.0, (0.2, 0.1)))
def oscillators_fundamental_lemma(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """A causal continuous operator is, up to e, a continuous function Ψ of the sine transforms at
    finitely many frequencies and of t²/4.

    It is checked for the largest |u| so far, whose values change by no more than the input does.
    Here Ψ is not a network but the operator applied to the reconstructed input.
    """
    errors = []
    for e in smoothings:
        inverse, dt = bank_size(end, e), e / 40
        _, clock = solve(time_neuron(), u, dt=dt, end=end)
        _, beta = solve(sine_transform(inverse.frequencies, SMALL), u, dt=dt, end=end)
        off = []
        for b, quarter in list(zip(beta, clock[:, 0], strict=True))[20::20]:
            t = 2 * float(quarter.sqrt())
            s = torch.linspace(0, t, 200, dtype=b.dtype)
            off.append((inverse.reads(t - s) @ b).abs().amax() - u(s)[:, 0].abs().amax())
        errors.append(torch.stack(off).abs().max())
    return of_means(errors, u, end, smoothings)


def three_transforms() -> list[InverseSine]:
    """Inverse transforms of falling smoothing."""
    sizes = ((0.2, 200, 800), (0.1, 400, 1600), (0.05, 800, 4000))
    return [inverse_sine(e, cutoff, neurons // 2) for e, cutoff, neurons in sizes]


@by_smoothing("T 4.2.6", "corrected", lambda: (wave, 3.0, three_transforms()))
def oscillators_inverse_sine(u: Signal, t: float, transforms: Sequence[InverseSine]) -> Check:
    """u(t-τ) = Σ_j α_j L_t u(ω_j) sin(ω_j τ - ϑ_j) up to e/2 times the slope of u.

    The mollifier looks further back, at u(t-τ-s). The printed one averages across the jump of the
    odd extension at τ = 0.
    """
    tau = torch.linspace(0, 1, 101, dtype=F64)  # up to 1 before t
    past = before(u, 0.0)(t - tau)[:, 0]
    reads = [one.reads(tau) @ windowed_sine(u, one.frequencies, t) for one in transforms]
    errors = [(read - past).abs().max() for read in reads]
    return of_means(errors, u, t, [one.smoothing for one in transforms])


@by_smoothing("T 4.2.6 as printed", "false", lambda: (wave, 3.0, three_transforms()))
def oscillators_inverse_sine_printed(
    u: Signal, t: float, transforms: Sequence[InverseSine]
) -> Check:
    """The same with the mollifier F_e = F * ρ_e, ρ_e supported in [0, e].

    Near τ = 0 the error stays a fixed fraction of the jump 2|u(t)|.
    """
    printed = [one._replace(phases=-one.phases) for one in transforms]
    return oscillators_inverse_sine(u, t, printed)


def squared(value: Tensor) -> Tensor:
    """The map u ↦ u²."""
    return value**2


@claim("T 4.2.7", "holds", lambda: (wave, 3.0, (1.0, 0.1, 0.01)), "|u² - v²|", axis="distance δ")
def oscillators_uniform_continuity(u: Signal, end: float, distances: Sequence[float]) -> Check:
    """A continuous map is uniformly continuous near a compact set K: |F(u) - F(v)| is small for u
    in K and all v close to it, in K or not.

    It is checked for u ↦ u², which is not uniformly continuous on the whole space. Near K, |u² -
    v²| ≤ δ(2 max_K |u| + δ).
    """
    t = torch.linspace(0, end, 2001, dtype=F64)
    value, moved = u(t), []
    for delta in distances:
        changes = [delta * torch.cos(k * t)[:, None] for k in (0, 1, 10, 100)]
        moved.append(max(float((squared(value + c) - squared(value)).abs().max()) for c in changes))
    top = float(value.abs().max())
    bound = torch.tensor([delta * (2 * top + delta) for delta in distances], dtype=F64)
    return Check(torch.tensor(moved, dtype=F64), bound, places=torch.tensor(distances))


def pair(t: Tensor) -> Tensor:
    """Two signals."""
    return torch.cat([wave(t), (t * torch.cos(2 * t))[:, None]], -1)


@by_smoothing("T 4.2.9", "holds", lambda: (pair, 0.5, 2.0, (0.2, 0.1)))
def oscillators_delay(u: Signal, tau: float, end: float, smoothings: Sequence[float]) -> Check:
    """One layer of p N oscillators, linearly read, gives u(t - Δ) up to any e.

    It uses the readout ω_j/s of the corrected Lemma 4.2.8 and the phases of the corrected Lemma
    4.2.6.
    """
    size, errors = u(torch.zeros(1, dtype=F64)).shape[-1], []
    for e in smoothings:
        network = delay(bank_size(end, e), tau, SMALL, size)
        times, z = solve(network, u, dt=e / 40, end=end)
        errors.append((z - before(u, tau)(times)).abs().max())
    return of_means(errors, u, end, smoothings)


# Universality

Build = Callable[[InverseSine, float], Oscillators]
"""Makes a network from the inverse sine transform and the Δ of its last two layers."""


def behind(first: Build, network: TanhNetwork) -> Build:
    """Two layers that compute a function of what the first one gives."""
    return lambda inverse, lag: chain(first(inverse, lag), function(network, inverse, lag, SMALL))


squares = behind(lambda inverse, _: delay(inverse, 0.0, SMALL), square(1e-2))


def errors_by_width(build: Build, target: Signal, case: Case) -> tuple[Tensor, Tensor]:
    """Neurons and largest error over time of networks of falling smoothing e, with Δ = e/2."""
    (u, end, smoothings), neurons, errors = case, [], []
    for e in smoothings:
        network = build(inverse_sine_up_to(end, e), e / 2)
        times, z = solve(network, u, dt=e / 60, end=end)
        neurons.append(network.neurons)
        errors.append((z - target(times)).abs().max())
    return torch.tensor(neurons), torch.stack(errors)


def lagging(build: Build, target: Signal, case: Case, slope: float, lag: float = 1.5) -> Check:
    """Errors for (u, end, smoothings) against lag · e times a slope."""
    neurons, errors = errors_by_width(build, target, case)
    bound = lag * slope * torch.tensor(case[2], dtype=F64)
    return Check(errors, bound, from_zero(case[0]), neurons)


@by_width("T 4.2.10", "holds", lambda: (square(1.0), waves, END, (0.3, 0.15)))
def oscillators_function(
    f: TanhNetwork, u: Signal, end: float, smoothings: Sequence[float]
) -> Check:
    """Two layers, integrators and a bank read at three delays, give f(u(t)) up to any e, f a
    network with one hidden layer.

    The error is at most Δ + e/2 times the slope of f(u). It is a mean lag, not noise. The second
    difference does not grow like 1/Δ², because the three delays are read from the same neurons.
    There it is -ω² times a factor in [0, 1]. Instead it multiplies what is cut off beyond Λ by up
    to Λ². So Λe has to grow slowly as e falls. For e = 0.2 and Δ = 1e-3 the error is 0.6 at Λe = 40
    and 0.005 at Λe = 120.
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        return function(f, inverse, lag, SMALL)

    def target(t: Tensor) -> Tensor:
        return f(u(t))

    return lagging(build, target, (u, end, smoothings), steepest(target, end), lag=1.0)


@by_width("T 4.2.1 (delay)", "holds", lambda: (waves, 0.5, END, (0.3, 0.15)))
def oscillators_universal_delay(
    u: Signal, tau: float, end: float, smoothings: Sequence[float]
) -> Check:
    """Three layers of oscillators give Φ(u)(t) up to any e, for Φ: u(t - 0.5).

    The error is at most (e + Δ) times the slope of u. The inverse sine transform is used twice and
    reads e/2 too far back in the mean. The second difference adds Δ. With about 46 T/e neurons the
    error falls like 1/width.
    """
    build = behind(lambda inverse, _: delay(inverse, tau, SMALL), identity(1, 1e-2))
    return lagging(build, before(u, tau), (u, end, smoothings), steepest(u, end))


@of_formula(
    "T 4.2.1 (delay, read earlier)",
    "corrected",
    lambda: (lambda t: wave(t) * t[:, None] ** 2, 0.7, END, (0.2, 0.1)),
    "order of the error in e",
    tolerance=0.1,
    axis="neurons",
)
def oscillators_universal_delay_aligned(
    u: Signal, tau: float, end: float, smoothings: Sequence[float]
) -> Check:
    """With the first layer read e + Δ earlier, there is no mean lag, and the error of a smooth
    input that starts smoothly falls like 1/width².

    This statement is ours. It applies only to operators that do not read the last e + Δ of the
    input. The example measures the order in e.
    """
    # For an input with u(0) = u'(0) = 0 and a delay of at least 1.5 e.
    build = behind(lambda one, lag: delay(one, tau - one.smoothing - lag, SMALL), identity(1, 1e-2))
    neurons, errors = errors_by_width(build, before(u, tau), (u, end, smoothings))
    return order(list(errors), smoothings, 2.0, places=neurons[1:])


@by_width(
    "T 4.2.1 (running integral)",
    "holds",
    lambda: (
        lambda t: 3 * torch.cos(3 * t)[:, None] - 3 * torch.cos(6 * t)[:, None],
        lambda t: torch.sin(3 * t)[:, None] - torch.sin(6 * t)[:, None] / 2,
        END,
        (0.3, 0.15),
    ),
)
def oscillators_universal_integral(
    u: Signal, integral: Signal, end: float, smoothings: Sequence[float]
) -> Check:
    """Three layers of oscillators give Φ(u)(t) up to any e, for Φ: the integral of u from 0 to t.

    The error is at most (e + Δ) max |u|.
    """
    build = behind(lambda inverse, _: running_integral(inverse, end, SMALL), identity(1, 1e-2))
    return lagging(build, integral, (u, end, smoothings), steepest(integral, end))


@by_width("T 4.2.1 (square)", "holds", lambda: (waves, END, (0.3, 0.15)))
def oscillators_universal_square(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """Three layers of oscillators give Φ(u)(t) up to any e, for Φ: u(t)².

    The error is at most e + Δ times the slope of u². The square is a second difference of tanh with
    step s, so rounding errors grow by a factor of 1/(s Δ)². They do not matter in float64. In
    float32 with e = 0.2 and Δ = 0.1 they are 1.6 at s = 1e-2 and 0.01 at s = 0.1.
    """

    def target(t: Tensor) -> Tensor:
        return u(t) ** 2

    return lagging(squares, target, (u, end, smoothings), steepest(target, end))


@by_width("T 4.2.1 (t² u)", "holds", lambda: (waves, END, (0.3, 0.15)))
def oscillators_universal_timed(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """Three layers of oscillators give Φ(u)(t) up to any e, for Φ: t²/4 · u(t), which depends on
    the time.

    A neuron beside the first layer has the value t²/4. The error is at most e + Δ times the larger
    of two slopes: that of t²/4 · u, and T²/4 times that of u.
    """
    build = behind(
        lambda inverse, _: beside(delay(inverse, 0.0, SMALL), time_neuron()), product(1e-2)
    )

    target = times(lambda t: t**2 / 4, u)
    slope = max(steepest(target, end), steepest(u, end) * end**2 / 4)
    return lagging(build, target, (u, end, smoothings), slope)


# Remarks


@claim(
    "T 4.2.2",
    "holds",
    lambda: (lambda t: torch.cos(3 * t)[:, None], 0.5, END, (0.2, 0.1)),
    "largest error on [0, T]",
    tolerance=0.01,
    axis="smoothing e",
)
def oscillators_input_not_from_zero(
    u: Signal, longer: float, end: float, smoothings: Sequence[float]
) -> Check:
    """Without u(0) = 0: continue u by (t + t₀)/t₀ u(0) on [-t₀, 0] and start there.

    The error is that of an input whose slope is the larger of |u(0)|/t₀ and the slope of u.
    """
    # One layer that gives u back on [0, T], started at -t₀ = -longer.
    whole, errors = extended(u, longer), []
    for e in smoothings:
        network = delay(inverse_sine_up_to(end + longer, e), 0.0, SMALL)
        times, z = solve(network, whole, dt=e / 60, start=-longer, end=end)
        errors.append((z - u(times))[times >= 0].abs().max())
    bound = torch.tensor(smoothings, dtype=F64) / 2 * steepest(whole, end, -longer)
    return Check(torch.stack(errors), bound, places=torch.tensor(smoothings))


@of_formula(
    "T 4.2.3",
    "holds",
    lambda: (squares(inverse_sine_up_to(END, 0.3), 0.15), wave, END, (5e-3, 2.5e-3, 1.25e-3)),
    "order of the error in dt",
    tolerance=0.05,
    axis="dt",
)
def oscillators_discretised(
    network: Oscillators, u: Signal, end: float, steps: Sequence[float]
) -> Check:
    """The same holds for a discretisation with small enough steps.

    The example measures by which order in dt symplectic Euler, the scheme of UnICORNN, differs from
    the solution. The step has to resolve the largest frequency Λ.
    """
    # The steps fall by factors of two; end is a multiple of all.
    _, exact = solve(network, u, dt=steps[0], end=end)
    errors = []
    for dt in steps:
        _, z = solve(network, u, dt=dt, end=end, scheme="symplectic-euler")
        errors.append((z[:: round(steps[0] / dt)] - exact).abs().max())
    return order(errors, steps, 1.0)


def plane_function() -> Case:
    """A network of two numbers, points and smoothings."""
    side = torch.linspace(-1, 1, 5, dtype=F64)
    with seeded():
        return random_network(2, 6, (2,)), torch.cartesian_prod(side, side), (0.4, 0.3)


@of_formula(
    "T 4.3", "holds", plane_function, "order of the error in e", tolerance=0.05, axis="smoothing e"
)
def oscillators_functions(F: TanhNetwork, points: Tensor, smoothings: Sequence[float]) -> Check:
    """A function F is a network of oscillators driven by u(t) = t ξ and read at t = 2.

    F(ξ) = F(u(1)) is read by a delay of 1, shortened by the mean lag of the layers. The factor (t -
    1) of the paper's operator is 1 at t = 2. The example measures the order in e.
    """
    errors = []
    for e in smoothings:
        network = function_of_a_point(F, inverse_sine_up_to(2.0, e), e / 2, SMALL)
        _, z = solve(network, lambda t: t[:, None, None] * points, dt=e / 60, end=2.0)
        errors.append((z[-1] - F(points)).abs().max())
    return order(errors, smoothings, 2.0)
