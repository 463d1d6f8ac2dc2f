"""Every check of neural oscillators and neural ODEs fails when what it is about has an error."""

import contextlib
import importlib
import pkgutil

import pytest
import torch

import anharmonic_papers.theory
from anharmonic_papers.theory import (
    all_statements,
    integrate,
    ode,
    oscillator_networks,
    oscillators,
    signals,
)

STATEMENTS = {
    name: statement
    for name, statement in all_statements().items()
    if statement.chapter in ("Neural oscillators", "Neural ODEs")
    and statement.state in ("holds", "corrected")
}
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.iter_modules(
        anharmonic_papers.theory.__path__, f"{anharmonic_papers.theory.__name__}."
    )
]


def weaker(part, scheme_only=None):
    """The solution with forces that are too small (in one scheme only)."""

    def states(network, u, times, *, scheme="runge-kutta-nystrom", activation=torch.tanh, **more):
        factor = part if scheme_only in (None, scheme) else 1.0
        return STATES(
            network, u, times, scheme=scheme, activation=lambda a: factor * activation(a), **more
        )

    return states


STATES, WINDOWED, RK4 = oscillator_networks.states, signals.windowed_sine, integrate.rk4
CHAIN = oscillator_networks.chain
JACOBIAN, DERIVATIVE = ode.jacobian, ode.derivative
ADJOINT, MEAN, SKEW = ode.adjoint, ode.mean_along, ode.skew_part
ERRORS = {
    "forces weaker": (STATES, weaker(0.8)),
    "forces a quarter": (STATES, weaker(0.25)),
    "forces of symplectic Euler weaker": (STATES, weaker(0.8, "symplectic-euler")),
    "transforms larger": (WINDOWED, lambda *args: 1.5 * WINDOWED(*args)),
    "cubes": (oscillators.squared, lambda value: value**3),
    "weights of a readout halved": (
        oscillator_networks.chain,
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
    "adjoint negated": (
        ADJOINT,
        lambda field, states, last, times, steps: -ADJOINT(field, states, last, times, steps),
    ),
    "mean of a part": (MEAN, lambda field, x: MEAN(field, 0.7 * x)),
    "symmetric part": (SKEW, lambda matrix: matrix + matrix.mT),
}


@contextlib.contextmanager
def altered(error):
    right, wrong = ERRORS[error]
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            for name, value in list(vars(module).items()):
                if value is right:
                    patch.setattr(module, name, wrong)
        yield


CAUGHT = {
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
"""What each error must contradict."""
ALGEBRA = {"ode-skew-affine", "ode-cross-product"}
"""About a rank and a product of vectors: nothing runs that could be altered."""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("error", "name"), [(error, name) for error, names in CAUGHT.items() for name in sorted(names)]
)
def test_a_planted_error_contradicts_the_statement(error, name):
    statement = STATEMENTS[name]
    with altered(error):
        check = statement.example()
    assert statement.contradicted_by(check), str(check)


def test_every_statement_has_an_error_that_contradicts_it():
    assert set.union(*CAUGHT.values()) | ALGEBRA == set(STATEMENTS)
