r"""Energies along a trajectory, and the error of inverting UnICORNN in floating point.

coRNN: :math:`E_n = \tfrac{1}{2}(\gamma |y_n|^2 + |z_n|^2)`, which its bounds hold down (T 2.2.1).
UnICORNN: the Hamiltonian (3.4). The differential equation conserves it while the input is constant;
the symplectic steps conserve it up to a bounded error.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import require
from anharmonic.diagnostics.recurrence import check_inputs, examined, layer_of, recurrence
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.hamiltonian import hamiltonian
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator
from anharmonic.nn.sequence.unicornn import UnICORNN

HAVE_ENERGY = (CoRNN, UnICORNN, MultiLayerNeuralOscillator)
"""Layers that ``energy_along`` supports."""


def cornn_energy(layer: CoRNN, y: Tensor, z: Tensor) -> Tensor:
    r"""Kinetic and potential energy of coRNN's oscillators.

    .. math::
        E = \tfrac{1}{2}\big(\gamma\, y \cdot y + z \cdot z\big)

    Shape:
        y, z [..., H]; result [...].

    Example:
        >>> cornn_energy(CoRNN(1, 2, frequency=2.0), torch.tensor([1.0, 0.0]), torch.ones(2))
        tensor(2.)
    """
    gamma = layer.scalars()[1]
    energy: Tensor = (gamma * y.square().sum(-1) + z.square().sum(-1)) / 2
    return energy


def energy_along(layer: Any, x: Tensor) -> Tensor:
    """Return the energy of every layer after every step, starting at rest.

    This is ``cornn_energy`` for CoRNN, and ``hamiltonian`` for UnICORNN or a multi-layer neural
    oscillator, with the input that led to each state.

    Args:
        layer: The unidirectional layer, or a ``SequenceModel`` of one.
        x: The inputs, time first, in the layer's dtype.

    Shape:
        x [T, B, F]; result [T, L, B].

    Raises:
        TypeError: If the layer has no energy.
        ValueError: If it is bidirectional, or x has the wrong shape.

    Example:
        >>> energy_along(CoRNN(2, 4, num_layers=2), torch.randn(30, 3, 2)).shape
        torch.Size([30, 2, 3])
    """
    layer = layer_of(layer)
    names = " or ".join(kind.__name__ for kind in HAVE_ENERGY)
    require(has_energy(layer), "layer", layer, f"a {names}", "pass such a layer", TypeError)
    found = recurrence(layer)
    x = check_inputs(x, found.input_size)
    with examined(layer), torch.no_grad():
        y, z = found.parts(torch.stack(found.walk(x)[1:]))
        if isinstance(layer, CoRNN):
            return cornn_energy(layer, y, z)
        steps, levels, batch, _ = y.shape
        flat = [part.transpose(0, 1).flatten(1, 2) for part in (y, z)]  # all steps as one batch
        along: Tensor = hamiltonian(layer, (flat[0], flat[1]), x.flatten(0, 1))
        return along.reshape(levels, steps, batch).transpose(0, 1)


def has_energy(layer: Any) -> bool:
    """Whether ``energy_along`` supports this layer.

    Example:
        >>> has_energy(CoRNN(1, 2)), has_energy(torch.nn.LSTM(1, 2))
        (True, False)
    """
    return isinstance(layer, HAVE_ENERGY)


def reversibility_error(layer: Any, x: Tensor) -> Tensor:
    r"""Return the error of UnICORNN's states rebuilt from the last one in floating point.

    All layers run forward over all steps with (3.6), then back with the inverse (3.7):

    .. math::
        y_{n-1}^l &= y_n^l - h^l \odot z_n^l \\
        z_{n-1}^l &= z_n^l + h^l \odot [\tanh(w^l \odot y_{n-1}^l + x_n^l) + \alpha y_{n-1}^l]

    Args:
        layer: A unidirectional ``UnICORNN``, or a ``SequenceModel`` of one. Its dtype sets the
            precision.
        x: The inputs, time first, in the layer's dtype.

    Shape:
        x [T, B, F]; result [T + 1]: entry k is the largest error of a rebuilt state k steps before
        the end, relative to the largest state; entry 0 is 0.

    Raises:
        TypeError: If the layer has another type.
        ValueError: If it is bidirectional, or x has the wrong shape.

    Note:
        Both directions use the formulas above step by step, so the result measures plain
        floating-point arithmetic. ``memory="reversible"`` works on a grid instead, where the error
        is zero.

    Example:
        >>> layer = UnICORNN(2, 4, dtype=torch.float64)
        >>> bool(reversibility_error(layer, torch.randn(100, 2, 2).double()).max() < 1e-12)
        True
    """
    layer = layer_of(layer)
    require(isinstance(layer, UnICORNN), "layer", layer, "a UnICORNN", "pass one", TypeError)
    found = recurrence(layer)
    x = check_inputs(x, found.input_size)
    with examined(layer), torch.no_grad():
        y, z = (part.clone() for part in found.parts(found.start(x.shape[1])))
        real = [(y.clone(), z.clone())]
        for x_t in x:
            _move(layer, y, z, x_t, back=False)
            real.append((y.clone(), z.clone()))
        errors = [x.new_zeros(())]
        for n in range(len(x), 0, -1):
            _move(layer, y, z, x[n - 1], back=True)
            pairs = zip((y, z), real[n - 1], strict=True)
            errors.append(torch.stack([(a - b).abs().max() for a, b in pairs]).max())
        largest = torch.stack([part.abs().max() for state in real for part in state]).max()
    return torch.stack(errors) / largest.clamp(min=torch.finfo(largest.dtype).tiny)


def _drive(layer: UnICORNN, k: int, y: Tensor, x: Tensor) -> Tensor:
    """Return the term that layer k adds to w y, from the input and the positions below it."""
    below = x if k == 0 else y[..., k - 1, :, :]
    drive: Tensor = below @ getattr(layer, f"weight_ih_l{k}").detach().t()
    if layer.bias:
        drive = drive + getattr(layer, f"bias_l{k}").detach()
    skipped = layer.skipped_layers
    if skipped is not None and k >= skipped:
        source = x if k == skipped else y[..., k - skipped - 1, :, :]
        drive = drive + source @ getattr(layer, f"weight_skip_l{k}").detach().t()
    return drive


def _move(layer: UnICORNN, y: Tensor, z: Tensor, x_t: Tensor, *, back: bool) -> None:
    """Take one step of all layers in place, or undo it.

    Forward, each layer needs the new positions below it. Backward, layers are undone from the top,
    while these are still available.
    """
    levels = range(layer.num_layers)
    for k in reversed(levels) if back else levels:
        h = layer._steps[k] * torch.sigmoid(getattr(layer, f"timescale_l{k}"))
        w = getattr(layer, f"weight_hh_l{k}")
        drive = _drive(layer, k, y, x_t)
        if back:
            y[k] -= h * z[k]
            z[k] += h * (torch.tanh(w * y[k] + drive) + layer.frequency * y[k])
        else:
            z[k] -= h * (torch.tanh(w * y[k] + drive) + layer.frequency * y[k])
            y[k] += h * z[k]
