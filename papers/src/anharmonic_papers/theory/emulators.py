r"""LEM layers with weights that are written down: they emulate systems given as tanh networks.

With gates that do not look at states or inputs, a step of LEM is two layers of tanh in a row, the
second of which may move slowly:

.. math::
    z_n &= (1 - a) \odot z_{n-1} + a \odot \tanh(W_z y_{n-1} + V_z u_n + b_z) \\
    y_n &= (1 - e) \odot y_{n-1} + e \odot \tanh(W_y z_n + V_y u_n + b_y)

A gate is open (equal to 1 in float64) at a bias of 40, and equal to τ at logit(τ). Both states
have the same width in ``LEM``; the narrower one is padded with units that stay zero.

With dt = 1, z = c, y = h, the gate of y open, W_y = I, V_y = 0 and b_y = 0 a LEM is an LSTM, (5.6),

.. math::
    c_n = (1 - i_n) \odot c_{n-1} + i_n \odot \tanh(W h_{n-1} + V u_n + b), \quad h_n = \tanh(c_n),

whose output gate is open and whose forget gate has the negative weights of its input gate. (The
paper names the gates only.)

Reference: T. K. Rusch, Physics-inspired machine learning, doctoral thesis, ETH Zurich, 5.2.
"""

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn import LEM
from anharmonic_papers.theory.networks import TanhNetwork, identity

OPEN = 40.0  # 1 - sigmoid(40) is below the rounding of float64


class Emulator(NamedTuple):
    """A LEM and where the emulated variables are in its states.

    Args:
        layer: One layer, float64, dt = 1.
        slow: For each slow variable, or for φ, the readout of y, [d, H].
        fast: The readout of the fast variable, or φ, from z, [d, H].
    """

    layer: LEM
    slow: tuple[Tensor, ...]
    fast: Tensor


Update = tuple[Tensor, Tensor, Tensor, Tensor]
"""The W, V and b of a state's update, and the biases of its gate."""


def _layer(z: Update, y: Update) -> LEM:
    """The LEM with these weights; z and y may have different widths, what is missing is zero."""
    H = max(len(z[0]), len(y[0]))
    layer = LEM(z[1].shape[1], H, dt=1.0, dtype=torch.float64)
    weights = dict(layer.named_parameters())
    with torch.no_grad():
        for weight in weights.values():
            weight.zero_()
        recurrent = weights["weight_hh_l0"][2 * H :], weights["weight_zh_l0"]
        for k, (W, V, b, gate) in enumerate((z, y)):
            recurrent[k][: len(W), : W.shape[1]] = W
            weights["weight_ih_l0"][(2 + k) * H :][: len(V)] = V
            weights["bias_l0"][(2 + k) * H :][: len(b)] = b
            weights["bias_l0"][k * H :][: len(gate)] = gate
    return layer


def _padded(readout: Tensor, before: int, width: int) -> Tensor:
    """A readout of some units as one of ``width`` units, ``before`` of which come first."""
    return nn.functional.pad(readout, (before, width - before - readout.shape[1]))


def _gate(units: int, value: float = 1.0, name: str = "gate") -> Tensor:
    """Biases of gates that are ``value``."""
    _checks.number(name, value, low=0.0, high=1.0, low_open=True)
    bias = OPEN if value == 1 else math.log(value / (1 - value))
    return torch.full((units,), bias, dtype=torch.float64)


def emulate_system(f: TanhNetwork, *, scale: float) -> Emulator:
    """A LEM that follows φ_n = f(φ_{n-1}, u_n) from φ_0 = 0, theorem 5.2.7.

    For f(h, u) = W_2 tanh(W_1 h + V_1 u + b_1) it has z_n = tanh(W_1 W_2 y_{n-1}/s + V_1 u_n + b_1)
    and y_n = tanh(s z_n), and φ_n is W_2 y_n/s up to an error of order s².
    """
    _arguments("f", f, [len(f.output), f.inputs[-1].shape[1]])
    _checks.number("scale", scale, low=0.0, high=1.0, low_open=True)
    W1, V1 = f.inputs
    same = identity(len(f.bias), scale)
    phi = f.output @ same.output
    gate = _gate(len(f.bias))
    update_z = W1 @ phi, V1, f.bias, gate
    update_y = same.inputs[0], torch.zeros_like(V1), same.bias, gate
    return Emulator(_layer(update_z, update_y), (phi,), f.output)


