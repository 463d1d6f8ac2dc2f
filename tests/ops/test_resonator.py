"""Resonators, one exact step and sequences: closed forms, backends, parts, lengths, gradients."""

import itertools
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from anharmonic.ops import State, available_backends
from anharmonic.ops.resonator import (
    Driven,
    Pools,
    at_rest,
    in_place,
    no_pools,
    pool,
    propagator,
    resonator_step,
    respond,
)

BACKENDS = available_backends("resonator_pool")
F32, F64 = torch.float32, torch.float64
close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)
needs_native = pytest.mark.skipif("native" not in BACKENDS, reason="no compiled library here")


# ---- one step ----
FREQUENCY = [1e-4, 0.01, 0.7, 1.0, 2.5]
# Over-, critically, nearly critically and underdamped.
Q = [0.05, 0.3, 0.4999, 0.5, 0.5001, 0.7, 5.0, 100.0]
GRID = torch.cartesian_prod(torch.tensor(FREQUENCY, dtype=F64), torch.tensor(Q, dtype=F64))


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 1.0, 7.0])
def test_the_step_is_the_matrix_exponential(elapsed):
    frequency, q = GRID.T
    # (y, y'/w, u) with u held: d/dt of it is a matrix.
    matrix = torch.zeros(len(GRID), 3, 3, dtype=F64)
    matrix[:, 0, 1], matrix[:, 1, 0] = frequency, -frequency
    matrix[:, 1, 1], matrix[:, 1, 2] = -frequency / q, frequency
    start = torch.tensor([0.3, -1.2, 0.8], dtype=F64)
    want = torch.linalg.matrix_exp(matrix * elapsed) @ start
    y, z, u = start[:, None].expand(3, len(GRID))
    found = resonator_step(u, State(y, z), propagator(frequency, q, elapsed))
    # 3 s of exponentials of size 1; matrix_exp itself is as exact.
    torch.testing.assert_close(torch.stack(tuple(found), 1), want[:, :2], rtol=1e-11, atol=1e-13)


@pytest.mark.fast("2000")
@pytest.mark.parametrize("steps", [2000, 200_000])
def test_constant_input_moves_slow_oscillators_in_float32(steps):
    # In float32, 1 - cos(w) of this oscillator is 5e-9: a product with cos(w) would not move.
    ends = []
    for dtype in (F32, F64):
        zero, one = torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)
        step, state = propagator(1e-4 * one, 0.5 * one), State(zero, zero)
        for _ in range(steps):
            state = resonator_step(one, state, step)
        ends.append(state.y.item())
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
    assert steps < 200_000 or ends[0] == pytest.approx(1.0, abs=1e-3)


def test_gradients_over_all_kinds_of_damping():
    w, q = (v.clone().requires_grad_() for v in GRID[5:].T)  # 1e-4 is beyond finite differences
    elapsed = torch.tensor(0.8, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *args: tuple(propagator(*args)), (w, q, elapsed))


def example(*, dtype=F64, oscillators=37, biases=2, elapsed=False, lengths=(5, 0, 90, 33)):
    g = torch.Generator().manual_seed(0)
    total = sum(lengths)
    driven = Driven(
        torch.randn(total, 3, generator=g, dtype=F64).to(dtype),
        torch.tensor([0, *lengths]).cumsum(0),
        torch.randn(3, oscillators, generator=g, dtype=F64).to(dtype),
        (torch.rand(oscillators, generator=g, dtype=F64) * 2 + 0.01).to(dtype),
        (torch.rand(oscillators, generator=g, dtype=F64) * 2 + 0.1).to(dtype),
        torch.rand(total, generator=g, dtype=F64) * 3 if elapsed else None,
    )
    return driven, torch.randn(2, biases, oscillators, generator=g, dtype=F64).to(dtype)


def scales(oscillators, dtype=F64):
    return torch.linspace(0.5, 2, 2 * oscillators, dtype=dtype).view(2, oscillators)


