"""coRNN as a function on whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.bridge import native
from anharmonic.ops.cornn.step import CoRNNTerms, CoRNNWeights, cornn_layer, cornn_step
from anharmonic.ops.dispatch import register, register_native
from anharmonic.ops.gpu.backend import register_triton
from anharmonic.ops.recurrence import State, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import Recurrence, SequenceOptions, run_sequence

SCHEMES = ("explicit", "implicit")


def cornn(
    x: Tensor,
    weights: list[CoRNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str = "explicit",
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs a stack of coRNN layers over a sequence; the equation is that of ``cornn_step``.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0; a number or a scalar tensor (then it gets a gradient).
        frequency: γ, >= 0; number or scalar tensor.
        damping: ε; number or scalar tensor.
        scheme: ``"explicit"`` or ``"implicit"`` damping.
        options: Directions, lengths, memory and the like: see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or the policy or backend cannot run
            this input.

    Example:
        >>> import torch
        >>> w = CoRNNWeights(torch.ones(3, 2), torch.eye(3), torch.eye(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> x = torch.ones(5, 4, 2)
        >>> out, y, z = cornn(x, [w], zero, zero, dt=0.1, frequency=1.0, damping=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    choice("scheme", scheme, SCHEMES)
    settings = {"dt": dt, "frequency": frequency, "damping": damping, "scheme": scheme}
    return run_sequence(Recurrence("cornn", settings, _shapes), x, weights, (y0, z0), **options)  # type: ignore[return-value]


def _shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
    square = (hidden, hidden)
    return {
        "weight_ih": (hidden, widths[layer]),
        "weight_hy": square,
        "weight_hz": square,
        "bias": (hidden,),
    }


def _reference(
    x: Tensor,
    weights: Sequence[CoRNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    terms = [CoRNNTerms(*weight, dt, frequency, damping) for weight in weights]
    walk = stepwise(cornn_layer, partial(cornn_step, scheme=scheme))
    return run_chain(walk, x, terms, State(y0, z0), **shared)


def cornn_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in C (csrc/cornn.h)."""
    model = native.CORNN_EXPLICIT if scheme == "explicit" else native.CORNN_IMPLICIT
    flat = [w for weight in weights for w in (*weight, None)]
    return native.run(model, x, flat, y0, z0, [dt, frequency, damping, 0.0], **shared)


def _small_case(make_tensor: Callable[..., Tensor], backend: str) -> Sequence[Tensor | None]:
    """What is compared at the first use on a GPU."""
    weights = CoRNNWeights(make_tensor(3, 2), make_tensor(3, 3), make_tensor(3, 3), make_tensor(3))
    start = make_tensor(1, 4, 3), make_tensor(1, 4, 3)
    x = make_tensor(5, 4, 2)
    return cornn(x, [weights], *start, dt=0.1, frequency=1.2, damping=0.8, backend=backend)


def _on_gpu(*tensors: Any, **settings: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.cornn.triton import cornn_triton

    return cornn_triton(*tensors, **settings)


register("cornn", "reference", _reference)
register_native("cornn", cornn_native)
register_triton("cornn", _on_gpu, _small_case)
