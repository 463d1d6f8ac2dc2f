"""Resonators over sequences, and what is pooled of them, in plain PyTorch: the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic.ops.equation import State
from anharmonic.ops.resonator.step import Propagator, propagator, resonator_step

OTHERS = 5
"""Pools that do not come once for each bias."""


class Driven(NamedTuple):
    """Resonators and the sequences that drive them.

    Attributes:
        x: The samples of all sequences, one after another.
        offsets: Sequence n holds the samples offsets[n] to offsets[n + 1] - 1.
        weight: What each oscillator takes of each feature: its input is the sum.
        frequency: ω, > 0.
        q: Quality, > 0.
        elapsed: Time since the previous sample, >= 0; None is 1 everywhere.
        step: ``propagator(frequency, q)`` where it is known already; None computes it.

    Shape:
        x [S, F]; offsets int64 [N + 1]; weight [F, K]; frequency and q [K]; elapsed float64 [S].
    """

    x: Tensor
    offsets: Tensor
    weight: Tensor
    frequency: Tensor
    q: Tensor
    elapsed: Tensor | None = None
    step: Propagator | None = None


class Pools(NamedTuple):
    """What was pooled of y and z so far: views of one tensor [N, 2, 2 B + 5, K].

    Attributes:
        above: How many samples lay above each bias.
        excess: The sum of what was above it.
        run: How many in a row, up to now, lay above the first bias.
        longest: The longest such run.
        position: The sum of the numbers, from 0, of the samples above the first bias.
        largest: The largest response, -inf before the first sample.
        square: The sum of squares.

    Shape:
        above and excess [N, 2, B, K]; the others [N, 2, K].
    """

    above: Tensor
    excess: Tensor
    run: Tensor
    longest: Tensor
    position: Tensor
    largest: Tensor
    square: Tensor

    @classmethod
    def of(cls, pooled: Tensor) -> Pools:
        """The parts of a tensor [N, 2, 2 B + 5, K]."""
        biases = (pooled.shape[2] - OTHERS) // 2
        above, excess = pooled[:, :, :biases], pooled[:, :, biases : 2 * biases]
        return cls(above, excess, *pooled[:, :, 2 * biases :].unbind(2))

    def joined(self) -> Tensor:
        """One tensor again."""
        return torch.cat([self.above, self.excess, torch.stack(self[2:], dim=2)], dim=2)


def no_pools(number: int, biases: Tensor) -> Tensor:
    """The pools of ``number`` sequences before the first sample, for biases [2, B, K]."""
    _, B, K = biases.shape
    pooled = biases.new_zeros(number, 2, 2 * B + OTHERS, K)
    Pools.of(pooled).largest.fill_(-torch.inf)
    return pooled


def at_rest(number: int, driven: Driven) -> Tensor:
    """The state, y and z, of ``number`` sequences before the first sample, [N, 2, K]."""
    return driven.weight.new_zeros(number, 2, len(driven.frequency))


def walk(driven: Driven, state: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Runs resonators step by step; the states of sequences that have ended stay.

    Args:
        driven: Resonators and sequences.
        state: y and z before the first sample, [N, 2, K].

    Yields:
        Which sequences still run [N], the sample of each (0 where ended) and the state after it.
    """
    x, offsets, weight, frequency, q, elapsed, known = driven
    length = offsets.diff()
    steps = propagator(frequency, q) if known is None else known
    for t in range(int(length.max()) if len(length) else 0):
        running = t < length
        at = torch.where(running, offsets[:-1] + t, 0)
        u = x[at, :1] * weight[0]
        for f in range(1, x.shape[1]):  # one by one: a product's sums may depend on the batch
            u = u + x[at, f, None] * weight[f]
        if elapsed is not None:
            steps = propagator(frequency, q, elapsed[at, None])
        new = torch.stack(resonator_step(u, State(*state.unbind(1)), steps), dim=1)
        state = torch.where(running[:, None, None], new, state)
        yield running, at, state


def pool_reference(
    driven: Driven, biases: Tensor, state: Tensor, pooled: Tensor, before: Tensor
) -> tuple[Tensor, Tensor]:
    """The chain of ``ops.resonator.pool``."""
    for t, (running, _, now) in enumerate(walk(driven, state)):
        pools = pool_step(now, Pools.of(pooled), biases, before + t)
        pooled = torch.where(running[:, None, None, None], pools.joined(), pooled)
        state = now
    return state, pooled


def pool_step(response: Tensor, pools: Pools, biases: Tensor, t: Tensor) -> Pools:
    """Pools one more sample.

    Args:
        response: y and z.
        pools: What was pooled before.
        biases: For y and z.
        t: The number of the sample in its sequence, from 0.

    Shape:
        response [N, 2, K]; biases [2, B, K]; t [N].
    """
    over = response.unsqueeze(2) - biases
    is_over = (over > 0).to(over.dtype)
    first = is_over[:, :, 0]
    run = (pools.run + 1) * first
    return Pools(
        pools.above + is_over,
        pools.excess + over.clamp(min=0),
        run,
        torch.maximum(pools.longest, run),
        pools.position + first * t[:, None, None],
        torch.maximum(pools.largest, response),
        pools.square + response * response,
    )


def respond_reference(driven: Driven, state: Tensor) -> tuple[Tensor, Tensor]:
    """The chain of ``ops.resonator.respond``."""
    output = driven.x.new_zeros(len(driven.x), *state.shape[1:])
    for running, at, now in walk(driven, state):
        output = output.index_put((at[running],), now[running])
        state = now
    return output, state
