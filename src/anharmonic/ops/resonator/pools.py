"""What is pooled from the responses of resonators, in plain PyTorch: the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic.ops.recurrence import State
from anharmonic.ops.resonator.step import Propagator, resonator_step


class Pools(NamedTuple):
    """Sums over the steps so far, of y and of z = y'/ω.

    Attributes:
        above: How many steps lay above each bias.
        excess: The sum of what was above it.
        largest: The largest response, -inf before the first step.
        square: The sum of squares.

    Shape:
        above and excess [N, 2, B, K]; largest and square [N, 2, K].
    """

    above: Tensor
    excess: Tensor
    largest: Tensor
    square: Tensor


def no_pools(x: Tensor, number: int, biases: Tensor) -> Pools:
    """The pools before the first step, of ``number`` sequences, as x in kind and device."""
    _, B, K = biases.shape
    zero = x.new_zeros(number, 2, B, K)
    return Pools(zero, zero, x.new_full((number, 2, K), -torch.inf), x.new_zeros(number, 2, K))


class Driven(NamedTuple):
    """Resonators and the sequences that drive them.

    Attributes:
        x: The samples of all sequences, one after another.
        offsets: Sequence n holds the samples offsets[n] to offsets[n + 1] - 1.
        weight: What each oscillator takes of each feature: its input is the sum.
        steps: The coefficients of a step, the same for all samples or one row for each.

    Shape:
        x [S, F]; offsets int64 [N + 1]; weight [F, K]; steps [K] or [S, K] each.
    """

    x: Tensor
    offsets: Tensor
    weight: Tensor
    steps: Propagator


def walk(driven: Driven, state: State) -> Iterator[tuple[Tensor, Tensor, State]]:
    """Runs resonators step by step; the states of sequences that have ended stay.

    Args:
        driven: Resonators and sequences.
        state: y and z before the first sample, [N, K] each.

    Yields:
        Which sequences still run [N], the sample of each (0 where ended) and the state after it.
    """
    x, offsets, weight, steps = driven
    length = offsets.diff()
    for t in range(int(length.max()) if len(length) else 0):
        running = t < length
        at = torch.where(running, offsets[:-1] + t, 0)
        u = x[at, :1] * weight[0]
        for f in range(1, x.shape[1]):  # one by one: a product's sums may depend on the batch
            u = u + x[at, f, None] * weight[f]
        here = steps if steps.a.dim() == 1 else Propagator(*(v[at] for v in steps))
        state = State(*_where(running, resonator_step(u, state, here), state))
        yield running, at, state


def pool_reference(
    driven: Driven, biases: Tensor, state: State, pools: Pools
) -> tuple[State, Pools]:
    """Runs resonators over sequences and pools what they do.

    Args:
        driven: Resonators and sequences.
        biases: For y and z.
        state: y and z before the first sample.
        pools: What was pooled before.

    Shape:
        biases [2, B, K]; state [N, K] each.
    """
    for running, _, now in walk(driven, state):
        new = pool_step(torch.stack(now, dim=1), pools, biases)
        pools, state = Pools(*_where(running, new, pools)), now
    return state, pools


def respond_reference(driven: Driven, state: State) -> State:
    """The responses y and z to every sample, [S, K] each."""
    shape = (len(driven.x), *state.y.shape[1:])
    y, z = driven.x.new_zeros(shape), driven.x.new_zeros(shape)
    for running, at, now in walk(driven, state):
        y = y.index_put((at[running],), now.y[running])
        z = z.index_put((at[running],), now.z[running])
    return State(y, z)


def _where(running: Tensor, new: Iterable[Tensor], old: Iterable[Tensor]) -> list[Tensor]:
    return [
        torch.where(running.view(-1, *[1] * (n.dim() - 1)), n, o)
        for n, o in zip(new, old, strict=True)
    ]


def pool_step(response: Tensor, pools: Pools, biases: Tensor) -> Pools:
    """Pools one more step, of y and z together: response [N, 2, K]."""
    excess = response.unsqueeze(2) - biases
    return Pools(
        pools.above + (excess > 0).to(excess.dtype),
        pools.excess + excess.clamp(min=0),
        torch.maximum(pools.largest, response),
        pools.square + response * response,
    )


def features_of(pools: Pools, steps: Tensor) -> Tensor:
    """Features from pools: share above, mean excess, largest, root mean square.

    Args:
        pools: The sums.
        steps: How many steps they hold, >= 1 each.

    Shape:
        steps [N]; result [N, (4 B + 4) K].
    """
    n = steps.to(pools.square.dtype)[:, None, None]
    found = (
        pools.above / n[..., None],
        pools.excess / n[..., None],
        pools.largest,
        (pools.square / n).sqrt(),
    )
    return torch.cat([v.flatten(1) for v in found], dim=1)
