"""Gradients over time and Lyapunov exponents: closed forms, backpropagation, known maps."""

import math

import pytest
import torch
from torch import nn

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.diagnostics.gradients import jacobian_norms, state_gradients
from anharmonic.diagnostics.lyapunov import lyapunov_exponent, map_lyapunov_exponent
from anharmonic.diagnostics.recurrence import examined, recurrence
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import list_models, model_class

# The output of a LinOSSNetwork is no part of its state.
F64 = torch.float64
NAMES = [name for name in list_models() if name != "LinOSSNetwork"]


def test_the_harmonic_oscillator_keeps_its_gradient():
    """w = V = 0: UnICORNN is a symplectic rotation; its Jacobian has determinant 1 and no decay."""
    layer = UnICORNN(1, 1, dt=0.2, frequency=4.0, dtype=F64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    h, alpha = 0.1, 4.0  # sigmoid(0) = 1/2
    step = torch.tensor([[1 - h * h * alpha, h], [-h * alpha, 1.0]], dtype=F64)
    found = jacobian_norms(layer, torch.zeros(100, 1, 1, dtype=F64))
    for k in (1, 50, 100):
        expected = torch.linalg.matrix_norm(torch.linalg.matrix_power(step, k), 2)
        assert found[k].item() == pytest.approx(expected.item(), rel=1e-10)
    assert found.max() < 2.5 and found.min() >= 1.0 - 1e-12  # sqrt(alpha) = 2, give or take h


@pytest.mark.parametrize("steps", [1, 4])
def test_norms_are_those_of_the_jacobian_of_all_steps_at_once(steps):
    layer, x = CoRNN(2, 3, dt=0.5, dtype=F64), torch.randn(4, 1, 2, dtype=F64)
    found = recurrence(layer)

    def walk(state):
        for x_t in x[4 - steps :]:
            state = found.step(state[None], x_t)[0]
        return state

    start = found.walk(x)[4 - steps][0].detach()
    whole = torch.autograd.functional.jacobian(walk, start)
    expected = torch.linalg.matrix_norm(whole, 2)
    torch.testing.assert_close(jacobian_norms(layer, x)[steps], expected)


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
    *(lambda n=n, **k: model_class(n)(3, 4, 2, **k) for n in list_models() if n != "LinOSSNetwork"),
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


def free(steps):
    return torch.empty(steps, 0, dtype=F64)


def test_of_the_logistic_map_is_log_2():
    """x -> 4 x (1 - x) has the exponent log 2 on almost every orbit."""
    found = map_lyapunov_exponent(
        lambda x, _: 4 * x * (1 - x), torch.tensor([0.2137], dtype=F64), free(1000), discard=9
    )
    assert found[-1].item() == pytest.approx(math.log(2), abs=0.01) and len(found) == 991
    assert (
        map_lyapunov_exponent(lambda x, _: 0 * x, torch.tensor([1.0], dtype=F64), free(5))[-1]
        == -math.inf
    )


def test_of_a_layer_is_that_of_its_map():
    """A tanh network of one neuron without input settles: the exponent is log of the slope."""
    layer, fixed = nn.RNN(1, 1, dtype=F64), 0.5
    with torch.no_grad():
        for weight, value in zip(layer.parameters(), (0.0, 2.0, 0.0, 0.1), strict=True):
            weight.fill_(value)
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
