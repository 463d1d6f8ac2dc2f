"""Neural oscillators: undamped, driven by an activation of position and input."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.bridge.native import register_native, without_scalar_tensors
from anharmonic.ops.dispatch import register
from anharmonic.ops.oscillator.native import oscillator_native
from anharmonic.ops.oscillator.reference import ACTIVATIONS, oscillator_reference
from anharmonic.ops.stack import run_stack

SCHEMES = ("symplectic-euler", "velocity-verlet")


class OscillatorWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H] or a vector w [H], b or None."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


register("oscillator", "reference", oscillator_reference)
register_native("oscillator", oscillator_native, without_scalar_tensors)


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
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: list[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
) -> tuple[Tensor | None, Tensor, Tensor]:
    r"""Runs a stack of neural oscillators over a sequence: (4.1) for W, (4.2) for a vector w.

    With :math:`f(y) = \sigma(W y + V u_n + b)`:

    .. math::
        \text{symplectic-euler: } z_n &= z_{n-1} + dt\, f(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_n \\
        \text{velocity-verlet: } z_{n-1/2} &= z_{n-1} + \tfrac{dt}{2} f(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_{n-1/2}, \quad z_n = z_{n-1/2} + \tfrac{dt}{2} f(y_n)

    A layer above gets :math:`y_n` in symplectic Euler, and in velocity Verlet the position in the
    middle of the step, :math:`y_{n-1} + \tfrac{dt}{2} z_{n-1/2}`; the output is :math:`y_n`.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0.
        scheme: ``"symplectic-euler"`` or ``"velocity-verlet"``.
        activation: σ: ``"tanh"``, ``"sin"`` or ``"identity"``.
        bidirectional: Whether every layer also walks from the end.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample in nominal steps, >= 0; multiplies dt. None is 1.
        output: What to return of the outputs: "all", the "last" valid one of each sequence, "none".
        memory: What is kept for the backward pass: "stored", "chunked", "auto", or "reversible"
            (vectors w with tanh and symplectic Euler, in one direction; on UnICORNN's grid).
        backend: ``"auto"`` or the name of one of ``available_backends("oscillator")``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H];
        elapsed [T, B]. Returns outputs y [T, B, D * H] ([B, D * H] for "last", None for "none"),
        final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, or the policy or backend cannot run this input.
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
    own = {"dt": dt, "scheme": scheme, "activation": activation, "is_top": True}
    layers = len(weights) // (2 if bidirectional else 1)

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        own_shape = (hidden,) if alone else (hidden, hidden)
        return {"weight_ih": (hidden, widths[layer]), "weight_hh": own_shape, "bias": (hidden,)}

    def one_layer(
        layer: int, levels: list[Tensor], weight: OscillatorWeights
    ) -> tuple[Tensor, OscillatorWeights, dict[str, Any]]:
        """A layer by itself, which must know whether it is the top one."""
        return levels[layer], weight, {**own, "is_top": layer == layers - 1}

    unfit = only_reference(scheme, activation)
    return run_stack(
        "oscillator",
        x,
        weights,
        y0,
        z0,
        own=own,
        shapes=shapes,
        bidirectional=bidirectional,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        output=output,
        memory=memory,
        backend=backend,
        invertible=alone and unfit is None,
        one_layer=one_layer,
        unfit=unfit,
    )
