"""Every check fails when the model, the solver or the tool that it is about has a planted error."""

import importlib
import pkgutil

import pytest
import torch

import anharmonic_papers.theory
from anharmonic import LEM, CoRNN, GradientGating, GraphCON, UnICORNN
from anharmonic.nn.graph import attention
from anharmonic.nn.sequence import layer
from anharmonic.ops import CoRNNEquation, LEMEquation, State, UnICORNNEquation
from anharmonic.ops.stream import Stream
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
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.iter_modules(
        anharmonic_papers.theory.__path__, f"{anharmonic_papers.theory.__name__}."
    )
]


# Errors of sequence models: functions of the model, which is altered wherever it runs.


def scalar(name, function):
    """An error in a number on its way from a layer to its step or its differential equation."""

    def alter(settings):
        value = settings[name]
        several = isinstance(value, (list, tuple))
        return settings | {name: type(value)(map(function, value)) if several else function(value)}

    def solved(solve):
        def solution(layer, *args):
            with pytest.MonkeyPatch.context() as patch:
                names = "dt", "frequency", "damping"
                call = alter(dict(zip(names, cornn.scalars(layer), strict=True)))
                patch.setattr(cornn, "scalars", lambda _: tuple(call[name] for name in names))
                return solve(layer, *args)

        return solution

    def plant(patch, model):
        right = model.equation

        def equation(self):
            made = right(self)
            return type(made)(**alter(vars(made)))

        patch.setattr(model, "equation", equation)
        for solve in ("flow", "variation"):
            patch.setattr(cornn, solve, solved(getattr(cornn, solve)))

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


SEQUENCE_ERRORS = {
    "dt doubled": scalar("dt", lambda dt: 2 * dt),
    "restoring force negated": scalar("frequency", lambda gamma: -gamma),
    "restoring force negated, tenfold": scalar("frequency", lambda gamma: -10 * gamma),
    "damping negated": scalar("damping", lambda epsilon: -epsilon),
    "y moved by the old z": step(
        {CoRNN: by_old_z(CoRNN), UnICORNN: by_old_z(UnICORNN), LEM: old_fast_state}
    ),
    "gates swapped": step({LEM: gates_swapped}),
    "states stored": stored,
}


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

    def states(network, u, times, *, scheme="runge-kutta-nystrom", activation=torch.tanh, **more):
        factor = part if scheme_only in (None, scheme) else 1.0
        return STATES(
            network, u, times, scheme=scheme, activation=lambda a: factor * activation(a), **more
        )

    return STATES, states


def oscillation(sign=1, damping_off=0.0):
    def solution(A, x, y, t, damping):
        return OSCILLATION(sign * A, x, y, t, damping + damping_off)

    return OSCILLATION, solution


STEP, GATED = GraphCON._step, GradientGating._step
OSCILLATION, FLOW = graphcon.oscillation, integrate.linear_flow
SLOWLY, DIFFERENCES = gating.slowly, graphs.difference_sum
STATES, WINDOWED, RK4 = oscillator_networks.states, oscillator_networks.windowed_sine, integrate.rk4
CHAIN, JACOBIAN, DERIVATIVE = oscillator_networks.chain, ode.jacobian, ode.derivative
ADJOINT, MEAN, SKEW = ode.adjoint, ode.mean_along, ode.skew_part
OTHER_ERRORS = {
    "GraphCON: dt doubled": with_settings(dt=lambda dt: 2 * dt),
    "γ negated": with_settings(frequency=lambda gamma: -gamma),
    "γ doubled": with_settings(frequency=lambda gamma: 2 * gamma),
    "α negated": with_settings(damping=lambda alpha: -alpha),
    "α larger": with_settings(damping=lambda alpha: alpha + 0.1),
    "α negated, threefold": with_settings(damping=lambda alpha: -3 * alpha),
    "activation halved": with_settings(_sigma=lambda sigma: lambda a: sigma(a) / 2),
    "X moved by the old Y": (STEP, old_velocity),
    "rates reversed": (GATED, rates_reversed),
    "twice the step": (GATED, overshooting),
    "oscillation: α less": oscillation(damping_off=-0.3),
    "oscillation: α more": oscillation(damping_off=0.3),
    "oscillation: coupling negated": oscillation(sign=-1),
    "flow: a third as fast": (FLOW, lambda M, x, t: FLOW(M, x, t / 3)),
    "gated: a quarter as fast": (
        SLOWLY,
        lambda f, x, t, steps: SLOWLY(lambda z: f(z) / 4, x, t, steps),
    ),
    "gated: three times as fast": (
        SLOWLY,
        lambda f, x, t, steps: SLOWLY(lambda z: 3 * f(z), x, t, steps),
    ),
    "differences of one direction only": (DIFFERENCES, lambda x, w: DIFFERENCES(x, w.triu())),
    "differences to the fourth power": (DIFFERENCES, quartic),
    "attention normalised over the graph": (
        attention._softmax,
        lambda score, target, nodes: score.softmax(0),
    ),
    "forces weaker": weaker(0.8),
    "forces a quarter": weaker(0.25),
    "forces of symplectic Euler weaker": weaker(0.8, "symplectic-euler"),
    "transforms larger": (WINDOWED, lambda *args: 1.5 * WINDOWED(*args)),
    "cubes": (oscillators.squared, lambda value: value**3),
    "weights of a readout halved": (
        CHAIN,
        lambda first, second: CHAIN(first._replace(A=first.A / 2), second),
    ),
    "field halved": (
        RK4,
        lambda field, start, times, steps=1: RK4(lambda z, t: field(z, t) / 2, start, times, steps),
    ),
    "Jacobian transposed": (JACOBIAN, lambda *args: JACOBIAN(*args).mT),
    "Jacobian symmetrised": (JACOBIAN, lambda *args: JACOBIAN(*args) / 2 + JACOBIAN(*args).mT / 2),
    "Jacobian halved": (JACOBIAN, lambda *args: JACOBIAN(*args) / 2),
    "derivative halved": (DERIVATIVE, lambda *args: DERIVATIVE(*args) / 2),
    "adjoint negated": (ADJOINT, lambda *args: -ADJOINT(*args)),
    "mean of a part": (MEAN, lambda field, x: MEAN(field, 0.7 * x)),
    "symmetric part": (SKEW, lambda matrix: matrix + matrix.mT),
}


