"""Random steps: whatever the compiler takes gives what the loop gives.

A program is a list of instructions on a growing list of values, which begins with the input and the
state. ``ANHARMONIC_PROGRAMS=2000`` tries so many instead of a few.
"""

import itertools
import os
from typing import NamedTuple

import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from anharmonic.ops.compiler import cache
from anharmonic.ops.compiler.recurrence import recurrence

COUNT = int(os.environ.get("ANHARMONIC_PROGRAMS", "5"))


class Program(NamedTuple):
    """A step and the sizes of a call."""

    inputs: int  # columns of the input
    widths: list  # columns of the variables of the state
    code: list  # (operation, first value, second value, a number), values counted from the last
    new: list  # which values become the state
    batch: int
    steps: int
    frozen: int  # which tensors get no gradient, as the bits of a number


def fit(x, width, weight):
    """x with this many columns, or one that stands for all of them."""
    return x if x.shape[1] in (width, 1) else x @ weight(x.shape[1], width)


def norm(x, *weights):
    """A layer norm; of one column it would magnify nothing but rounding, by 1 / sqrt(eps)."""
    return F.layer_norm(x, x.shape[1:], *weights) if x.shape[1] > 1 else sum(weights, x)


def halves(x):
    middle = max(1, x.shape[1] // 2)
    return x[:, :middle], x[:, middle:]


ONE = {
    **{name: getattr(torch, name) for name in "tanh sigmoid relu sin cos atan abs neg erf".split()},
    **{name: getattr(F, name) for name in "softplus silu gelu elu hardtanh".split()},
    "exp": lambda x: torch.exp(torch.tanh(x)),
    "log1p": lambda x: torch.log1p(x * x),
    "sqrt": lambda x: torch.sqrt(1 + x**2),
    "rsqrt": lambda x: torch.rsqrt(1 + x.square()),
    "reciprocal": lambda x: 1 / (1.5 + torch.sigmoid(x)),
    "power": lambda x: (1 + x * x) ** 0.3,
    "cube": lambda x: torch.tanh(x) ** 3,
    "leaky": lambda x: F.leaky_relu(x, 0.1),
    "clamp": lambda x: x.clamp(-0.7, 0.4),
    "detach": lambda x: x.detach(),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, 1),
    "norm": lambda x: norm(x),
    "unit": lambda x: x / (1 + x.pow(2).sum(-1, keepdim=True)).sqrt(),
    "sum": lambda x: x.sum(1, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(1, keepdim=True),
    "centred": lambda x: x - x.mean(1, keepdim=True),
    "variance": lambda x: x.var(1, keepdim=True, unbiased=False),
    "first half": lambda x: halves(x)[0],
    "swapped": lambda x: torch.cat(halves(x)[::-1], 1),
    "gated": lambda x: torch.cat([halves(x)[0].tanh(), torch.sigmoid(halves(x)[1])], -1),
    "last column": lambda x: x[:, -1:],
    "column": lambda x: x[:, 0].unsqueeze(1),
    "chunks": lambda x: sum(part.mean(1, keepdim=True) for part in x.chunk(2, 1)),
    "split": lambda x: torch.cat(x.split([1] * x.shape[1], 1)[::-1], 1),
    "padded": lambda x: F.pad(x, (1, 2)),
    "remainder": lambda x: (x + 0.3) % 0.7,
    "fmod": lambda x: torch.fmod(x, -0.6),
    "the same everywhere": lambda x: torch.full_like(x, 0.3),
}
TWO = {
    **{name: getattr(torch, name) for name in "add mul maximum minimum".split()},
    "subtract": lambda x, y: torch.sub(x, y, alpha=0.5),
    "divide": lambda x, y: x / (1 + y * y),
    "where": lambda x, y: torch.where(x > y, x, 0.5 * y),
    "both": lambda x, y: torch.where((x > 0) & (y <= 0.1), x, y),
    "lerp": lambda x, y: torch.lerp(x, y, torch.sigmoid(x)),
    "atan2": lambda x, y: torch.atan2(x, 2 + torch.tanh(y)),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.3),
    "joined": lambda x, y: torch.cat([x, y], 1),
}
WEIGHTED = {
    "product": lambda x, n, weight: x @ weight(x.shape[1], n),
    "linear": lambda x, n, weight: F.linear(x, weight(n, x.shape[1]), weight(n)),
    "antisymmetric": lambda x, n, weight: _antisymmetric(x, weight(x.shape[1], x.shape[1])),
    "low rank": lambda x, n, weight: (x @ weight(x.shape[1], 2)) @ weight(2, n),
    "own speed": lambda x, n, weight: x * torch.sigmoid(weight(x.shape[1])),
    "shift": lambda x, n, weight: x + weight(1),
    "threshold": lambda x, n, weight: torch.where(x < weight(x.shape[1]), x, 0.2 * x),
    "scale": lambda x, n, weight: x * torch.exp(weight()),
    "scaled norm": lambda x, n, weight: norm(x, weight(x.shape[1]), weight(x.shape[1])),
    "full": lambda x, n, weight: x + torch.full_like(x, 0.1 * n),
    "constant": lambda x, n, weight: x * (0.1 * n) - 0.3,
}


