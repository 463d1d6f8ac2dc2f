"""Every cell gives what the loop gives: outputs, last states and all gradients."""

import math
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F

from anharmonic.ops import CoRNNEquation, LEMEquation, OscillatorEquation
from anharmonic.ops.compiler.recurrence import recurrence


class Cell(NamedTuple):
    step: object
    shapes: object  # of (inputs, hidden), by name
    variables: int = 1


def of_equation(equation):
    own = equation.of_layer(0)

    def step(u, state, w):
        weights = own.Weights(**w)
        new = own.step(own.drive(u, weights), own.State(*state), own.prepare(weights), own.dt)
        return tuple(new)

    return Cell(step, own.shapes, 2)


def exprnn(u, state, w):
    A = w["W"].tril(-1)
    Q = torch.linalg.matrix_exp((A - A.t()).double()).to(u.dtype)
    z = F.linear(u, w["V"]) + state[0] @ Q.t()
    return (torch.sign(z) * torch.relu(z.abs() + w["b"]),)


def orthogonal(u, state, w):
    """With the Q of a QR decomposition, whose derivative changes a tensor in place."""
    return (torch.tanh(F.linear(u, w["V"], w["b"]) + state[0] @ torch.linalg.qr(w["W"])[0]),)


def normed_lstm(u, state, w):
    h, c = state
    i, f, g, o = (F.linear(u, w["V"], w["b"]) + F.linear(h, w["W"])).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    normed = F.layer_norm(c, (c.shape[-1],), w["scale"], w["shift"])
    return torch.sigmoid(o) * F.silu(normed), c


def two_time_scales(u, state, w):
    fast, slow = state
    drive = torch.addcmul(F.linear(u, w["V"], w["b"]), w["rate"].clamp(-1.01, 1.01), slow)
    new = torch.where(drive >= 0, drive + 0.5, torch.sigmoid(drive + slow @ w["W"].t()))
    fast = torch.lerp(fast, torch.tanh(new), torch.sigmoid(drive))
    slow = slow + torch.exp(-F.softplus(w["rate"])) * (fast * torch.cos(slow) - slow)
    return fast, slow


def delayed(u, state, w):
    h, before = state
    mix = torch.softmax(h @ w["W"].t() + F.linear(u, w["V"], w["b"]), dim=-1)
    return torch.sin(h + mix * before) + 0.1 * (1 + before.abs()).sqrt(), h


def activations(u, state, w):
    p, q, r, s = (F.linear(u, w["V"], w["b"]) + F.linear(state[0], w["W"])).chunk(4, 1)
    gate, rest = F.hardsigmoid(2 * p), F.hardswish(q) + F.softsign(q) + F.relu6(q)
    found = F.logsigmoid(r) + F.mish(r) + F.selu(s) + F.celu(s) + rest
    return (gate * state[0] + 0.1 * torch.tanh(found),)


def shapes(blocks=1, *vectors):
    """V, W and b of so many blocks, and vectors."""

    def of(inputs, hidden):
        rows = blocks * hidden
        found = {"V": (rows, inputs), "W": (rows, hidden), "b": (rows,)}
        return found | dict.fromkeys(vectors, (hidden,))

    return of


CELLS = {
    "LEM clipped": of_equation(LEMEquation(1.7, gate_floor=0.6)),
    "coRNN": of_equation(CoRNNEquation(0.1, 1.3, 0.7)),
    "oscillators": of_equation(OscillatorEquation(0.1, "velocity-verlet", "tanh", True)),
    "expRNN": Cell(exprnn, shapes()),
    "orthogonal": Cell(orthogonal, shapes()),
    "LSTM, normed": Cell(normed_lstm, shapes(4, "scale", "shift"), 2),
    "two time scales": Cell(two_time_scales, shapes(1, "rate"), 2),
    "delay": Cell(delayed, shapes(), 2),
    "activations": Cell(activations, shapes(4)),
}
SIZES = ((70, 5, 3, 16), (65, 3, 1, 20), (20, 9, 19, 21))


@pytest.fixture
def call(values):
    """Results and gradients of a call with random numbers, which float32 holds if `single`."""

    def call(name, sizes, dtype, compiled, memory="stored", single=False):
        steps, batch, inputs, hidden = sizes
        generator = torch.Generator().manual_seed(1)

        def draw(*shape):
            value = torch.randn(shape, generator=generator, dtype=torch.float64)
            value = value / math.sqrt(hidden)
            return (value.float() if single else value).to(dtype).requires_grad_()

        cell = CELLS[name]
        w = {key: draw(*shape) for key, shape in cell.shapes(inputs, hidden).items()}
        x = draw(steps, batch, inputs)
        state = tuple(draw(batch, hidden) for _ in range(cell.variables))
        return values(recurrence(cell.step, compiled=compiled), x, state, w, memory=memory)

    return call


# Steps of the library are compiled by test_layers.py.
@pytest.mark.fast(
    *("LEM clipped-sizes1", "expRNN-sizes2", "LSTM, normed-sizes2"),
    *("two time scales-sizes0", "delay-sizes1", "activations-sizes1"),
)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", CELLS)
def test_float64(call, name, sizes):
    """With the library that checks the one in float32: it is there for both."""
    found = call(name, sizes, torch.float64, True)
    for value, right in zip(found, call(name, sizes, torch.float64, False), strict=True):
        assert (value - right).abs().max() <= 1e-12 * right.abs().max()
    assert all(map(torch.equal, found, call(name, sizes, torch.float64, True, "chunked")))


# Both levels; each instruction of the compiler is in one of these or in test_float64.
@pytest.mark.fast("for use-coRNN", "quick-LEM clipped", "for use-LSTM, normed")
@pytest.mark.parametrize("name", CELLS)
def test_float32(call, name, level):
    exact = call(name, SIZES[0], torch.float64, False, single=True)

    def error(compiled):
        found = call(name, SIZES[0], torch.float32, compiled)
        return max(
            float((value - right).abs().max() / right.abs().max())
            for value, right in zip(found, exact, strict=True)
        )

    # The tanh of the C library is right to 1.9e-7, that of PyTorch to a third of this.
    assert error(True) <= 3 * error(False)
