"""Networks with one hidden layer of tanh, the pieces of the constructions.

And the systems made of them that a LEM is to follow, step by step as they are defined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class TanhNetwork(NamedTuple):
    r"""A map with one hidden layer, of one or several arguments.

    .. math::
        f(h_1, \dots, h_r) = W_{out} \tanh(W_1 h_1 + \dots + W_r h_r + b)

    Args:
        output: W_out.
        inputs: W_1, ..., W_r.
        bias: b.

    Shape:
        output [d, m], inputs [m, d_1], ..., [m, d_r], bias [m]; arguments [..., d_k], value
        [..., d].

    Example:
        >>> square_root = TanhNetwork(torch.ones(1, 2), (torch.eye(2),), torch.zeros(2))
        >>> square_root(torch.zeros(5, 2)).shape
        torch.Size([5, 1])
    """

    output: Tensor
    inputs: tuple[Tensor, ...]
    bias: Tensor

    def hidden(self, *arguments: Tensor) -> Tensor:
        """The hidden units."""
        given = zip(self.inputs, arguments, strict=True)
        total = self.bias
        for weight, argument in given:
            total = total + argument @ weight.T
        return torch.tanh(total)

    def __call__(self, *arguments: Tensor) -> Tensor:
        """The value."""
        return self.hidden(*arguments) @ self.output.T


def random_network(size: int, hidden: int, inputs: tuple[int, ...]) -> TanhNetwork:
    """A network with standard normal weights divided by the root of what they sum over."""
    fan_in = math.sqrt(sum(inputs))
    return TanhNetwork(
        torch.randn(size, hidden, dtype=torch.float64) / math.sqrt(hidden),
        tuple(torch.randn(hidden, width, dtype=torch.float64) / fan_in for width in inputs),
        torch.randn(hidden, dtype=torch.float64) / fan_in,
    )


def identity(size: int, scale: float) -> TanhNetwork:
    """The identity as tanh(s h)/s, wrong by s² h³/3."""
    eye = torch.eye(size, dtype=torch.float64)
    return TanhNetwork(eye / scale, (scale * eye,), torch.zeros(size, dtype=torch.float64))


def square(scale: float) -> TanhNetwork:
    r"""The square of a number as a second difference of tanh.

    .. math::
        x^2 \approx \frac{\tanh(\gamma + s x) - 2 \tanh\gamma + \tanh(\gamma - s x)}
        {s^2 \tanh''(\gamma)}

    At tanh γ = 1/√3, where tanh'' is largest, the error is s² x⁴/3, to leading order.
    """
    gamma = math.atanh(1 / math.sqrt(3))
    curvature = -4 / (3 * math.sqrt(3))
    weights = torch.tensor([[1.0, -2.0, 1.0]], dtype=torch.float64) / (scale**2 * curvature)
    inputs = scale * torch.tensor([[1.0], [0.0], [-1.0]], dtype=torch.float64)
    return TanhNetwork(weights, (inputs,), torch.full((3,), gamma, dtype=torch.float64))


def product(scale: float) -> TanhNetwork:
    """The product of two numbers, ((a + b)² - (a - b)²)/4, of the argument (a, b)."""
    one = square(scale)
    (inputs,) = one.inputs
    return TanhNetwork(
        torch.cat([one.output, -one.output], 1) / 4,
        (torch.cat([torch.cat([inputs, inputs], 1), torch.cat([inputs, -inputs], 1)]),),
        one.bias.repeat(2),
    )


def plus_identity(network: TanhNetwork, argument: int, factor: float, scale: float) -> TanhNetwork:
    """Add ``factor`` times one of its arguments to a network, as further hidden units."""
    same = identity(len(network.output), scale)
    zeros = [torch.zeros(len(same.bias), w.shape[1], dtype=w.dtype) for w in network.inputs]
    zeros[argument] = same.inputs[0]
    return TanhNetwork(
        torch.cat([network.output, factor * same.output], 1),
        tuple(torch.cat(pair) for pair in zip(network.inputs, zeros, strict=True)),
        torch.cat([network.bias, same.bias]),
    )


def scales_states(
    fast: TanhNetwork, slow: Sequence[tuple[TanhNetwork, float]], u: Tensor
) -> list[Tensor]:
    """φ_n = f(φ_{n-1}, ψ_{n-1}, u_n) and every ψ^j_n = (1-τ_j) ψ^j_{n-1} + τ_j G_j from zero."""
    phi, *psi = (u.new_zeros(len(f.output)) for f in (fast, *(G for G, _ in slow)))
    found = []
    for x in u:
        phi = fast(phi, *psi, x)
        new = [G(phi, *psi, x) for G, _ in slow]
        psi = [(1 - tau) * p + tau * q for (_, tau), p, q in zip(slow, psi, new, strict=True)]
        found.append((phi, *psi))
    return [torch.stack(one) for one in zip(*found, strict=True)]


def random_rnn(size: int, inputs: int) -> TanhNetwork:
    """A tanh RNN with normal weights as a system: f(h, u) = tanh(W h + V u + b)."""
    return TanhNetwork(
        torch.eye(size, dtype=torch.float64),
        (
            torch.randn(size, size, dtype=torch.float64) / math.sqrt(size),
            torch.randn(size, inputs, dtype=torch.float64),
        ),
        torch.randn(size, dtype=torch.float64),
    )
