"""Resonators over sequences as functions."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic._checks import has_dtype, has_shape, has_values, require
from anharmonic.ops.backend import choose
from anharmonic.ops.resonator.native import (
    MOST_BIASES,
    Prepared,
    pool_native,
    respond_native,
    unfit,
)
from anharmonic.ops.resonator.pools import (
    OTHERS,
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

    Raises:
        TypeError: If a tensor has the wrong dtype.
        ValueError: If a tensor has the wrong shape or device, or ``offsets`` leave x.

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
    _check(driven, biases, state, pooled, before)
    number = len(driven.offsets) - 1
    state = at_rest(number, driven) if state is None else state
    pooled = no_pools(number, biases) if pooled is None else pooled
    before = driven.offsets.new_zeros(number) if before is None else before
    reals = [driven.x, driven.weight, driven.frequency, driven.q, biases, state, pooled]
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

    Raises:
        TypeError: If a tensor has the wrong dtype.
        ValueError: If a tensor has the wrong shape or device, or ``offsets`` leave x.
    """
    _check(driven, biases, state, pooled, before)
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

    Raises:
        TypeError: If a tensor has the wrong dtype.
        ValueError: If a tensor has the wrong shape or device, or ``offsets`` leave x.
    """
    _check(driven, state=state)
    state = at_rest(len(driven.offsets) - 1, driven) if state is None else state
    reals = [driven.x, driven.weight, driven.frequency, driven.q, state]
    native = choose("resonator_respond", backend, reals, not_native=unfit(reals)) == "native"
    return (respond_native if native else respond_reference)(driven, state)


def _chosen(biases: Tensor, reals: list[Tensor], backend: str = "auto") -> str:
    """The backend that pools."""
    many = f"{biases.shape[1]} biases" if biases.shape[1] > MOST_BIASES else None
    return choose("resonator_pool", backend, reals, not_native=unfit(reals), reference_only=many)


def _check(
    driven: Driven,
    biases: Tensor | None = None,
    state: Tensor | None = None,
    pooled: Tensor | None = None,
    before: Tensor | None = None,
) -> None:
    """Check every tensor of a call, because the C library trusts their sizes."""
    x, offsets, weight, frequency = driven[:4]
    require(x.dim() == 2, "x", x, "two-dimensional", "its sizes are samples, features")
    require(
        offsets.dim() == 1 and len(offsets) > 0, "offsets", offsets, "of shape [N + 1]",
        "append the number of samples to the starts of the N sequences",
    )  # fmt: skip
    require(frequency.dim() == 1, "frequency", frequency, "of shape [K]", "its size is oscillators")
    (S, F), N, K = x.shape, len(offsets) - 1, len(frequency)
    B = 0
    if biases is not None:
        require(
            biases.dim() == 3 and biases.shape[1] > 0, "biases", biases,
            "of shape [2, B, K] with B > 0", "its sizes are y and z, biases, oscillators",
        )  # fmt: skip
        B = biases.shape[1]
    a, b, c = driven.step or (None, None, None)
    for name, value, shape, sizes in (
        ("weight", weight, (F, K), "features of x, oscillators"),
        ("frequency", frequency, (K,), "oscillators"),
        ("q", driven.q, (K,), "oscillators"),
        ("step.a", a, (K,), "oscillators"),
        ("step.b", b, (K,), "oscillators"),
        ("step.c", c, (K,), "oscillators"),
        ("biases", biases, (2, B, K), "y and z, biases, oscillators"),
        ("state", state, (N, 2, K), "sequences, y and z, oscillators"),
        ("pooled", pooled, (N, 2, 2 * B + OTHERS, K), "sequences, y and z, pools, oscillators"),
    ):
        if value is not None:
            has_shape(name, value, shape, f"its sizes are {sizes}")
            has_dtype(name, value, x.dtype)
            _on_device(name, value, x.device)
    for name, value, shape, sizes in (
        ("offsets", offsets, (N + 1,), "sequences + 1"),
        ("before", before, (N,), "sequences"),
    ):
        if value is not None:
            has_shape(name, value, shape, f"its sizes are {sizes}")
            dtype = value.dtype
            require(dtype is torch.int64, name, value, "int64", f"call {name}.long()", TypeError)
            _on_device(name, value, x.device)
    if driven.elapsed is not None:
        has_shape("elapsed", driven.elapsed, (S,), "it has one entry for each sample of x")
        require(
            driven.elapsed.is_floating_point(), "elapsed", driven.elapsed, "a real tensor",
            "call elapsed.double()", TypeError,
        )  # fmt: skip
        _on_device("elapsed", driven.elapsed, x.device)
    if has_values(offsets):
        ends = offsets.tolist()
        ordered = 0 <= ends[0] and ends[-1] <= S and all(map(operator.le, ends, ends[1:]))
        require(
            ordered, "offsets", ends if len(ends) <= 8 else f"[{ends[0]}, ..., {ends[-1]}]",
            f"in ascending order between 0 and the {S} samples of x",
            "append the number of samples to the starts of the sequences",
        )  # fmt: skip


def _on_device(name: str, value: Tensor, device: torch.device) -> None:
    require(
        value.device == device, name, value.device, f"on the device of x, {device}",
        f"call {name}.to({str(device)!r})",
    )  # fmt: skip