def emulate_scales(
    fast: TanhNetwork, slow: Sequence[tuple[TanhNetwork, float]], *, scale: float, rate: float = 1.0
) -> Emulator:
    """A LEM that follows a system with r time scales from zero, theorems 5.2.8 (r = 2) and 5.2.9.

    The system is φ_n = f(φ_{n-1}, ψ^2_{n-1}, ..., ψ^r_{n-1}, u_n) and ψ^j_n = (1 - τ_j) ψ^j_{n-1} +
    τ_j G_j(φ_n, ψ^2_{n-1}, ..., ψ^r_{n-1}, u_n); ``slow`` has G_j and τ_j in (0, 1]. A right-hand
    side given as ψ_n = τ g is this with G = g + (1 - 1/τ) ψ, which ``plus_identity`` makes. The
    error is of order s². With a ``rate`` r below 1 φ moves slowly too, (1 - r) φ_{n-1} + r f(...).
    """
    advice = "use emulate_system for one scale"
    _checks.require(len(slow) > 0, "slow", slow, "one network or more", advice)
    _checks.number("scale", scale, low=0.0, high=1.0, low_open=True)
    networks = [network for network, _ in slow]
    sizes = [len(fast.output), *(len(G.output) for G in networks), fast.inputs[-1].shape[1]]
    for name, network in (("fast", fast), *((f"slow[{j}]", G) for j, G in enumerate(networks))):
        _arguments(name, network, sizes)
    d, D = sizes[0], sum(sizes[1:-1])
    m, M = len(fast.bias), sum(len(G.bias) for G in networks)
    H = max(m + D, M + d)
    copy_slow, copy_fast = identity(D, scale), identity(d, scale)
    outputs = torch.block_diag(*(G.output for G in networks))  # type: ignore[no-untyped-call]
    psi = _padded(outputs, 0, H)  # from y
    phi_before = _padded(copy_fast.output, M, H)  # from y
    phi = _padded(fast.output, 0, H)  # from z
    psi_before = _padded(copy_slow.output, m, H)  # from z
    on_psi = torch.cat(fast.inputs[1:-1], 1)
    G_on_phi = torch.cat([G.inputs[0] for G in networks])
    G_on_psi = torch.cat([torch.cat(G.inputs[1:-1], 1) for G in networks])

    update_z = (
        torch.cat([on_psi @ psi + fast.inputs[0] @ phi_before, copy_slow.inputs[0] @ psi]),
        fast.inputs[-1],
        fast.bias,
        torch.cat([_gate(m, rate, "rate"), _gate(D)]),
    )
    update_y = (
        torch.cat([G_on_phi @ phi + G_on_psi @ psi_before, copy_fast.inputs[0] @ phi]),
        torch.cat([G.inputs[-1] for G in networks]),
        torch.cat([G.bias for G in networks]),
        torch.cat([*(_gate(len(G.bias), tau, "tau") for G, tau in slow), _gate(d)]),
    )
    return Emulator(_layer(update_z, update_y), torch.split(psi, sizes[1:-1]), phi)


