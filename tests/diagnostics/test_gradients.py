"""Gradients over time, adjoints, Lyapunov exponents: closed forms, backpropagation, known maps."""

import math

import pytest
import torch
from torch import nn

from anharmonic import LEM, CoRNN, NeuralODE, UnICORNN
from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score, network_adjoint_norms
from anharmonic.diagnostics.gradients import jacobian_norms, state_gradients
from anharmonic.diagnostics.lyapunov import lyapunov_exponent, map_lyapunov_exponent
from anharmonic.diagnostics.recurrence import examined, recurrence
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.ode.matrix_form import DYNAMICS
from anharmonic.nn.registry import list_models, model_class

F64 = torch.float64
# The output of a LinOSSNetwork is no part of its state.
NAMES = [name for name in list_models() if name != "LinOSSNetwork"]


@pytest.mark.parametrize("steps", [1, 60])
def test_norms_are_those_of_the_jacobian_of_all_steps_at_once(steps):
    layer, x = CoRNN(2, 3, dt=0.5, dtype=F64), torch.randn(60, 1, 2, dtype=F64)
    found = recurrence(layer)

    def walk(state):
        for x_t in x[60 - steps :]:
            state = found.step(state[None], x_t)[0]
        return state

    start = found.walk(x)[60 - steps][0].detach()
    whole = torch.autograd.functional.jacobian(walk, start)
    expected = torch.linalg.matrix_norm(whole, 2)
    torch.testing.assert_close(jacobian_norms(layer, x)[steps], expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_has_norms(dtype):
    layer, x = CoRNN(2, 3, dt=0.5), torch.randn(6, 1, 2)
    exact = jacobian_norms(layer, x)
    torch.testing.assert_close(
        jacobian_norms(layer.to(dtype), x.to(dtype)), exact, rtol=0.1, atol=0
    )


def test_a_loss_that_sees_nothing_has_no_gradient():
    constant = torch.ones((), requires_grad=True)
    found = state_gradients(LEM(1, 2), torch.zeros(3, 1, 1), lambda _: constant)
    assert found.tolist() == [[0.0]] * 4


def test_a_jacobian_that_overflows_is_infinite():
    with pytest.warns(UserWarning, match="stable"):
        layer = CoRNN(1, 3, dt=1.5, frequency=4.0, damping=0.1)
    found = jacobian_norms(layer, torch.ones(300, 1, 1))
    assert found[0] == 1 and found[-1].isinf()


@pytest.mark.parametrize("name", NAMES)
def test_state_gradients_of_every_layer(name):
    """At the start and in between: those of the layer started there."""
    layer = model_class(name)(2, 3, num_layers=2, dtype=F64)
    x, out = torch.randn(6, 4, 2, dtype=F64), lambda y: y.sin().sum()
    norms = state_gradients(layer, x, out).flip(0)
    assert norms.shape == (7, 4)
    for start in (0, 3):
        _, state = layer.step(x[0])
        state = type(state)(*(torch.zeros_like(part) for part in state))
        for x_t in x[:start]:
            _, state = layer.step(x_t, state)
        parts = [part.detach().requires_grad_() for part in state]
        y, _ = layer(x[start:], type(state)(*parts), output="last")
        grads = torch.autograd.grad(out(y), parts)
        exact = sum(grad.square().sum(dim=(0, 2)) for grad in grads).sqrt()
        torch.testing.assert_close(norms[start], exact, rtol=1e-10, atol=1e-14)


LAYERS = [
    *(lambda n=n, **k: model_class(n)(3, 4, 2, **k) for n in NAMES),
    *(lambda t=t, **k: t(3, 4, 2, **k) for t in (nn.LSTM, nn.GRU, nn.RNN)),
    lambda **k: nn.LSTM(3, 4, 2, proj_size=2, **k),
]


@pytest.mark.covering
@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_walking_step_by_step_gives_outputs_and_last_state_of_the_layer(make, batch_first):
    layer = make(batch_first=batch_first, dtype=torch.float64)
    x = torch.randn(7, 5, 3, dtype=torch.float64)
    found = recurrence(layer)
    states = torch.stack(found.walk(x))
    assert states.shape == (8, 5, found.size)
    output, last = layer(x.transpose(0, 1) if batch_first else x)
    output = output.transpose(0, 1) if batch_first else output
    torch.testing.assert_close(found.output(states[1:]), output)
    last = (last,) if isinstance(last, torch.Tensor) else last
    for mine, theirs in zip(found.parts(states[-1]), last, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_model_is_looked_at_through_its_layer_and_keeps_its_modes():
    model = SequenceModel("LEM", 3, 2, hidden_size=4)
    assert recurrence(model).layer is model.layer
    model = nn.Sequential(UnICORNN(2, 3, 2, dropout=0.5), CoRNN(3, 3))
    model[1].eval()
    with pytest.raises(RuntimeError, match="inside"), examined(model):
        assert not any(part.training for part in model.modules())
        raise RuntimeError("inside")
    assert model.training and model[0].training and not model[1].training


def exponents(step, start, steps, **options):
    inputs = torch.empty(steps, 0, dtype=F64)
    return map_lyapunov_exponent(step, torch.tensor([start], dtype=F64), inputs, **options)


def test_of_the_logistic_map_is_log_2():
    """x -> 4 x (1 - x) has the exponent log 2 on almost every orbit."""
    found = exponents(lambda x, _: 4 * x * (1 - x), 0.2137, 1000, discard=9)
    assert found[-1].item() == pytest.approx(math.log(2), abs=0.01) and len(found) == 991
    assert exponents(lambda x, _: 0 * x, 1.0, 5)[-1] == -math.inf


def test_of_a_layer_is_that_of_its_map():
    """A tanh network of one neuron without input settles: the exponent is log of the slope."""
    layer, fixed = nn.RNN(1, 1, dtype=F64), 0.5
    for weight, value in zip(layer.parameters(), (0.0, 2.0, 0.0, 0.1), strict=True):
        weight.data.fill_(value)
    for _ in range(200):
        fixed = math.tanh(2 * fixed + 0.1)
    x = torch.zeros(100, 1, 1, dtype=F64)
    found = lyapunov_exponent(layer, x, discard=60)
    assert found[-1].item() == pytest.approx(math.log(2 * (1 - fixed**2)), abs=1e-10)


def test_damped_oscillators_are_not_chaotic_and_symplectic_ones_neither_grow_nor_decay():
    noise = torch.randn(100, 1, 1, dtype=F64)
    assert lyapunov_exponent(CoRNN(1, 8, dt=0.1, dtype=F64), noise)[-1] < 0
    # The exponents come in pairs of opposite sign, the largest is not below 0.
    assert lyapunov_exponent(UnICORNN(1, 8, dt=0.1, dtype=F64), noise)[-1] > -1e-3


def test_a_batch_first_sequence_is_to_be_transposed():
    layer, x = CoRNN(2, 4, dt=0.1, batch_first=True), torch.randn(1, 60, 2)
    for measure in (lyapunov_exponent, jacobian_norms):
        with pytest.raises(ValueError, match=r"\[T, 1, F\]; got .*pass x.transpose\(0, 1\)"):
            measure(layer, x)
        with pytest.raises(ValueError, match=r"pass x\[:, :1\]"):
            measure(layer, x.transpose(0, 1).expand(60, 2, 2))


def test_float32_is_near_and_the_seed_repeats():
    layer, x = CoRNN(2, 4, dt=0.1), torch.randn(60, 1, 2)
    single = lyapunov_exponent(layer, x, discard=20)[-1]
    assert torch.equal(single, lyapunov_exponent(layer, x, discard=20)[-1])
    double = lyapunov_exponent(layer.double(), x.double(), discard=20)[-1]
    assert abs(single - double) < 1e-4


def ode_of(dynamics, **options):
    options = {"width": 6, "rtol": 1e-9, "atol": 1e-11, "dtype": F64, **options}
    ode = NeuralODE(4, dynamics, **options)
    with torch.no_grad():
        ode.head.weight.mul_(5)
    return ode


def loss_of(end):
    return (end.sin() * torch.arange(1, 5)).sum()


@pytest.mark.covering
@pytest.mark.parametrize("dynamics", DYNAMICS)
@pytest.mark.parametrize("adjoint", [False, True])
def test_norms_of_an_adjoint_are_those_of_backpropagation(dynamics, adjoint):
    pytest.importorskip("torchdiffeq")
    ode, z = ode_of(dynamics, end_time=0.9, adjoint=adjoint), torch.randn(3, 4, dtype=F64)
    norms = adjoint_norms(ode, z, loss_of, points=4)
    times = torch.linspace(0, 0.9, 4, dtype=F64).tolist()
    with torch.no_grad():
        path = ode.trajectory(z, times)
    for k, time in enumerate(times):
        inner = path[k].clone().requires_grad_()
        end = ode.trajectory(inner, [time, 0.9])[-1] if k < 3 else inner
        (a,) = torch.autograd.grad(loss_of(end), inner)
        torch.testing.assert_close(norms[k], a.norm(dim=1), rtol=1e-6 if k < 3 else 1e-12, atol=0)
    assert (norms.amax(0) / norms.amin(0)).max() > 1.001


def test_an_adjoint_measures_small_gradients_as_well():
    pytest.importorskip("torchdiffeq")
    ode, z = ode_of("unrestricted", rtol=1e-6, atol=1e-8), torch.randn(2, 4, dtype=F64)
    norms = adjoint_norms(ode, z, loss_of, points=3)
    small = adjoint_norms(ode, z, lambda end: 1e-12 * loss_of(end), points=3)
    torch.testing.assert_close(small * 1e12, norms, rtol=1e-9, atol=0)


def test_adjoint_score_of_known_norms():
    # Steady, from 1 to 101 (5 and 95 % are 6 and 96), and none.
    norms = torch.stack([torch.full((101,), 3.0), torch.arange(1.0, 102.0), torch.zeros(101)], 1)
    expected = torch.tensor([1.0, 16.0, 1.0], dtype=F64)
    torch.testing.assert_close(adjoint_score(norms), expected)


def test_adjoint_norms_of_a_network_are_those_of_its_ode():
    pytest.importorskip("torchdiffeq")
    network = model_class("NeuralODE")(3, 2, hidden_size=4).double()
    x = torch.randn(5, 3, dtype=F64)
    norms = network_adjoint_norms(network, x, lambda o: o[:, 0].sum(), points=4)
    end = network.ode(network.encoder(x)).detach().requires_grad_()
    network.decoder(end)[:, 0].sum().backward()
    torch.testing.assert_close(norms[-1], end.grad.norm(dim=-1))
    assert norms.shape == (4, 5)
