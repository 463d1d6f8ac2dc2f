"""Every check of coRNN, UnICORNN and LEM fails when the model has a planted error."""

import contextlib

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.nn.sequence import layer
from anharmonic.ops import CoRNNEquation, LEMEquation, State, UnICORNNEquation
from anharmonic.ops.stream import Stream
from anharmonic_papers.theory import all_statements, cornn

MODELS = {"coRNN": CoRNN, "UnICORNN": UnICORNN, "LEM": LEM}
STATEMENTS = {
    name: statement
    for name, statement in all_statements().items()
    if statement.chapter in MODELS and statement.state in ("holds", "corrected")
}


def scalar(name, function):
    """An error in a number on its way from the layer to its step."""

    def alter(settings):
        value = settings[name]
        several = isinstance(value, (list, tuple))
        return settings | {name: type(value)(map(function, value)) if several else function(value)}

    return alter


def old_velocity(equation, u, state, w, dt):
    return State(state.y + dt * state.z, STEPS["coRNN"](equation, u, state, w, dt).z)


def old_momentum(equation, u, state, w, h):
    return State(state.y + h * state.z, STEPS["UnICORNN"](equation, u, state, w, h).z)


def old_fast_state(equation, u, state, w, dt):
    y, z = state
    e = dt * torch.sigmoid(torch.addmm(u.gates_z, y, w.gates_z)[:, y.shape[1] : 2 * y.shape[1]])
    y = torch.lerp(y, torch.tanh(torch.addmm(u.y, z, w.y)), e)
    return State(y, STEPS["LEM"](equation, u, state, w, dt).z)


def gates_swapped(equation, u, state, w, dt):
    def swap(values):
        one, other, rest = values.tensor_split((values.shape[1] // 3, values.shape[1] * 2 // 3), 1)
        return torch.cat([other, one, rest], 1)

    u, w = (both._replace(gates_z=swap(both.gates_z)) for both in (u, w))
    return STEPS["LEM"](equation, u, state, w, dt)


EQUATIONS = {"coRNN": CoRNNEquation, "UnICORNN": UnICORNNEquation, "LEM": LEMEquation}
STEPS = {chapter: equation.step for chapter, equation in EQUATIONS.items()}
SETTINGS = {
    "dt doubled": scalar("dt", lambda dt: 2 * dt),
    "restoring force negated": scalar("frequency", lambda gamma: -gamma),
    "restoring force negated, tenfold": scalar("frequency", lambda gamma: -10 * gamma),
    "damping negated": scalar("damping", lambda epsilon: -epsilon),
}
ALTERED_STEPS = {
    "y moved by the old z": {
        "coRNN": old_velocity,
        "UnICORNN": old_momentum,
        "LEM": old_fast_state,
    },
    "gates swapped": {"LEM": gates_swapped},
}


@contextlib.contextmanager
def altered(name, chapter):
    """The model with an error, wherever it runs: its steps and the differential equation's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "fits", lambda *_: False)
        model, run = MODELS[chapter], layer.run
        if name == "states stored":
            patch.setattr(layer, "run", lambda *args, **kw: run(*args, **kw | {"memory": "stored"}))
        elif name in SETTINGS:
            kept = model.equation

            def equation(self):
                right = kept(self)
                return type(right)(**SETTINGS[name](vars(right)))

            patch.setattr(model, "equation", equation)
            for solve in ("flow", "variation"):
                patch.setattr(cornn, solve, solved(getattr(cornn, solve), SETTINGS[name]))
        else:
            patch.setattr(EQUATIONS[chapter], "step", ALTERED_STEPS[name][chapter])
            patch.setattr(layer, "run", lambda *args, **kw: run(*args, **kw, backend="reference"))
        yield


def solved(solve, alter):
    """A solution of the differential equation with altered scalars."""

    def solution(layer, *args):
        with pytest.MonkeyPatch.context() as patch:
            names = "dt", "frequency", "damping"
            call = alter(dict(zip(names, cornn.scalars(layer), strict=True)))
            patch.setattr(cornn, "scalars", lambda _: tuple(call[name] for name in names))
            return solve(layer, *args)

    return solution


CAUGHT = {
    "dt doubled": set(STATEMENTS) - {"unicornn-volume", "unicornn-memory"},
    "restoring force negated": {
        "cornn-energy-continuous", "cornn-energy-implicit", "cornn-energy-implicit-sharp",
        "cornn-energy-explicit", "cornn-sensitivity-implicit",
        "cornn-sensitivity-implicit-sharp", "cornn-jacobian", "cornn-product",
        "unicornn-states", "unicornn-sensitivity", "unicornn-long-term",
        "unicornn-hamiltonian", "unicornn-gradient-hamiltonian", "unicornn-inverse",
    },
    "restoring force negated, tenfold": {"cornn-gradient", "cornn-gradient-explicit"},
    "damping negated": {name for name in STATEMENTS if name.startswith("cornn-")}
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
}  # fmt: skip
"""What each error must contradict; the bounds do not depend on every sign."""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("error", "name"), [(error, name) for error, names in CAUGHT.items() for name in sorted(names)]
)
def test_a_planted_error_contradicts_the_statement(error, name):
    statement = STATEMENTS[name]
    with altered(error, statement.chapter):
        check = statement.example()
    assert statement.contradicted_by(check), str(check)


OPEN = {"y moved by the old z": {"cornn-long-term-order", "cornn-long-term-order-explicit"}}
"""What each error must change by more than a twentieth, where nothing is proved."""


@pytest.mark.parametrize(
    ("error", "name"), [(error, name) for error, names in OPEN.items() for name in sorted(names)]
)
def test_a_planted_error_changes_what_an_open_statement_measures(error, name):
    statement = all_statements()[name]
    clean = statement.example().measured
    with altered(error, statement.chapter):
        found = statement.example().measured
    assert not torch.allclose(found, clean, rtol=0.05, atol=0)


def test_every_statement_has_an_error_that_contradicts_it():
    assert set.union(*CAUGHT.values()) == set(STATEMENTS)
