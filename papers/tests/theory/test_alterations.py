"""Every check fails when the model, the solver or the tool that it is about has a planted error."""

import copy
import importlib
import pkgutil

import pytest
import torch

from anharmonic import LEM, CoRNN, GradientGating, GraphCON, UnICORNN
from anharmonic.nn.graph import attention
from anharmonic.nn.sequence import layer
from anharmonic.ops import CoRNNEquation, LEMEquation, State, UnICORNNEquation
from anharmonic.ops.stream import Stream
from anharmonic_papers import theory
from anharmonic_papers.theory import (
    all_statements,
    cornn,
    gating,
    graphcon,
    graphs,
    integrate,
    ode,
    oscillator_networks,
    oscillators,
)

STATEMENTS = all_statements()
TO_CATCH = {name for name, said in STATEMENTS.items() if said.state in ("holds", "corrected")}
MODELS = {"coRNN": CoRNN, "UnICORNN": UnICORNN, "LEM": LEM}
EQUATIONS = {CoRNN: CoRNNEquation, UnICORNN: UnICORNNEquation, LEM: LEMEquation}
STEPS = {model: equation.step for model, equation in EQUATIONS.items()}
NAMES = f"{theory.__name__}."
MODULES = [
    importlib.import_module(module.name) for module in pkgutil.iter_modules(theory.__path__, NAMES)
]


# Errors of sequence models: functions of the model, which is altered wherever it runs.


def scalar(name, function):
    """An error in a number on its way from a layer to its step or its differential equation."""

    def alter(value):
        several = isinstance(value, (list, tuple))
        return type(value)(map(function, value)) if several else function(value)

    def plant(patch, model):
        right, solve = model.equation, cornn.flow

        def equation(self):
            made = right(self)
            return type(made)(**vars(made) | {name: alter(getattr(made, name))})

        def flow(layer, *args):
            wrong = copy.copy(layer)
            setattr(wrong, name, function(getattr(layer, name)))
            return solve(wrong, *args)

        patch.setattr(model, "equation", equation)
        patch.setattr(cornn, "flow", flow)

    return plant


def step(steps):
    """An error in the steps of some models."""

    def plant(patch, model):
        run = layer.run
        patch.setattr(EQUATIONS[model], "step", steps[model])
        patch.setattr(layer, "run", lambda *args, **kw: run(*args, **kw, backend="reference"))

    return plant


def stored(patch, model):
    run = layer.run
    patch.setattr(layer, "run", lambda *args, **kw: run(*args, **kw | {"memory": "stored"}))


def by_old_z(model):
    def moved(equation, u, state, w, dt):
        return State(state.y + dt * state.z, STEPS[model](equation, u, state, w, dt).z)

    return moved


def old_fast_state(equation, u, state, w, dt):
    y, z = state
    e = dt * torch.sigmoid(torch.addmm(u.gates_z, y, w.gates_z)[:, y.shape[1] : 2 * y.shape[1]])
    y = torch.lerp(y, torch.tanh(torch.addmm(u.y, z, w.y)), e)
    return State(y, STEPS[LEM](equation, u, state, w, dt).z)


