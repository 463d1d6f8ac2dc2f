r"""The energy that undamped oscillators conserve while their input is constant.

UnICORNN has the Hamiltonian (3.4) and multi-layer neural oscillators have (4.5). For a layer with
drive :math:`x = V y^{l-1} + b`:

.. math::
    H_{3.4} = \tfrac{\alpha}{2}|y|^2 + \tfrac12 |z|^2 + \sum_i U_i, \quad
    H_{4.5} = \tfrac12 |z|^2 - \sum_i U_i, \quad
    U_i = \int_0^{y_i} \sigma(w_i s + x_i)\, ds

The papers write :math:`U_i = S(w_i y_i + x_i) / w_i` with S an antiderivative of σ (log cosh
for tanh, 1 - cos for sin). Ours is smaller by :math:`S(x_i) / w_i`, which does not depend on the
state, so the equations of motion are the same. A state at rest then has energy 0, and :math:`w_i =
0` gives the limit :math:`U_i = y_i \sigma(x_i)`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import checked_state, checked_step
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator
from anharmonic.nn.sequence.unicornn import UnICORNN


def hamiltonian(
    layer: UnICORNN | MultiLayerNeuralOscillator,
    state: tuple[Tensor, Tensor] | None,
    x_t: Tensor,
) -> Tensor:
    r"""Return the energy of every layer and sample, (3.4) or (4.5), which is zero at rest.

    .. math::
        H = \tfrac{\alpha}{2}|y|^2 + \tfrac12 |z|^2 \pm \sum_i \int_0^{y_i} \sigma(w_i s + x_i)\, ds

    with + for UnICORNN and - (and α = 0) for neural oscillators. The equations conserve the first
    layer's energy while the input is constant. The discrete steps conserve it up to the order of
    their scheme. A layer above takes the position below, from the same state, as its input.

    Args:
        layer: A ``UnICORNN`` or ``MultiLayerNeuralOscillator`` in one direction.
        state: Its state (y, z); None means at rest.
        x_t: The input at this state.

    Shape:
        x_t [B, F] or [F]; energies [L, B] or [L].

    Raises:
        TypeError: If the layer has another type; a full W has no energy of this form.
        ValueError: If the layer is bidirectional, or shapes do not fit.

    Example:
        >>> layer = UnICORNN(2, 3, num_layers=2)
        >>> output, state = layer(torch.ones(5, 4, 2))
        >>> hamiltonian(layer, state, torch.ones(4, 2)).shape
        torch.Size([2, 4])
    """
    _checks.require(
        isinstance(layer, UnICORNN | MultiLayerNeuralOscillator), "layer", layer,
        "a UnICORNN or a MultiLayerNeuralOscillator",
        "take one of these: damped or fully coupled oscillators have no such energy", TypeError,
    )  # fmt: skip
    _checks.require(
        not layer.bidirectional, "layer", layer, "in one direction",
        "make the layer with bidirectional=False",
    )  # fmt: skip
    x_t = checked_step(x_t, layer.input_size, layer._example)
    sizes = getattr(layer, "hidden_sizes", None) or [layer.hidden_size] * layer.num_layers
    shape = (layer.num_layers, *x_t.shape[:-1], max(sizes))
    y, z = checked_state(state, shape, layer._example)
    levels, energies = [x_t], []
    for k, size in enumerate(sizes):
        V, w, b, *others = layer.layer_weights(f"_l{k}")
        drive, y_k, z_k = F.linear(levels[k], V, b), y[k][..., :size], z[k][..., :size]
        if isinstance(layer, UnICORNN):
            _, skip = others
            if skip is not None and layer.skipped_layers is not None:
                drive = drive + F.linear(levels[k - layer.skipped_layers], skip)
            potential = layer.frequency / 2 * y_k.square() + work("tanh", w, drive, y_k)
        else:
            potential = -work(layer.activation, w, drive, y_k)
        energies.append((z_k.square() / 2 + potential).sum(-1))
        levels.append(y_k)
    return torch.stack(energies)


def work(activation: str, w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    r"""The integral of σ(w s + x) over s from 0 to y, without cancellation at small or large w y.

    The tensors broadcast against each other; w may be 0.

    Example:
        >>> w, x, y = torch.tensor([0.0, 1e-30, 1.0]), torch.tensor(0.3), torch.tensor(2.0)
        >>> [round(u, 4) for u in work("tanh", w, x, y).tolist()]
        [0.5826, 0.5826, 1.5725]
    """
    a = w * y
    if activation == "identity":
        return y * (x + a / 2)
    if activation == "sin":  # cos x - cos(x + a) = 2 sin(x + a/2) sin(a/2)
        return y * torch.sin(x + a / 2) * torch.sinc(a / (2 * torch.pi))
    # log cosh(x + a) - log cosh x; near a = 0 as log(cosh a + tanh x sinh a): nothing cancels.
    small = a.abs() < 0.5
    near = torch.where(small, a, torch.zeros_like(a))
    rise = torch.log1p(2 * torch.sinh(near / 2).square()) + torch.log1p(
        torch.tanh(x) * torch.tanh(near)
    )
    rise = torch.where(small, rise, log_cosh(x + a) - log_cosh(x))
    flat = w == 0
    return torch.where(flat, y * torch.tanh(x), rise / torch.where(flat, torch.ones_like(w), w))


def log_cosh(x: Tensor) -> Tensor:
    """The logarithm of cosh x: it overflows nowhere and is exact to rounding near 0.

    Example:
        >>> [f"{u:.4g}" for u in log_cosh(torch.tensor([1e-4, -1000.0])).tolist()]
        ['5e-09', '999.3']
    """
    size = x.abs()
    small = size < 0.5
    near = torch.where(small, size, torch.zeros_like(size))
    far = size + torch.log1p(torch.exp(-2 * size)) - torch.log(torch.full_like(size, 2.0))
    return torch.where(small, torch.log1p(2 * torch.sinh(near / 2).square()), far)