@pytest.fixture
def altered(monkeypatch):
    """Plants an error wherever it matters for a statement."""

    def plant(error, statement):
        if error in OTHER_ERRORS:
            right, wrong = OTHER_ERRORS[error]
            for place in (*MODULES, GraphCON, GradientGating, attention):
                for name, value in list(vars(place).items()):
                    if value is right:
                        monkeypatch.setattr(place, name, wrong)
        else:
            monkeypatch.setattr(Stream, "fits", lambda *_: False)
            SEQUENCE_ERRORS[error](monkeypatch, MODELS[statement.chapter])

    return plant


CAUGHT = {
    "dt doubled": {name for name in TO_CATCH if STATEMENTS[name].chapter in MODELS}
    - {"unicornn-volume", "unicornn-memory"},
    "restoring force negated": {
        "cornn-energy-continuous", "cornn-energy-implicit", "cornn-energy-implicit-sharp",
        "cornn-energy-explicit", "cornn-sensitivity-implicit",
        "cornn-sensitivity-implicit-sharp", "cornn-jacobian", "cornn-product",
        "unicornn-states", "unicornn-sensitivity", "unicornn-long-term",
        "unicornn-hamiltonian", "unicornn-gradient-hamiltonian", "unicornn-inverse",
    },
    "restoring force negated, tenfold": {"cornn-gradient", "cornn-gradient-explicit"},
    "damping negated": {name for name in TO_CATCH if name.startswith("cornn-")}
    - {"cornn-jacobian-norm", "cornn-training"},
    "y moved by the old z": {
        "cornn-jacobian", "cornn-product", "cornn-long-term", "unicornn-volume",
        "unicornn-states", "unicornn-sensitivity", "unicornn-long-term",
        "unicornn-hamiltonian", "unicornn-inverse", "lem-jacobian", "lem-long-term",
        "lem-emulates-system", "lem-emulates-two-scales", "lem-emulates-scales",
        "lem-emulates-multiscale-method", "lem-equals-lstm",
    },
    "gates swapped": {
        "lem-jacobian", "lem-long-term", "lem-emulates-two-scales", "lem-emulates-scales",
        "lem-emulates-multiscale-method", "lem-equals-lstm",
    },
    "states stored": {"unicornn-memory"},
    "GraphCON: dt doubled": {
        "graphcon-energy-scheme", "graphcon-state-bound", "graphcon-gradient",
        "graphcon-gradient-leading", "graphcon-steady-state", "graphcon-plain-limit",
        "graphcon-uncoupled",
    },
    "γ negated": {
        "graphcon-energy-scheme", "graphcon-constant-steady", "graphcon-state-bound",
        "graphcon-steady-state", "graphcon-plain-limit", "graphcon-uncoupled",
    },
    "γ doubled": {
        "graphcon-energy-scheme", "graphcon-constant-steady", "graphcon-steady-state",
        "graphcon-plain-limit", "graphcon-uncoupled",
    },
    "α negated": {"graphcon-state-bound", "graphcon-gradient", "graphcon-plain-limit"},
    "α larger": {"graphcon-energy-scheme", "graphcon-plain-limit", "graphcon-uncoupled"},
    "α negated, threefold": {"graphcon-algebraic-printed"},
    "activation halved": {
        "graphcon-gradient-leading", "graphcon-plain-limit", "graphcon-steady-state",
    },
    "X moved by the old Y": {
        "graphcon-energy-scheme", "graphcon-steady-state", "graphcon-plain-limit",
        "graphcon-uncoupled",
    },
    "rates reversed": {"g2-limit-exponent", "g2-limit-plain", "g2-euler"},
    "twice the step": {"g2-range", "g2-limit-exponent", "g2-limit-plain", "g2-euler"},
    "oscillation: α less": {
        "graphcon-energy", "graphcon-damped-decay", "graphcon-linear-identity",
    },
    "oscillation: α more": {
        "graphcon-energy", "graphcon-undamped-spread", "graphcon-linear-identity",
    },
    "oscillation: coupling negated": {
        "graphcon-energy", "graphcon-undamped-spread", "graphcon-constant-neutral",
        "graphcon-linear-identity",
    },
    "flow: a third as fast": {"g2-no-gating"},
    "gated: a quarter as fast": {"g2-gated-decay"},
    "gated: three times as fast": {"g2-gated-lower"},
    "differences of one direction only": {
        "similarity-zero", "graphcon-energy", "graphcon-energy-scheme",
        "graphcon-undamped-spread", "graphcon-linear-identity", "g2-oversmoothing-set",
    },
    "attention normalised over the graph": {"graphcon-right-stochastic"},
    "differences to the fourth power": {
        "similarity-zero", "similarity-subadditive", "oversmoothing-set",
        "graphcon-damped-decay", "g2-oversmoothing-set", "g2-poincare",
    },
    "forces weaker": {
        "oscillators-layers-reversible", "oscillators-universal-delay",
        "oscillators-universal-delay-aligned", "oscillators-universal-square",
        "oscillators-universal-timed", "oscillators-input-not-from-zero",
        "oscillators-sine-transform-linear", "oscillators-time",
        "oscillators-sine-transform", "oscillators-delay", "oscillators-function",
        "oscillators-functions", "oscillators-layer-energy",
    },
    "forces a quarter": {
        "oscillators-universal-delay", "oscillators-universal-delay-aligned",
        "oscillators-universal-integral", "oscillators-universal-square",
        "oscillators-universal-timed", "oscillators-fundamental-lemma",
    },
    "forces of symplectic Euler weaker": {
        "oscillators-layers-reversible", "oscillators-discretised",
    },
    "transforms larger": {
        "oscillators-sine-transform-linear", "oscillators-inverse-sine",
        "oscillators-sine-transform",
    },
    "cubes": {"oscillators-uniform-continuity"},
    "weights of a readout halved": {
        "oscillators-function", "oscillators-universal-delay",
        "oscillators-universal-square", "oscillators-universal-timed",
    },
    "field halved": {"ode-skew-necessary"},
    "Jacobian transposed": {"ode-mean-jacobian", "ode-discrete-adjoint", "ode-skew-affine-field"},
    "Jacobian symmetrised": {
        "ode-mean-jacobian", "ode-skew-no-jacobian", "ode-discrete-adjoint",
        "ode-discrete-skew", "ode-skew-affine-field",
    },
    "Jacobian halved": {
        "ode-skew-necessary", "ode-mean-jacobian", "ode-discrete-adjoint",
        "ode-discrete-skew", "ode-skew-affine-field",
    },
    "derivative halved": {"ode-skew-generator"},
    "adjoint negated": {"ode-adjoint"},
    "mean of a part": {"ode-mean-jacobian", "ode-skew-generator"},
    "symmetric part": {
        "ode-skew-adjoint", "ode-skew-mean", "ode-skew-generator", "ode-discrete-skew",
        "ode-skew-affine-field", "ode-symmetric-part", "ode-orthogonal-limit",
    },
}  # fmt: skip
"""What each error must contradict; a bound does not depend on every sign."""
ALGEBRA = {"ode-skew-affine", "ode-cross-product"}
"""About a rank and a product of vectors: nothing runs that could be altered."""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("error", "name"), [(error, name) for error, names in CAUGHT.items() for name in sorted(names)]
)
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
    caught = set.union(*CAUGHT.values())
    assert (caught & TO_CATCH) | ALGEBRA == TO_CATCH
    assert {STATEMENTS[name].state for name in caught - TO_CATCH} == {"false"}
