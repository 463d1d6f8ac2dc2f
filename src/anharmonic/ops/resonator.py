"""Damped oscillators driven by sequences, and pools of their responses.

``resonator_step`` is the equation. ``pool`` and ``respond`` run it over sequences in PyTorch, or
without gradients in the C library (csrc/resonator.h). ``in_place`` is ``pool`` for streams.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import require
from anharmonic._tensors import has_dtype, has_shape, has_values, watched
from anharmonic.ops.backend import choose, needs_gradient, unfit_for_cpu
from anharmonic.ops.equation import State
from anharmonic.ops.library import ResonatorCall
from anharmonic.ops.native import dense, invoke

_MOST_BIASES = 16  # AN_MOST_BIASES of csrc/anharmonic.h
COMPETITORS = 8
"""Number of oscillators in a competing group; MEMBERS of csrc/resonator.h."""


class Propagator(NamedTuple):
    """Coefficients of each oscillator's step, [..., K] each; see ``resonator_step``."""

    a: Tensor
    b: Tensor
    c: Tensor


def resonator_step(u: Tensor, state: State, w: Propagator) -> State:
    r"""Take one step of y'' = ω² (u − y) − (ω/q) y', exact for constant u during the step.

    .. math::
        y_n &= y_{n-1} + a\,(u_n - y_{n-1}) + b\, z_{n-1} \\
        z_n &= z_{n-1} + b\,(u_n - y_{n-1}) - c\, z_{n-1}

    z is y'/ω, so that both have the magnitude of u. Increments are small if a step is a small part
    of a period. Float32 then loses no precision, unlike in a product with cos(ω dt).
    """
    y, z = state
    e = u - y
    return State(y + w.a * e + w.b * z, z + w.b * e - w.c * z)


def propagator(frequency: Tensor, q: Tensor, elapsed: Tensor | float = 1.0) -> Propagator:
    r"""Return the coefficients of a step, computed in float64.

    With τ = ω dt, ζ = 1/(2q) and the solution of e'' + 2ζe' + e = 0 over τ,

    .. math::
        1 - a = C + ζ S, \quad b = S, \quad 1 - c = C - ζ S, \qquad
        C = e^{-ζτ} \cos(\sqrt{1 - ζ²}\, τ), \quad
        S = e^{-ζτ} \sin(\sqrt{1 - ζ²}\, τ) / \sqrt{1 - ζ²}

    with cosh and sinh above critical damping (ζ > 1), and their common limit at ζ = 1.

    Args:
        frequency: ω, > 0, in radians per unit of time.
        q: Quality factor, > 0; below 1/2 the oscillator is overdamped.
        elapsed: dt, >= 0; broadcasts against the others.

    Example:
        >>> a, b, c = propagator(torch.tensor([1.0]), torch.tensor([0.5]), 1.0)
        >>> a, b, c  # critically damped: 1 - 2/e, 1/e, 1
        (tensor([0.2642]), tensor([0.3679]), tensor([1.]))
    """
    dtype = frequency.dtype
    tau = frequency.double() * elapsed
    zeta = 0.5 / q.double()
    x = (1 - zeta * zeta) * tau * tau
    # The square root has no derivative at x = 0; use 4 terms of the series in x.
    near, over = x.abs() < 1e-3, x < 0
    root = torch.where(near, 1.0, x).abs().sqrt()
    # Evaluate each only in its own region, because 0 * inf in the backward pass would be NaN.
    angle, rate = torch.where(over, 0.0, root), torch.where(over & ~near, root, 0.0)
    decay = torch.exp(-zeta * tau)
    slow, fast = torch.exp(rate - zeta * tau), torch.exp(-rate - zeta * tau)
    C_far = torch.where(over, (slow + fast) / 2, decay * torch.cos(angle))
    S_far = torch.where(over, (slow - fast) / 2, decay * torch.sin(angle)) / root
    C_near = decay * (1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56))))
    S_near = decay * (1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72))))
    C, S = torch.where(near, C_near, C_far), torch.where(near, S_near, S_far) * tau
    # In float64, 1 - C keeps float32 precision down to a millionth of a period.
    return Propagator(*(v.to(dtype) for v in (1 - C - zeta * S, S, 1 - C + zeta * S)))


