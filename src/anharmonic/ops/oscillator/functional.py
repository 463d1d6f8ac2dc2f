"""Neural oscillators as a function on whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.cornn.functional import cornn_native
from anharmonic.ops.dispatch import (
    register,
    register_native,
    unfit_for_cpu,
    without_scalar_tensors,
)
from anharmonic.ops.oscillator.relatives import as_cornn, as_unicornn
from anharmonic.ops.oscillator.step import (
    ACTIVATIONS,
    OscillatorState,
    OscillatorTerms,
    OscillatorWeights,
    euler_step,
    oscillator_layer,
    verlet_step,
)
from anharmonic.ops.recurrence import State, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import Recurrence, SequenceOptions, run_sequence
from anharmonic.ops.unicornn.functional import unicornn_native, unicornn_reference

SCHEMES = ("symplectic-euler", "velocity-verlet")
_SEEN = OscillatorState._fields.index("seen")


def only_reference(scheme: str, activation: str) -> str | None:
    """Why only the reference can run these oscillators; None if they are coRNN's or UnICORNN's.

    Example:
        >>> only_reference("symplectic-euler", "sin")
        "scheme='symplectic-euler' with activation='sin'"
    """
    if scheme == "symplectic-euler" and activation == "tanh":
        return None
    return f"scheme={scheme!r} with activation={activation!r}"


def oscillator(
    x: Tensor,
    weights: list[OscillatorWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str = "symplectic-euler",
    activation: str = "tanh",
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    r"""Runs a stack of neural oscillators over a sequence: (4.1) for W, (4.2) for a vector w.

    The equations are those of ``euler_step`` and ``verlet_step``. A layer above gets :math:`y_n` in
    symplectic Euler, and in velocity Verlet the position in the middle of the step,
    :math:`y_{n-1} + \tfrac{dt}{2} z_{n-1/2}`; the output is :math:`y_n`.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0.
        scheme: ``"symplectic-euler"`` or ``"velocity-verlet"``.
        activation: σ: ``"tanh"``, ``"sin"`` or ``"identity"``.
        options: Directions, lengths, memory and the like: see ``SequenceOptions``.
            ``memory="reversible"`` needs vectors w with tanh and symplectic Euler, in one
            direction; it walks on UnICORNN's grid.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or the policy or backend cannot run
            this input.
        OverflowError: If states leave the grid of the reversible policy.

    Example:
        >>> import torch
        >>> w = OscillatorWeights(torch.ones(3, 2), -torch.ones(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = oscillator(torch.ones(5, 4, 2), [w], zero, zero, dt=0.1)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    choice("scheme", scheme, SCHEMES)
    choice("activation", activation, ACTIVATIONS)
    alone = bool(weights) and weights[0].weight_hh.dim() == 1
    settings = {"dt": dt, "scheme": scheme, "activation": activation, "is_top": True}
    layers = len(weights) // (2 if options.get("bidirectional") else 1)

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        own_shape = (hidden,) if alone else (hidden, hidden)
        return {"weight_ih": (hidden, widths[layer]), "weight_hh": own_shape, "bias": (hidden,)}

    def one_layer(
        layer: int, levels: list[Tensor], weight: OscillatorWeights
    ) -> tuple[Tensor, OscillatorWeights, dict[str, Any]]:
        """A layer by itself, which must know whether it is the top one."""
        return levels[layer], weight, {**settings, "is_top": layer == layers - 1}

    unfit = only_reference(scheme, activation)
    recurrence = Recurrence(
        "oscillator", settings, shapes, alone and unfit is None, one_layer, unfit
    )
    return run_sequence(recurrence, x, weights, (y0, z0), **options)  # type: ignore[return-value]


def _reference(
    x: Tensor,
    weights: Sequence[OscillatorWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str,
    activation: str,
    is_top: bool,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in plain PyTorch; ``is_top``: whether its last layer is the top one of a stack."""
    if shared["memory"] == "reversible":
        turned, own = as_unicornn(weights, dt)
        return unicornn_reference(x, turned, y0, z0, **own, **shared)
    terms = [OscillatorTerms(*weight, _SEEN) for weight in weights]
    if is_top:
        terms[-1] = terms[-1]._replace(output=0)
    step = euler_step if scheme == "symplectic-euler" else verlet_step
    walk = stepwise(partial(oscillator_layer, dt=dt), partial(step, activation=activation))
    return run_chain(walk, x, terms, State(y0, z0), **shared)


def _native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str,
    activation: str,
    is_top: bool,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in C, for symplectic Euler and tanh: a case of coRNN or UnICORNN."""
    if weights[0].weight_hh.dim() == 2:
        same, own = as_cornn(weights)
        return cornn_native(x, same, y0, z0, dt=dt, **own, **shared)
    turned, own = as_unicornn(weights, dt)
    return unicornn_native(x, turned, y0, z0, **own, **shared)


register("oscillator", "reference", _reference)
register_native("oscillator", _native, without_scalar_tensors(unfit_for_cpu))