def gates_swapped(equation, u, state, w, dt):
    def swap(values):
        one, other, rest = values.tensor_split((values.shape[1] // 3, values.shape[1] * 2 // 3), 1)
        return torch.cat([other, one, rest], 1)

    u, w = (both._replace(gates_z=swap(both.gates_z)) for both in (u, w))
    return STEPS[LEM](equation, u, state, w, dt)


# Other errors: functions and what takes their place, methods of graph layers among them.


def with_settings(**functions):
    """The step of GraphCON with other numbers than the layer says it has."""

    def step(self, n, states, inputs):
        with pytest.MonkeyPatch.context() as patch:
            for name, function in functions.items():
                patch.setitem(vars(self), name, function(getattr(self, name)))  # unchecked
            return STEP(self, n, states, inputs)

    return STEP, step


def old_velocity(self, n, states, inputs):
    return states[0] + self.dt * states[1], STEP(self, n, states, inputs)[1]


def rates_reversed(self, n, states, inputs):
    x, (after, tau) = states[0], GATED(self, n, states, inputs)
    return x + (1 - tau) * (after - x) / tau.clamp(min=1e-30), tau


def overshooting(self, n, states, inputs):
    x, (after, tau) = states[0], GATED(self, n, states, inputs)
    return 2 * after - x, tau


def quartic(x, weights):
    i, j = weights.nonzero(as_tuple=True)
    apart = (x[..., i, :] - x[..., j, :]).pow(4)
    return (weights[i, j, None] * apart).sum((-2, -1))


def weaker(part, scheme_only=None):
    """The solution with forces that are too small (in one scheme only)."""

    def states(*args, scheme="runge-kutta-nystrom", activation=torch.tanh, **more):
        factor = part if scheme_only in (None, scheme) else 1.0
        return STATES(*args, scheme=scheme, activation=lambda a: factor * activation(a), **more)

    return STATES, states


def given(right, place, change):
    """A function that is given another argument."""

    def wrong(*args, **more):
        return right(*args[:place], change(args[place]), *args[place + 1 :], **more)

    return right, wrong


def returned(right, change):
    """A function that returns another value."""
    return right, lambda *args, **more: change(right(*args, **more))


OF_SEQUENCES = {name for name in TO_CATCH if STATEMENTS[name].chapter in MODELS}
UNTIMED, UNDAMPED = (
    {"unicornn-volume", "unicornn-memory"},
    {"cornn-jacobian-norm", "cornn-training"},
)
STEP, GATED, STATES = GraphCON._step, GradientGating._step, oscillator_networks.states
ERRORS = {
    "dt doubled": (scalar("dt", lambda dt: 2 * dt), " ".join(sorted(OF_SEQUENCES - UNTIMED))),
    "restoring force negated": (
        scalar("frequency", lambda gamma: -gamma),
        "cornn- energy-continuous energy-implicit energy-implicit-sharp energy-explicit "
        "sensitivity-implicit sensitivity-implicit-sharp jacobian product unicornn- states "
        "sensitivity long-term hamiltonian gradient-hamiltonian inverse",
    ),
    "restoring force negated, tenfold": (
        scalar("frequency", lambda gamma: -10 * gamma),
        "cornn- gradient gradient-explicit",
    ),
    "damping negated": (
        scalar("damping", lambda epsilon: -epsilon),
        " ".join(sorted({n for n in OF_SEQUENCES if n.startswith("cornn-")} - UNDAMPED)),
    ),
    "y moved by the old z": (
        step({CoRNN: by_old_z(CoRNN), UnICORNN: by_old_z(UnICORNN), LEM: old_fast_state}),
        "cornn- jacobian product long-term unicornn- volume states sensitivity long-term "
        "hamiltonian inverse lem- jacobian long-term emulates-system emulates-two-scales "
        "emulates-scales emulates-multiscale-method equals-lstm",
    ),
    "gates swapped": (
        step({LEM: gates_swapped}),
        "lem- jacobian long-term emulates-two-scales emulates-scales emulates-multiscale-method "
        "equals-lstm",
    ),
    "states stored": (stored, "unicornn-memory"),
    "GraphCON: dt doubled": (
        with_settings(dt=lambda dt: 2 * dt),
        "graphcon- energy-scheme state-bound gradient gradient-leading steady-state plain-limit "
        "uncoupled",
    ),
    "γ negated": (
        with_settings(frequency=lambda gamma: -gamma),
        "graphcon- energy-scheme constant-steady state-bound steady-state plain-limit uncoupled",
    ),
    "γ doubled": (
        with_settings(frequency=lambda gamma: 2 * gamma),
        "graphcon- energy-scheme constant-steady steady-state plain-limit uncoupled",
    ),
    "α negated": (
        with_settings(damping=lambda alpha: -alpha),
        "graphcon- state-bound gradient plain-limit",
    ),
    "α larger": (
        with_settings(damping=lambda alpha: alpha + 0.1),
        "graphcon- energy-scheme plain-limit uncoupled",
    ),
    "α negated, threefold": (
        with_settings(damping=lambda alpha: -3 * alpha),
        "graphcon-algebraic-printed",
    ),
    "activation halved": (
        with_settings(_sigma=lambda sigma: lambda a: sigma(a) / 2),
        "graphcon- gradient-leading plain-limit steady-state",
    ),
    "X moved by the old Y": (
        (STEP, old_velocity),
        "graphcon- energy-scheme steady-state plain-limit uncoupled",
    ),
    "rates reversed": ((GATED, rates_reversed), "g2- limit-exponent limit-plain euler"),
    "twice the step": ((GATED, overshooting), "g2- range limit-exponent limit-plain euler"),
    "oscillation: α less": (
        given(graphcon.oscillation, 4, lambda alpha: alpha - 0.3),
        "graphcon- energy damped-decay linear-identity",
    ),
    "oscillation: α more": (
        given(graphcon.oscillation, 4, lambda alpha: alpha + 0.3),
        "graphcon- energy undamped-spread linear-identity",
    ),
    "oscillation: coupling negated": (
        given(graphcon.oscillation, 0, torch.neg),
        "graphcon- energy undamped-spread constant-neutral linear-identity",
    ),
    "flow: a third as fast": (given(integrate.linear_flow, 2, lambda t: t / 3), "g2-no-gating"),
    "gated: a quarter as fast": (
        given(gating.slowly, 0, lambda f: lambda z: f(z) / 4),
        "g2-gated-decay",
    ),
    "gated: three times as fast": (
        given(gating.slowly, 0, lambda f: lambda z: 3 * f(z)),
        "g2-gated-lower",
    ),
    "differences of one direction only": (
        given(graphs.difference_sum, 1, torch.triu),
        "similarity-zero g2-oversmoothing-set graphcon- energy energy-scheme undamped-spread "
        "linear-identity",
    ),
    "differences to the fourth power": (
        (graphs.difference_sum, quartic),
        "similarity-zero similarity-subadditive oversmoothing-set graphcon-damped-decay "
        "g2-oversmoothing-set g2-poincare",
    ),
    "attention normalised over the graph": (
        (attention._softmax, lambda score, target, nodes: score.softmax(0)),
        "graphcon-right-stochastic",
    ),
    "forces weaker": (
        weaker(0.8),
        "oscillators- layers-reversible universal-delay universal-delay-aligned universal-square "
        "universal-timed input-not-from-zero sine-transform-linear time sine-transform delay "
        "function functions layer-energy",
    ),
    "forces a quarter": (
        weaker(0.25),
        "oscillators- universal-delay universal-delay-aligned universal-integral universal-square "
        "universal-timed fundamental-lemma",
    ),
    "forces of symplectic Euler weaker": (
        weaker(0.8, "symplectic-euler"),
        "oscillators- layers-reversible discretised",
    ),
    "transforms larger": (
        returned(oscillator_networks.windowed_sine, lambda value: 1.5 * value),
        "oscillators- sine-transform-linear inverse-sine sine-transform",
    ),
    "cubes": ((oscillators.squared, lambda value: value**3), "oscillators-uniform-continuity"),
    "weights of a readout halved": (
        given(oscillator_networks.chain, 0, lambda first: first._replace(A=first.A / 2)),
        "oscillators- function universal-delay universal-square universal-timed",
    ),
    "field halved": (
        given(integrate.rk4, 0, lambda field: lambda z, t: field(z, t) / 2),
        "ode-skew-necessary",
    ),
    "Jacobian transposed": (
        returned(ode.jacobian, lambda J: J.mT),
        "ode- mean-jacobian discrete-adjoint skew-affine-field",
    ),
    "Jacobian symmetrised": (
        returned(ode.jacobian, lambda J: (J + J.mT) / 2),
        "ode- mean-jacobian skew-no-jacobian discrete-adjoint discrete-skew skew-affine-field",
    ),
    "Jacobian halved": (
        returned(ode.jacobian, lambda J: J / 2),
        "ode- skew-necessary mean-jacobian discrete-adjoint discrete-skew skew-affine-field",
    ),
    "derivative halved": (returned(ode.derivative, lambda value: value / 2), "ode-skew-generator"),
    "adjoint negated": (returned(ode.adjoint, torch.neg), "ode-adjoint"),
    "mean of a part": (
        given(ode.mean_along, 1, lambda x: 0.7 * x),
        "ode- mean-jacobian skew-generator",
    ),
    "symmetric part": (
        (ode.skew_part, lambda matrix: matrix + matrix.mT),
        "ode- skew-adjoint skew-mean skew-generator discrete-skew skew-affine-field "
        "symmetric-part orthogonal-limit",
    ),
}
"""Errors, and what each must contradict; a bound does not depend on every sign."""


def named(words):
    """The names, where a word that ends in a hyphen begins each that follows."""
    prefix = ""
    for word in words.split():
        if word.endswith("-"):
            prefix = word
        else:
            yield word if word in STATEMENTS else prefix + word


CAUGHT = [(error, name) for error, (_, words) in ERRORS.items() for name in named(words)]
ALGEBRA = {"ode-skew-affine", "ode-cross-product"}
"""About a rank and a product of vectors: nothing runs that could be altered."""


@pytest.fixture
def altered(monkeypatch):
    """Plants an error wherever it matters for a statement."""

    def plant(error, statement):
        found, _ = ERRORS[error]
        if callable(found):
            monkeypatch.setattr(Stream, "fits", lambda *_: False)
            return found(monkeypatch, MODELS[statement.chapter])
        right, wrong = found
        for place in (*MODULES, GraphCON, GradientGating, attention):
            for name, value in list(vars(place).items()):
                if value is right:
                    monkeypatch.setattr(place, name, wrong)

    return plant


@pytest.mark.covering
@pytest.mark.parametrize(("error", "name"), CAUGHT)
def test_a_planted_error_contradicts_the_statement(error, name, altered):
    statement = STATEMENTS[name]
    altered(error, statement)
    check = statement.example()
    assert statement.contradicted_by(check), str(check)


@pytest.mark.parametrize("name", ["cornn-long-term-order", "cornn-long-term-order-explicit"])
def test_a_planted_error_changes_what_an_open_statement_measures(name, altered):
    clean = STATEMENTS[name].example().measured
    altered("y moved by the old z", STATEMENTS[name])
    assert not torch.allclose(STATEMENTS[name].example().measured, clean, rtol=0.05, atol=0)


def test_every_statement_has_an_error_that_contradicts_it():
    caught = {name for _, name in CAUGHT}
    assert (caught & TO_CATCH) | ALGEBRA == TO_CATCH
    assert {STATEMENTS[name].state for name in caught - TO_CATCH} == {"false"}
