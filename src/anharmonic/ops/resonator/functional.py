"""Resonators over sequences as functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic._checks import has_dtype
from anharmonic.ops.backend import choose
from anharmonic.ops.resonator.native import (
    MOST_BIASES,
    Prepared,
    pool_native,
    respond_native,
    unfit,
)
from anharmonic.ops.resonator.pools import (
    Driven,
    at_rest,
    no_pools,
    pool_reference,
    respond_reference,
)


def pool(
    driven: Driven,
    biases: Tensor,
    state: Tensor | None = None,
    pooled: Tensor | None = None,
    before: Tensor | None = None,
    *,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Runs resonators over sequences and pools what they do; no response is stored.

    With what it returns, and the number of samples so far, a sequence goes on: the result is that
    of one call, to the last bit.

    Args:
        driven: Resonators and sequences; see ``resonator_step`` for the equation.
        biases: What shares and excesses are counted above, for y and for z = y'/ω.
        state: y and z before the first sample; 0 if None.
        pooled: What was pooled before; nothing if None.
        before: How many samples that was; 0 if None.
        backend: ``"auto"`` or one of ``available_backends("resonator_pool")``. The compiled one has
            no gradients and at most 16 biases.

    Shape:
        biases [2, B, K]; state [N, 2, K]; pooled [N, 2, 2 B + 5, K], its parts are ``Pools.of``;
        before int64 [N]. Returns state and pooled.

    Example:
        >>> from anharmonic.ops.resonator import Pools
        >>> driven = Driven(
        ...     torch.ones(5, 1), torch.tensor([0, 2, 5]), torch.ones(1, 1),
        ...     frequency=torch.tensor([1.0]), q=torch.tensor([0.5]),
        ... )
        >>> state, pooled = pool(driven, torch.zeros(2, 1, 1))
        >>> Pools.of(pooled).above[:, 0, 0, 0]
        tensor([2., 3.])
    """
    number = len(driven.offsets) - 1
    state = at_rest(number, driven) if state is None else state
    pooled = no_pools(number, biases) if pooled is None else pooled
    before = torch.zeros(number, dtype=torch.int64) if before is None else before
    reals = [driven.x, driven.weight, driven.frequency, driven.q, biases, state, pooled]
    for name, value in zip(("weight", "frequency", "q"), reals[1:], strict=False):
        has_dtype(name, value, driven.x.dtype)
    run = pool_native if _chosen(biases, reals, backend) == "native" else pool_reference
    return run(driven, biases, state, pooled, before)


def in_place(
    driven: Driven, biases: Tensor, state: Tensor, pooled: Tensor, before: Tensor
) -> Callable[[], None]:
    """``pool`` for a stream: what is returned reads all arguments anew and changes state and pools.

    Args:
        driven: Resonators and sequences; the next samples are written into its x.
        biases: As of ``pool``.
        state: As of ``pool``.
        pooled: As of ``pool``.
        before: As of ``pool``; whoever calls counts.
    """
    reals = [driven.x, driven.weight, driven.frequency, driven.q, biases, state, pooled]
    if _chosen(biases, reals) == "native":
        return Prepared(driven, biases, state, pooled, before).run

    def run() -> None:
        new_state, new_pooled = pool_reference(driven, biases, state, pooled, before)
        state.copy_(new_state)
        pooled.copy_(new_pooled)

    return run


def respond(
    driven: Driven, state: Tensor | None = None, *, backend: str = "auto"
) -> tuple[Tensor, Tensor]:
    """The responses of resonators to sequences.

    Args:
        driven: Resonators and sequences.
        state: y and z before the first sample; 0 if None.
        backend: ``"auto"`` or one of ``available_backends("resonator_respond")``.

    Shape:
        state [N, 2, K]. Returns y and z after every sample [S, 2, K], and the final state.
    """
    state = at_rest(len(driven.offsets) - 1, driven) if state is None else state
    reals = [driven.x, driven.weight, driven.frequency, driven.q, state]
    for name, value in zip(("weight", "frequency", "q", "biases"), reals[1:], strict=False):
        has_dtype(name, value, driven.x.dtype)
    native = choose("resonator_respond", backend, reals, not_native=unfit(reals)) == "native"
    return (respond_native if native else respond_reference)(driven, state)


def _chosen(biases: Tensor, reals: list[Tensor], backend: str = "auto") -> str:
    """The backend that pools."""
    many = f"{biases.shape[1]} biases" if biases.shape[1] > MOST_BIASES else None
    return choose("resonator_pool", backend, reals, not_native=unfit(reals), reference_only=many)
