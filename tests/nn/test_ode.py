"""Neural ODEs: solves in closed form, errors of stiffness, matrix form, adjoints, networks."""

import math
import sys

import pytest
import torch

import anharmonic as ah
from anharmonic.nn.ode.matrix_form import DYNAMICS
from anharmonic.nn.ode.solve import ADAPTIVE, FIXED, Solver, StiffError, solve

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
F64 = torch.float64


def solver(method, tolerance=1e-9, **words):
    step = 0.01 if method in FIXED else None
    return Solver(method, tolerance, tolerance, step)._replace(**words)


def spin(t, z):
    """z' = J z, a rotation."""
    return torch.stack((z[..., 1], -z[..., 0]), dim=-1)


@pytest.mark.parametrize("method", [*ADAPTIVE, *FIXED])
def test_rotation_in_closed_form(method):
    times = torch.linspace(0, 2, 5, dtype=F64)
    start, tolerance = torch.tensor([1.0, 0.0], dtype=F64), 1e-4 if "heun" in method else 1e-7
    path, evaluations = solve(spin, start, times, solver(method, tolerance))
    exact = torch.stack((times.cos(), -times.sin()), dim=-1)
    # Euler's steps of 0.01 are right to 1e-2, the others' and adaptive ones to 1e-3 and better.
    assert (path - exact).abs().max() < (2e-2 if method == "euler" else 1e-3)
    assert evaluations > 0


def test_evaluations_grow_with_the_frequency_and_are_those_made():
    counts, times, calls = [], torch.tensor([0.0, 1.0], dtype=F64), []
    for rate in (1.0, 10.0):

        def fast(t, z, rate=rate):
            calls.append(t)
            return rate * spin(t, z)

        counts.append(solve(fast, torch.ones(2, dtype=F64), times, Solver())[1])
    assert sum(counts) == len(calls) and counts[1] > 2 * counts[0]


def test_tuples_are_solved_together():
    ends = torch.tensor([0.0, 1.0], dtype=F64)
    start = (torch.ones(2, dtype=F64), torch.ones(3, dtype=F64))
    (a, b), _ = solve(lambda t, z: (-z[0], z[1]), start, ends, solver("dopri5"))
    assert a[-1].sub(math.exp(-1)).abs().max() < 1e-7 and b[-1].sub(math.e).abs().max() < 1e-7


BLOW_UP, STIFF = (lambda t, z: 50 * z * z), (lambda t, z: -1e9 * z)


@pytest.mark.parametrize(
    "dynamics, words, came",
    [
        (BLOW_UP, Solver(), "a step of"),
        (STIFF, Solver(max_evaluations=500), "more than max_evaluations=500"),
        (BLOW_UP, Solver("rk4", step_size=0.01), "a state that is not finite"),
        (lambda t, z: z * math.nan, Solver(), "a step of"),
        # The memory for these steps is never taken.
        (lambda t, z: -z, Solver("euler", step_size=1e-30), "more than max_evaluations=10000"),
    ],
)
def test_too_stiff_is_one_error_that_says_what_to_change(dynamics, words, came):
    with pytest.raises(StiffError) as caught:
        solve(dynamics, torch.ones(1), torch.tensor([0.0, 1.0]), words)
    text = str(caught.value)
    for part in (f"solver {words.method!r}", came, "loosen rtol", "matrix_activation='tanh'"):
        assert part in text


class Decay(torch.nn.Module):
    """Slow while values are asked for, another while gradients are."""

    def __init__(self, backwards):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.ones(1, dtype=F64))
        self.backwards = backwards

    def forward(self, t, z):
        return -self.rate * z * (self.backwards if torch.is_grad_enabled() else 1.0)


@pytest.mark.parametrize("rate, came", [(1e9, "max_evaluations=200"), (math.nan, "not finite")])
def test_too_stiff_backwards_is_the_same_error(rate, came):
    words = Solver(adjoint=True, max_evaluations=200)
    times = torch.tensor([0.0, 1.0], dtype=F64)
    path, _ = solve(Decay(rate), torch.ones(1, dtype=F64), times, words)
    with pytest.raises(StiffError, match=came):
        path[-1].sum().backward()


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r'torchdiffeq; .*pip install "anharmonic\[ode\]"'):
        solve(spin, torch.ones(2), torch.tensor([0.0, 1.0]), Solver())