def _antisymmetric(x, W):
    return x @ (W - W.t())


def step_of(program, draw=None):
    """The program as a step; ``draw(*shape)`` makes the weights that are not there."""

    def step(u, state, w):
        values, numbers = [u, *state], itertools.count()

        def weight(*shape):
            name = f"w{next(numbers)}"
            if name not in w:
                w[name] = draw(*shape) / max(1, shape[0] if shape else 1) ** 0.5
            return w[name]

        for name, first, second, n in program.code:
            x, y = values[-1 - first % len(values)], values[-1 - second % len(values)]
            if name in ONE:
                values.append(ONE[name](x))
            elif name in WEIGHTED:
                values.append(WEIGHTED[name](x, n, weight))
            else:
                if name != "joined":
                    y = fit(y, x.shape[1], weight) if x.shape[1] > 1 else y
                values.append(TWO[name](x, y))
        new = []
        for k, width in enumerate(program.widths):
            value = fit(values[-1 - program.new[k] % len(values)], width, weight)
            new.append(0.7 * state[k] + 0.5 * torch.tanh(value))
        return tuple(new)

    return step


OPERATIONS = [*ONE, *TWO, *TWO, *WEIGHTED, *WEIGHTED]
INSTRUCTION = st.tuples(
    st.sampled_from(OPERATIONS), st.integers(0, 5), st.integers(0, 5), st.integers(1, 20)
)
programs = st.builds(
    Program,
    st.sampled_from([1, 2, 5]),
    st.lists(st.sampled_from([1, 3, 8, 17]), min_size=1, max_size=3),
    st.lists(INSTRUCTION, min_size=1, max_size=12),
    st.tuples(*[st.integers(0, 3)] * 3),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 4, 11]),
    st.integers(0, 63),
)


def tensors_of(program):
    """Input, state and weights with random numbers."""
    generator = torch.Generator().manual_seed(len(program.code))

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x, weights = draw(program.steps, program.batch, program.inputs), {}
    state = [0.5 * draw(program.batch, width) for width in program.widths]
    step_of(program, draw)(x[0], state, weights)
    for k, tensor in enumerate((*weights.values(), x, *state)):
        tensor.requires_grad_(not program.frozen >> k % 6 & 1)
    return x, state, weights


@settings(
    max_examples=COUNT, deadline=None, database=None, derandomize=COUNT < 100,
    suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
)  # fmt: skip
@given(program=programs)
def test_random_programs(monkeypatch, values, program):
    """A program gives what its loop gives, without the check that the compiler makes itself."""
    monkeypatch.setattr(cache, "check", lambda *arguments: None)
    x, state, weights = tensors_of(program)
    call = x, tuple(state), weights
    step = step_of(program)
    right = values(recurrence(step, compiled=False), *call)
    largest = max(expected.abs().max() for expected in right)
    for memory in ("stored", "chunked"):
        found = values(recurrence(step, compiled=True), *call, memory=memory)
        for value, expected in zip(found, right, strict=True):
            # Some are zero but for rounding.
            scale = expected.abs().max().clamp(min=largest / 100)
            assert (value - expected).abs().max() <= 1e-11 * scale, (program, memory)
