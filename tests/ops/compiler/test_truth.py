"""Every cell gives what the loop gives: outputs, last states and all gradients.

Each has weights V [rows, F], W [rows, H], b [rows] and vectors [H].
"""

import math

import pytest
import torch
import torch.nn.functional as F

from anharmonic.ops.compiler.products import product
from anharmonic.ops.compiler.recurrence import recurrence


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


CELLS = {  # step, variables of the state, rows / H, and names of vectors
    "expRNN": (exprnn, 1, 1, []),
    "orthogonal": (orthogonal, 1, 1, []),
    "LSTM, normed": (normed_lstm, 2, 4, ["scale", "shift"]),
    "two time scales": (two_time_scales, 2, 1, ["rate"]),
    "delay": (delayed, 2, 1, []),
    "activations": (activations, 1, 4, []),
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

        step, variables, blocks, vectors = CELLS[name]
        rows = blocks * hidden
        w = {"V": draw(rows, inputs), "W": draw(rows, hidden), "b": draw(rows)}
        w |= {key: draw(hidden) for key in vectors}
        x, state = draw(steps, batch, inputs), tuple(draw(batch, hidden) for _ in range(variables))
        return values(recurrence(step, compiled=compiled), x, state, w, memory=memory)

    return call


@pytest.mark.fast(
    *("expRNN-sizes2", "LSTM, normed-sizes2", "two time scales-sizes0", "delay-sizes1"),
    "activations-sizes1",
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
@pytest.mark.fast("for use-two time scales", "quick-two time scales", "for use-LSTM, normed")
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


# ---- rows with more than two dimensions: heads, matrices and other orders of the columns ----
B, HEADS, K = 5, 2, 3
AXES = {"b": B, "h": HEADS, "i": K, "j": 4, "o": 6, "z": 1}


def draw(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


EQUATIONS = """
bi,oi->bo bi,io->bo oi,bi->bo bi,i->b bi,i->bi bi,bi->b bz,zo->bo
bhi,hoi->bho bhi,oi->bho bhi,i->bh bhij,jo->bhio bi,hio->bho bh,ho->bho
bhi,hji->bhj bij,ijo->bo bi,bj->bij bij,bj->bi bij,bi->bj bhi,bhj->bhij
""".split()


def operands(equation):
    names = equation.partition("->")[0].replace("...", "b").split(",")
    return [draw(*map(AXES.get, part)) for part in names]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    x, y = operands(equation)
    found = product(torch.einsum, (equation, x, y), {})
    torch.testing.assert_close(found, torch.einsum(equation, x, y))


@pytest.mark.parametrize("equation", ["bhi,ji->bjh", "bii,i->b", "bi,bj->ji", "...i,oi->...o"])
def test_what_stays_as_it_is(equation):
    assert product(torch.einsum, (equation, *operands(equation)), {}) is None


@pytest.mark.parametrize(
    "x, y",
    [
        ((B, HEADS, 1, K), (HEADS, K, 6)),
        ((B, HEADS, K), (K, 6)),
        ((B, HEADS, K), (K,)),
        ((6, K), (B, K, 1)),
        ((HEADS, 6, K), (B, HEADS, K, 1)),
        ((B, 6, K), (B, K, 4)),
        ((B, HEADS, 1, K), (B, HEADS, K, 4)),
        ((B, HEADS, 1, K), (1, K, 6)),
    ],
)
def test_matmul(x, y):
    x, y = draw(*x), draw(*y)
    torch.testing.assert_close(product(torch.matmul, (x, y), {}), x @ y)


def heads(u, h, w):
    """Two heads with their own weights and norms."""
    x = h.view(len(u), HEADS, K)
    mixed = torch.einsum("bhi,hoi->bho", x, w["M"]) + (x.unsqueeze(2) @ w["M"]).squeeze(2)
    normed = F.layer_norm(mixed, (K,)) * w["scale"] + F.linear(x, w["M"][0], w["scale"][1])
    column = (w["M"].flatten(1).T @ u.view(-1, HEADS, 1)).squeeze(2)
    return torch.tanh(normed.flatten(1) + torch.einsum("bo,io->bi", column, w["V"]))


def memory(u, state, w):
    """A matrix for each head, as in fast weights and in the mLSTM."""
    h, before = state
    q, k, v = (u @ w["V"] + h.repeat(1, 3)).view(-1, 3, HEADS, K).unbind(1)
    before = before.view(-1, HEADS, K, K) * torch.sigmoid(w["f"]).view(HEADS, 1, 1)
    after = before + v[..., None] * torch.softmax(k, -1)[:, :, None]
    out = torch.einsum("bhij,bhj->bhi", after, q) / (k * q).sum(-1, keepdim=True).abs().clamp(min=1)
    return torch.tanh(out).flatten(1), after.flatten(1)


def moved(u, h, w):
    """Columns in other orders."""
    x = h.view(len(u), 2, 3)
    turned = torch.stack([x[..., 0] - x[:, :, 2], x[..., 1]], 2).transpose(1, 2)
    pairs = torch.cat([turned, turned.flip(1)[:, :1]], 1).flatten(1)
    largest = x.amax(1).repeat(1, 2) - x.mean(2).repeat_interleave(3, 1)
    around = torch.cat([u[:, 1::2], u[:, ::2]], 1) + torch.roll(h, (2,), (1,))
    return torch.tanh(pairs * w["a"] + largest + around + F.group_norm(h, 3, w["a"], w["b"]))


STEPS = {
    "heads": (heads, 2, [6], {"M": (2, 3, 3), "scale": (2, 3), "V": (6, 9)}),
    "memory": (memory, 4, [6, 18], {"V": (4, 18), "f": (2,)}),
    "moved": (moved, 6, [6], {"a": (6,), "b": (6,)}),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("batch", [1, 4])
def test_compiled(values, name, batch):
    step, inputs, widths, shapes = STEPS[name]
    x, state = draw(9, batch, inputs), tuple(draw(batch, width) for width in widths)
    w = {key: draw(*shape) / 2 for key, shape in shapes.items()}
    for leaf in (x, *state, *w.values()):
        leaf.requires_grad_()
    call = x, state if len(state) > 1 else state[0], w
    found = [values(recurrence(step, compiled=compiled), *call) for compiled in (True, False)]
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-12)
