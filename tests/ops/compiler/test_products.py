"""Rows with more than two dimensions: heads, matrices and other orders of the columns."""

import pytest
import torch
import torch.nn.functional as F

from anharmonic.ops.compiler.products import product
from anharmonic.ops.compiler.recurrence import recurrence

B, HEADS, K = 5, 2, 3
SIZES = {"b": B, "h": HEADS, "i": K, "j": 4, "o": 6, "z": 1}


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
    return [draw(*map(SIZES.get, part)) for part in names]


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