class Driven(NamedTuple):
    """Resonators and the sequences that drive them.

    Attributes:
        x: The concatenated samples of all sequences.
        offsets: Sequence n has the samples offsets[n] to offsets[n + 1] - 1.
        weight: Weights of the features in each oscillator's input.
        frequency: ω, > 0.
        q: Quality, > 0.
        elapsed: Time since the previous sample, >= 0; None means 1 everywhere.
        step: ``propagator(frequency, q)`` if already computed, or None.

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
    """Pools of y and z so far, as views of one tensor [N, 2, 6 B + 6, K].

    Attributes:
        above: Number of samples above each bias.
        excess: Sum of the excess above it.
        run: Length of the current run above it; negative for below.
        longest: The longest run above it.
        longest_below: The longest run below it.
        crossings: Number of upward crossings of each bias.
        position: Sum of the indices of the samples above the first bias.
        largest: The largest response, -inf before the first sample.
        smallest: The smallest response, inf before the first sample.
        square: Sum of squares.
        most: Number of samples with the largest response of the group.
        least: Number of samples with the smallest response of the group.

    Shape:
        The first six [N, 2, B, K]; the others [N, 2, K].
    """

    above: Tensor
    excess: Tensor
    run: Tensor
    longest: Tensor
    longest_below: Tensor
    crossings: Tensor
    position: Tensor
    largest: Tensor
    smallest: Tensor
    square: Tensor
    most: Tensor
    least: Tensor

    @classmethod
    def of(cls, pooled: Tensor) -> Pools:
        """Split a tensor [N, 2, 6 B + 6, K] into pools."""
        biases = pooled.shape[2] // 6 - 1
        each = torch.split(pooled[:, :, : 6 * biases], biases, dim=2)
        return cls(*each, *pooled[:, :, -6:].unbind(2))

    def joined(self) -> Tensor:
        """Join the pools to one tensor."""
        return torch.cat([*self[:6], torch.stack(self[6:], dim=2)], dim=2)


def pool_rows(biases: int) -> int:
    """Return the number of rows of ``Pools`` for a number of biases."""
    return 6 * biases + 6


def number_of_groups(oscillators: int) -> int:
    """Return S; oscillator k competes with k + S, k + 2 S, ..., in two blocks of 8 S."""
    return -(-oscillators // (2 * COMPETITORS))


def no_pools(number: int, biases: Tensor) -> Tensor:
    """Return the pools of ``number`` sequences before the first sample, for biases [2, B, K]."""
    _, B, K = biases.shape
    pooled = biases.new_zeros(number, 2, pool_rows(B), K)
    Pools.of(pooled).largest.fill_(-torch.inf)
    Pools.of(pooled).smallest.fill_(torch.inf)
    return pooled


def at_rest(number: int, driven: Driven) -> Tensor:
    """Return the state, y and z, of ``number`` sequences before the first sample, [N, 2, K]."""
    return driven.weight.new_zeros(number, 2, len(driven.frequency))


def pool(
    driven: Driven,
    biases: Tensor,
    state: Tensor | None = None,
    pooled: Tensor | None = None,
    before: Tensor | None = None,
    scale: Tensor | None = None,
    *,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Run resonators over sequences and pool their responses without storing them.

    To continue a sequence, pass the returned values and the number of samples so far (``before``).
    The result equals that of a single call, to the last bit. ``biases`` are thresholds for shares
    and excesses of y and z = y'/ω.

    With ``scale``, factors on the responses, eight oscillators k, k + S, k + 2 S, ... compete, with
    S = K / 16 rounded up, among the first 8 S oscillators and among the others. Without it ``most``
    and ``least`` stay unchanged. The C library supports no gradients and at most 16 biases.

    Shape:
        biases [2, B, K]; state [N, 2, K]; pooled [N, 2, 6 B + 6, K], split by ``Pools.of``; before
        int64 [N]; scale [2, K]. Returns state and pooled.

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
    _check(driven, biases, state, pooled, before, scale)
    number = len(driven.offsets) - 1
    state = at_rest(number, driven) if state is None else state
    pooled = no_pools(number, biases) if pooled is None else pooled
    before = driven.offsets.new_zeros(number) if before is None else before
    if _chosen_for_pools(driven, biases, state, pooled, backend) == "reference":
        return _pool(driven, biases, state, pooled, before, scale)
    state, pooled = dense(state).clone(), dense(pooled).clone()
    _prepared(driven, biases, state, pooled, before, scale)()
    return state, pooled


def in_place(
    driven: Driven,
    biases: Tensor,
    state: Tensor,
    pooled: Tensor,
    before: Tensor,
    scale: Tensor | None = None,
) -> Callable[[], None]:
    """Return ``pool`` for a stream, which reads all arguments again at each call.

    It changes state and pools in place. The caller writes the next samples into the x of ``driven``
    and updates ``before``.
    """
    _check(driven, biases, state, pooled, before, scale)
    if _chosen_for_pools(driven, biases, state, pooled, "auto") == "native":
        return _prepared(driven, biases, state, pooled, before, scale)

    def run() -> None:
        new_state, new_pooled = _pool(driven, biases, state, pooled, before, scale)
        state.copy_(new_state)
        pooled.copy_(new_pooled)

    return run


def respond(
    driven: Driven, state: Tensor | None = None, *, backend: str = "auto"
) -> tuple[Tensor, Tensor]:
    """Return y and z of resonators after every sample [S, 2, K], and the final state [N, 2, K].

    ``state`` is that before the first sample; 0 if None.
    """
    _check(driven, state=state)
    state = at_rest(len(driven.offsets) - 1, driven) if state is None else state
    reals = [driven.x, driven.weight, driven.frequency, driven.q, state]
    output = driven.x.new_zeros(len(driven.x), *state.shape[1:])
    if choose("resonator_respond", backend, reals, not_native=_unfit(reals)) == "native":
        state = dense(state).clone()
        no_biases = state.new_zeros(2, 0, state.shape[-1])
        _prepared(driven, no_biases, state, None, None, output=output)()
        return output, state
    for running, at, now in _walk(driven, state):
        output = output.index_put((at[running],), now[running])
        state = now
    return output, state


def _chosen_for_pools(
    driven: Driven, biases: Tensor, state: Tensor, pooled: Tensor, backend: str
) -> str:
    """Return the backend that pools."""
    reals = [driven.x, driven.weight, driven.frequency, driven.q, biases, state, pooled]
    many = f"{biases.shape[1]} biases" if biases.shape[1] > _MOST_BIASES else None
    return choose("resonator_pool", backend, reals, not_native=_unfit(reals), reference_only=many)


def _check(
    driven: Driven,
    biases: Tensor | None = None,
    state: Tensor | None = None,
    pooled: Tensor | None = None,
    before: Tensor | None = None,
    scale: Tensor | None = None,
) -> None:
    """Check every tensor of a call, because the C library trusts their sizes."""
    x, offsets, weight, frequency = driven[:4]
    require(
        x.dim() == 2 and x.shape[1] > 0, "x", x, "of shape [S, F] with F > 0",
        "its sizes are samples, features",
    )  # fmt: skip
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
        ("pooled", pooled, (N, 2, pool_rows(B), K), "sequences, y and z, pools, oscillators"),
        ("scale", scale, (2, K), "y and z, oscillators"),
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


# ---- the reference: a loop over time in PyTorch
def _walk(driven: Driven, state: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the running sequences, their samples and the next state for each step.

    For ended sequences the sample is 0 and the state stays constant.
    """
    x, offsets, weight, frequency, q, elapsed, known = driven
    length = offsets.diff()
    steps = propagator(frequency, q) if known is None else known
    for t in range(int(length.max()) if len(length) else 0):
        running = t < length
        at = torch.where(running, offsets[:-1] + t, 0)
        u = x[at, :1] * weight[0]
        for f in range(
            1, x.shape[1]
        ):  # one by one, because a product's sums may depend on the batch
            u = u + x[at, f, None] * weight[f]
        if elapsed is not None:
            steps = propagator(frequency, q, elapsed[at, None])
        new = torch.stack(resonator_step(u, State(*state.unbind(1)), steps), dim=1)
        state = torch.where(running[:, None, None], new, state)
        yield running, at, state