# ---- sequences ----
def pools_of(responses, bias, scale):
    """The pools of one sequence by their definitions; responses are [T, 2, K]."""
    over, K = responses[:, :, None] > bias, responses.shape[2]
    runs = [torch.zeros(bias.shape, dtype=F64)]
    for above in over:
        runs.append(torch.where(above, runs[-1].clamp(min=0) + 1, runs[-1].clamp(max=0) - 1))
    wins, groups = torch.zeros(2, 2, K, dtype=F64), -(-K // 16)
    for block, first in itertools.product((0, 8 * groups), range(groups)):
        members = slice(block + first, min(block + 8 * groups, K), groups)
        group = (responses * scale)[:, :, members]
        if size := group.shape[2]:
            for part, winners in zip(wins, (group.argmax(2), group.argmin(2)), strict=True):
                part[:, members] = F.one_hot(winners, size).sum(0)
    return Pools(
        above=over.sum(0),
        excess=(responses[:, :, None] - bias).clamp(min=0).sum(0),
        run=runs[-1],
        longest=torch.stack(runs).amax(0),
        longest_below=-torch.stack(runs).amin(0),
        crossings=(over[1:] & ~over[:-1]).sum(0),
        position=(over[:, :, 0] * torch.arange(len(over))[:, None, None]).sum(0),
        largest=responses.amax(0),
        smallest=responses.amin(0),
        square=responses.square().sum(0),
        most=wins[0],
        least=wins[1],
    )


@pytest.mark.covering(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("elapsed", [False, True])
@pytest.mark.parametrize("biases", [1, 2, 3])
@pytest.mark.parametrize("oscillators", [1, 16, 21, 37, 300])
def test_responses_and_pools_are_those_of_steps(oscillators, biases, elapsed, backend):
    driven, bias = example(oscillators=oscillators, biases=biases, elapsed=elapsed)
    scale = scales(oscillators)
    found, ends = respond(driven, backend=backend)
    last, pooled = pool(driven, bias, scale=scale, backend=backend)
    assert torch.equal(pooled[1:2], no_pools(1, bias)) and not ends[1].any()
    gaps = torch.ones(len(driven.x)) if driven.elapsed is None else driven.elapsed
    for n in (0, 2, 3):
        samples = slice(*driven.offsets[n : n + 2])
        state, responses = State(*torch.zeros(2, oscillators, dtype=F64)), []
        for u, gap in zip(driven.x[samples] @ driven.weight, gaps[samples], strict=True):
            state = resonator_step(u, state, propagator(driven.frequency, driven.q, gap))
            responses.append(torch.stack(state))
        responses = torch.stack(responses)
        close((found[samples], ends[n], last[n]), (responses, responses[-1], responses[-1]))
        pools = tuple(pools_of(responses, bias, scale))
        close(tuple(Pools.of(pooled[n : n + 1])), tuple(p.double()[None] for p in pools))


@pytest.mark.covering(2)
@needs_native
@pytest.mark.parametrize("elapsed", [False, True])
@pytest.mark.parametrize("source", ["x", "state"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("oscillators", [1, 21, 300])
def test_nan_is_pooled_as_in_the_reference(oscillators, value, source, elapsed):
    driven, bias = example(oscillators=oscillators, elapsed=elapsed)
    state = at_rest(4, driven)
    if source == "x":
        driven.x[40, 1] = value
    else:
        state[2, 0, oscillators // 2] = value
    found, expected = (
        Pools.of(pool(driven, bias, state, scale=scales(oscillators), backend=backend)[1])
        for backend in ("native", "reference")
    )
    assert all(getattr(found, name)[2].isnan().any() for name in ("excess", "largest", "smallest"))
    close(found, expected, equal_nan=True)


@needs_native
def test_float32_is_as_near_as_float32_is():
    driven, bias = example(dtype=torch.float32)
    native, reference = (pool(driven, bias, backend=b)[1] for b in ("native", "reference"))
    # Counts may differ where a response is within rounding of a bias; here none is.
    scale = reference[torch.isfinite(reference)].abs().max()
    same = native == reference
    assert bool((same | ((native - reference).abs() <= 2e-5 * scale)).all())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("elapsed", [False, True])
def test_parts_and_one_sequence_alone_give_the_bits_of_the_whole(backend, elapsed):
    driven, bias = example(dtype=torch.float32, elapsed=elapsed)
    scale = scales(37, F32)
    state, pooled = pool(driven, bias, scale=scale, backend=backend)
    start, end = driven.offsets[2:4]

    def part(first, last):
        gaps = None if driven.elapsed is None else driven.elapsed[first:last]
        own = torch.tensor([0, last - first])
        return driven._replace(x=driven.x[first:last], offsets=own, elapsed=gaps)

    alone = pool(part(start, end), bias, scale=scale, backend=backend)
    assert torch.equal(alone[0][0], state[2]) and torch.equal(alone[1][0], pooled[2])
    memory = (None, None)
    for t in range(start, end):
        before = torch.tensor([t - start])
        memory = pool(part(t, t + 1), bias, *memory, before, scale, backend=backend)
    assert torch.equal(memory[0][0], state[2]) and torch.equal(memory[1][0], pooled[2])


@needs_native
def test_threads_change_no_bit(same_bits_with_any_threads):
    driven, bias = example(dtype=torch.float32, oscillators=100, lengths=(700, 31, 500))
    scale = scales(100, F32)
    same_bits_with_any_threads(lambda: pool(driven, bias, scale=scale, backend="native"))


@pytest.mark.parametrize("elapsed", [False, True])
def test_gradients_of_responses_and_pools(elapsed):
    driven, bias = example(oscillators=2, biases=1, lengths=(2, 4), elapsed=elapsed)
    x, weight, frequency, q = (
        t.clone().requires_grad_() for t in (driven.x, driven.weight, driven.frequency, driven.q)
    )

    def pooled(x, weight, frequency, q, bias):
        moved = driven._replace(x=x, weight=weight, frequency=frequency, q=q)
        pools = Pools.of(pool(moved, bias)[1])
        return pools.excess, pools.largest, pools.square, respond(moved)[0]

    inputs = (x, weight, frequency, q, bias.requires_grad_())
    assert torch.autograd.gradcheck(pooled, inputs, fast_mode=True)


def test_what_the_library_cannot_do_is_said():
    driven, bias = example(biases=17)
    pool(driven, bias)
    if "native" in BACKENDS:
        with pytest.raises(ValueError, match=r"native.*17 biases.*auto"):
            pool(driven, bias, backend="native")
        trained = driven._replace(q=driven.q.requires_grad_())
        with pytest.raises(ValueError, match=r"native.*gradient.*auto"):
            pool(trained, bias[:, :1], backend="native")


def shorter(dim):
    return lambda t: t.narrow(dim, 0, t.shape[dim] - 1)


def cast(dtype):
    return lambda t: t.to(dtype)


WRONG = [
    ("x", ValueError, lambda t: t[0], lambda t: t[:, :0]),
    ("weight", ValueError, shorter(0), shorter(1)),
    ("offsets", ValueError, lambda t: t[:, None], lambda t: t + 1, lambda t: t - 1,
     lambda t: t.flip(0)),
    ("offsets", TypeError, cast(torch.int32)),
    ("frequency", ValueError, lambda t: t[None]),
    ("q", ValueError, shorter(0)),
    ("elapsed", ValueError, shorter(0)),
    ("elapsed", TypeError, cast(torch.int64)),
    ("state", ValueError, shorter(0), shorter(2)),
    ("biases", ValueError, shorter(2), lambda t: t[0], lambda t: t[:, :0]),
    ("pooled", ValueError, shorter(2)),
    ("before", ValueError, shorter(0)),
    ("before", TypeError, cast(torch.int32)),
    ("scale", ValueError, shorter(0), shorter(1)),
    ("step", ValueError, lambda t: t._replace(b=t.b[:-1])),
    ("step", TypeError, lambda t: t._replace(c=t.c.to(F32))),
    *((name, TypeError, cast(F32))
      for name in ("weight", "frequency", "q", "state", "biases", "pooled", "scale")),
]  # fmt: skip


@pytest.mark.parametrize(
    "name, error, wrong", [(*row[:2], one) for row in WRONG for one in row[2:]]
)
def test_a_wrong_tensor_is_refused_by_its_name(name, error, wrong):
    driven, biases = example(elapsed=True)
    driven = driven._replace(step=propagator(driven.frequency, driven.q))
    more = {
        "biases": biases,
        "state": at_rest(4, driven),
        "pooled": no_pools(4, biases),
        "before": torch.zeros(4, dtype=torch.int64),
        "scale": scales(37),
    }
    in_place(driven, **more)  # all are right
    if name in more:
        more[name] = wrong(more[name])
    else:
        driven = driven._replace(**{name: wrong(getattr(driven, name))})
    for run in (pool, in_place):
        with pytest.raises(error, match=rf"^{name}\S* must .*; got "):
            run(driven, **more)
    if name not in ("biases", "pooled", "before", "scale"):
        with pytest.raises(error, match=rf"^{name}\S* must .*; got "):
            respond(driven, more["state"])
