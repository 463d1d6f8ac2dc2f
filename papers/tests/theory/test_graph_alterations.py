"""Every check of GraphCON and Gradient Gating fails when what it is about has a planted error."""

import contextlib

import pytest

from anharmonic import GradientGating, GraphCON
from anharmonic.nn.graph import attention
from anharmonic_papers.theory import all_statements, gating, graphcon

STATEMENTS = {
    name: statement
    for name, statement in all_statements().items()
    if statement.chapter in ("GraphCON", "Gradient Gating")
    and statement.state in ("holds", "corrected")
}
STEP, GATED = GraphCON._step, GradientGating._step
OSCILLATION, FLOW = graphcon.oscillation, gating.linear_flow
SLOWLY, DIFFERENCES = gating.slowly, graphcon.difference_sum


def with_settings(**functions):
    """The step of GraphCON with other numbers than the layer says it has."""

    def step(self, n, states, inputs):
        with pytest.MonkeyPatch.context() as patch:
            for name, function in functions.items():
                patch.setattr(self, name, function(getattr(self, name)))
            return STEP(self, n, states, inputs)

    return step


def old_velocity(self, n, states, inputs):
    return states[0] + self.dt * states[1], STEP(self, n, states, inputs)[1]


def rates_reversed(self, n, states, inputs):
    x, (after, tau) = states[0], GATED(self, n, states, inputs)
    return x + (1 - tau) * (after - x) / tau.clamp(min=1e-30), tau


def overshooting(self, n, states, inputs):
    x, (after, tau) = states[0], GATED(self, n, states, inputs)
    return 2 * after - x, tau


ERRORS = {
    "dt doubled": [(GraphCON, "_step", with_settings(dt=lambda dt: 2 * dt))],
    "γ negated": [(GraphCON, "_step", with_settings(frequency=lambda gamma: -gamma))],
    "γ doubled": [(GraphCON, "_step", with_settings(frequency=lambda gamma: 2 * gamma))],
    "α negated": [(GraphCON, "_step", with_settings(damping=lambda alpha: -alpha))],
    "α larger": [(GraphCON, "_step", with_settings(damping=lambda alpha: alpha + 0.1))],
    "α negated, threefold": [(GraphCON, "_step", with_settings(damping=lambda alpha: -3 * alpha))],
    "activation halved": [
        (GraphCON, "_step", with_settings(_sigma=lambda sigma: lambda a: sigma(a) / 2))
    ],
    "X moved by the old Y": [(GraphCON, "_step", old_velocity)],
    "rates reversed": [(GradientGating, "_step", rates_reversed)],
    "twice the step": [(GradientGating, "_step", overshooting)],
    "oscillation: α less": [
        (
            graphcon,
            "oscillation",
            lambda A, x, y, t, damping: OSCILLATION(A, x, y, t, damping - 0.3),
        )
    ],
    "oscillation: α more": [
        (
            graphcon,
            "oscillation",
            lambda A, x, y, t, damping: OSCILLATION(A, x, y, t, damping + 0.3),
        )
    ],
    "oscillation: coupling negated": [
        (graphcon, "oscillation", lambda A, x, y, t, damping: OSCILLATION(-A, x, y, t, damping))
    ],
    "flow: a third as fast": [(gating, "linear_flow", lambda M, x, t: FLOW(M, x, t / 3))],
    "gated: a quarter as fast": [
        (gating, "slowly", lambda f, x, t, steps: SLOWLY(lambda z: f(z) / 4, x, t, steps))
    ],
    "gated: three times as fast": [
        (gating, "slowly", lambda f, x, t, steps: SLOWLY(lambda z: 3 * f(z), x, t, steps))
    ],
    "differences of one direction only": [
        (module, "difference_sum", lambda x, w: DIFFERENCES(x, w.triu()))
        for module in (graphcon, gating)
    ],
    "attention normalised over the graph": [
        (attention, "_softmax", lambda score, target, nodes: score.softmax(0))
    ],
    "differences to the fourth power": [
        (module, "difference_sum", lambda x, w: quartic(x, w)) for module in (graphcon, gating)
    ],
}


def quartic(x, weights):
    i, j = weights.nonzero(as_tuple=True)
    apart = (x[..., i, :] - x[..., j, :]).pow(4)
    return (weights[i, j, None] * apart).sum((-2, -1))


@contextlib.contextmanager
def altered(error):
    with pytest.MonkeyPatch.context() as patch:
        for place, name, changed in ERRORS[error]:
            patch.setattr(place, name, changed)
        yield


CAUGHT = {
    "dt doubled": {
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
}  # fmt: skip
"""What each error must contradict; a bound does not depend on every sign."""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("error", "name"), [(error, name) for error, names in CAUGHT.items() for name in sorted(names)]
)
def test_a_planted_error_contradicts_the_statement(error, name):
    statement = all_statements()[name]
    with altered(error):
        check = statement.example()
    assert statement.contradicted_by(check), str(check)


def test_every_statement_has_an_error_that_contradicts_it():
    assert set.union(*CAUGHT.values()) - {"graphcon-algebraic-printed"} == set(STATEMENTS)


def test_after_the_errors_all_is_as_it_was():
    assert not any(said.contradicted_by(said.example()) for said in STATEMENTS.values())