def _pool(
    driven: Driven,
    biases: Tensor,
    state: Tensor,
    pooled: Tensor,
    before: Tensor,
    scale: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """``pool`` after its checks."""
    for t, (running, _, response) in enumerate(_walk(driven, state)):
        pools = Pools.of(pooled)
        over = response.unsqueeze(2) - biases
        is_over = (over > 0).to(over.dtype)
        run = torch.where(over > 0, pools.run.clamp(min=0) + 1, pools.run.clamp(max=0) - 1)
        most, least = pools.most, pools.least
        if scale is not None:
            largest, smallest = _competition(response * scale)
            most, least = most + largest, least + smallest
        new = Pools(
            pools.above + is_over,
            pools.excess + over.clamp(min=0),
            run,
            torch.maximum(pools.longest, run),
            torch.maximum(pools.longest_below, -run),
            pools.crossings + is_over * (pools.run < 0),
            pools.position + is_over[:, :, 0] * (before + t)[:, None, None],
            torch.maximum(pools.largest, response),
            torch.minimum(pools.smallest, response),
            pools.square + response * response,
            most,
            least,
        )
        pooled = torch.where(running[:, None, None, None], new.joined(), pooled)
        state = response
    return state, pooled


def _competition(responses: Tensor) -> tuple[Tensor, Tensor]:
    """Return which responses [N, 2, K] are the largest and the smallest of their groups."""
    K = responses.shape[-1]
    groups = number_of_groups(K)
    found = []
    for sign in (1, -1):
        padding = (0, 2 * COMPETITORS * groups - K)
        padded = torch.nn.functional.pad(sign * responses, padding, value=-torch.inf)
        blocks = padded.view(*padded.shape[:-1], 2, COMPETITORS, groups)
        is_most = blocks >= blocks.amax(dim=-2, keepdim=True)
        found.append(is_most.flatten(-3)[..., :K].to(responses.dtype))
    return found[0], found[1]


# ---- the C library
def _unfit(tensors: Sequence[Tensor]) -> str | None:
    """Return why the library cannot run these tensors; None if it can."""
    if needs_gradient(tensors):
        return "a tensor that needs a gradient"
    return "a call that is traced" if watched() else unfit_for_cpu(tensors)


def _prepared(
    driven: Driven, biases: Tensor, state: Tensor, pooled: Tensor | None, before: Tensor | None,
    scale: Tensor | None = None, output: Tensor | None = None,
) -> Callable[[], None]:  # fmt: skip
    """Return a call that reads the current x, elapsed and before, and changes the rest."""
    x, offsets, weight = map(dense, driven[:3])
    steps = torch.stack(driven.step or propagator(driven.frequency, driven.q))
    frequency, q, biases = driven.frequency.double(), driven.q.double(), dense(biases)
    scale = None if scale is None else dense(scale)
    elapsed = None if driven.elapsed is None else dense(driven.elapsed).double()
    tensors = (
        offsets, before, x, weight, steps, elapsed, frequency, q, biases, scale, state, pooled,
        output,
    )  # fmt: skip
    call = ResonatorCall(
        x.element_size(), torch.get_num_threads(), len(offsets) - 1, x.shape[1], len(frequency),
        biases.shape[1], *(None if t is None else t.data_ptr() for t in tensors),
    )  # fmt: skip
    call.references = tensors
    return functools.partial(invoke, "an_resonate", call)