def emulate_multiscale_method(
    f: TanhNetwork, G: TanhNetwork, *, kappa: float, step: float, scale: float
) -> Emulator:
    """A LEM that follows the heterogeneous multiscale method from zero, theorem 5.2.10.

    K micro steps of size δt make φ_n = κ φ_{n-1} + (1 - κ) f(ψ_{n-1}) with κ = (1 - δt)^K, and then
    ψ_n = ψ_{n-1} + Δ g(φ_n, ψ_{n-1}), G = g + ψ. The gate of z multiplies what is new, so it is
    1 - κ (the text has κ). The layer takes inputs of size 1 that it does not look at.
    """
    _arguments("f", f, [len(G.output)])
    _checks.number("kappa", kappa, low=0.0, high=1.0, high_open=True)
    nothing, unseen = (f.bias.new_zeros(len(f.bias), size) for size in (len(f.output), 1))
    fast = f._replace(inputs=(nothing, *f.inputs, unseen))
    slow = G._replace(inputs=(*G.inputs, G.bias.new_zeros(len(G.bias), 1)))
    return emulate_scales(fast, [(slow, step)], scale=scale, rate=1 - kappa)


def _arguments(name: str, network: TanhNetwork, sizes: list[int]) -> None:
    """Check the sizes of a network's arguments."""
    got = [weight.shape[1] for weight in network.inputs]
    expected = f"a network with arguments of sizes {sizes}"
    advice = "give weights for every argument, zeros where it is not used"
    _checks.require(got == sizes, name, got, expected, advice)


def lstm_from_lem(layer: LEM) -> nn.LSTM:
    """The LSTM that does what a LEM of the form that ``lstm_like`` makes does."""
    blocks = _blocks(layer)
    V_1, V_2, V_z, V_y = blocks["weight_ih_l0"]
    W_1, W_2, W_z = blocks["weight_hh_l0"]
    b_1, b_2, b_z, b_y = blocks["bias_l0"]
    (W_y,) = blocks["weight_zh_l0"]
    zeros = (V_2, W_2, V_y, b_y, W_y - torch.eye(len(W_y)).to(W_y))
    _checks.require(
        not any(part.any() for part in zeros) and bool((b_2 >= OPEN).all()), "layer", repr(layer),
        f"one with W_y = I, V_y = 0 and b_y = 0, whose gate of y has biases of {OPEN:g} or more "
        "alone", "make it with lstm_like",
    )  # fmt: skip
    lstm = nn.LSTM(
        layer.input_size, layer.hidden_size, batch_first=layer.batch_first, dtype=W_y.dtype
    )
    W = dict(lstm.named_parameters())
    with torch.no_grad():
        W["weight_ih_l0"].copy_(torch.cat([V_1, -V_1, V_z, 0 * V_1]))
        W["weight_hh_l0"].copy_(torch.cat([W_1, -W_1, W_z, 0 * W_1]))
        W["bias_ih_l0"].copy_(torch.cat([b_1, -b_1, b_z, b_2]))
        W["bias_hh_l0"].zero_()
    return lstm


def lstm_like(layer: LEM) -> LEM:
    """A LEM with the gate and the update of z of a given one, and the rest as in an LSTM."""
    like = copy.deepcopy(layer)
    blocks = _blocks(like)  # views of the weights
    for name, places in (("weight_ih_l0", (1, 3)), ("weight_hh_l0", (1,)), ("bias_l0", (1, 3))):
        for place in places:
            blocks[name][place].zero_()
    blocks["bias_l0"][1].fill_(OPEN)
    blocks["weight_zh_l0"][0].copy_(torch.eye(layer.hidden_size))
    return like


def _blocks(layer: LEM) -> dict[str, tuple[Tensor, ...]]:
    """Every parameter of a plain layer in blocks of H rows."""
    plain = layer.num_layers == 1 and not layer.bidirectional and layer.bias
    gated = layer.dt == 1 and layer.multiscale and layer.gate_floor is None
    _checks.require(
        plain and gated, "layer", repr(layer),
        "one layer in one direction with dt=1, biases and free learned gates", "pass a plain layer",
    )  # fmt: skip
    return {
        name: torch.split(weight.detach(), layer.hidden_size)
        for name, weight in layer.named_parameters()
    }