# ---- in matrix form ----
every = pytest.mark.parametrize("dynamics", DYNAMICS)
matrix_form = pytest.mark.parametrize("dynamics", ["skew", "unrestricted"])


def make(dynamics, d=4, seed=0, scale=5.0, **options):
    """An ODE whose heads are large enough to be seen."""
    torch.manual_seed(seed)
    options = {"width": 6, "rtol": 1e-9, "atol": 1e-11, "dtype": F64, **options}
    ode = ah.NeuralODE(d, dynamics, **options)
    with torch.no_grad():
        ode.head.weight.mul_(scale)
    return ode


def states(batch=3, d=4, seed=1):
    return torch.randn(batch, d, dtype=F64, generator=torch.Generator().manual_seed(seed))


@matrix_form
@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_vector_field_is_origin_plus_matrix_times_state(dynamics, activation):
    ode, z = make(dynamics, matrix_activation=activation), states()
    origin, A = ode.vector_field(torch.zeros_like(z), 0.3), ode.state_matrix(z, 0.3)
    field = origin + torch.einsum("bij,bj->bi", A, z)
    torch.testing.assert_close(ode.vector_field(z, 0.3), field)
    assert torch.equal(origin[0], origin[1])
    assert (A[0] - A[1]).abs().max() > 1e-3  # it depends on the state
    assert (ode.state_matrix(z, 0.9) - A).abs().max() > 1e-3  # and on time
    assert activation == "identity" or A.abs().max() <= math.sqrt(2)


def test_skew_is_the_unrestricted_prediction_antisymmetrised():
    """Lemma 3.1's form, (B - B^T) / sqrt 2 of the same weights."""
    skew, free = make("skew"), make("unrestricted")
    B = free.state_matrix(states(), 0.5)
    torch.testing.assert_close(skew.state_matrix(states(), 0.5), (B - B.mT) / math.sqrt(2))


@every
def test_adjoint_method_equals_backpropagation(dynamics):
    grads = []
    for adjoint in (False, True):
        ode, z = make(dynamics, adjoint=adjoint), states().requires_grad_()
        end, forwards = ode(z), ode.nfe
        end.sin().sum().backward()
        assert not adjoint or ode.nfe == forwards > 0
        grads.append([z.grad, *(p.grad for p in ode.parameters())])
    for steps, equation in zip(*grads, strict=True):
        torch.testing.assert_close(equation, steps, rtol=1e-6, atol=1e-8)


def test_settings_changed_later_count(tmp_path):
    ode, z = ah.NeuralODE(3), torch.rand(2, 3)
    ode(z)
    coarse = ode.nfe
    ode.rtol, ode.atol = 1e-7, 1e-9
    ode(z)
    assert ode.nfe > coarse
    ode.solver, ode.step_size = "euler", 0.5
    ode.save_pretrained(tmp_path / "ode")
    assert torch.equal(ah.from_pretrained(tmp_path / "ode")(z), ode(z))
    ode.max_evaluations = 1
    with pytest.raises(StiffError):
        ode(z)


@every
def test_trajectory_batches_and_single_states(dynamics):
    ode = make(dynamics, end_time=0.8)
    z = states()
    with torch.no_grad():
        path = ode.trajectory(z, [0.0, 0.2, 0.8])
        assert torch.equal(path[0], z) and path.shape == (3, 3, 4)
        torch.testing.assert_close(path[-1], ode(z), rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(ode(z[0]), ode(z)[0], rtol=1e-7, atol=1e-9)
        later = ode.trajectory(path[1], [0.2, 0.8])[-1]
    torch.testing.assert_close(later, path[-1], rtol=1e-7, atol=1e-9)


# ---- the network for tables ----
@every
def test_prediction_is_decoder_of_solution_of_encoder(dynamics):
    torch.manual_seed(0)
    tight = {"rtol": 1e-9, "atol": 1e-9, "dtype": F64}
    model = ah.NeuralODENetwork(5, 2, hidden_size=4, dynamics=dynamics, width=8, **tight)
    x = states(6, 5)
    out = model(x)
    assert out.shape == (6, 2)
    torch.testing.assert_close(out, model.decoder(model.ode(model.encoder(x))))
    torch.testing.assert_close(model(x[:1]), out[:1], rtol=1e-6, atol=1e-7)  # rows do not mix
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
