"""Networks with one hidden layer of tanh, the pieces of the constructions.

And the systems made of them that a LEM is to follow, step by step as they are defined.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class TanhNetwork(NamedTuple):
    """A map with one hidden layer, f(h_1, ..., h_r) = W_out tanh(W_1 h_1 + ... + W_r h_r + b).

    Args:
        output: W_out [d, m].
        inputs: W_1 [m, d_1], ..., W_r [m, d_r], for arguments [..., d_k].
        bias: b [m].
    """

    output: Tensor
    inputs: tuple[Tensor, ...]
    bias: Tensor

    def __call__(self, *arguments: Tensor) -> Tensor:
        """The value, [..., d]."""
        total = self.bias
        for weight, argument in zip(self.inputs, arguments, strict=True):
            total = total + argument @ weight.T
        return torch.tanh(total) @ self.output.T


def random_network(size: int, hidden: int, inputs: tuple[int, ...]) -> TanhNetwork:
    """A network with standard normal weights divided by the root of what they sum over."""
    output = torch.randn(size, hidden, dtype=torch.float64) / math.sqrt(hidden)
    fan_in = math.sqrt(sum(inputs))
    weights = tuple(torch.randn(hidden, width, dtype=torch.float64) / fan_in for width in inputs)
    return TanhNetwork(output, weights, torch.randn(hidden, dtype=torch.float64) / fan_in)


def identity(size: int, scale: float) -> TanhNetwork:
    """The identity as tanh(s h)/s, wrong by s² h³/3."""
    eye = torch.eye(size, dtype=torch.float64)
    return TanhNetwork(eye / scale, (scale * eye,), torch.zeros(size, dtype=torch.float64))


def square(scale: float) -> TanhNetwork:
    """The square of a number, (tanh(γ + s x) - 2 tanh γ + tanh(γ - s x))/(s² tanh''(γ)).

    At tanh γ = 1/√3, where tanh'' is largest, the error is s² x⁴/3, to leading order.
    """
    gamma = math.atanh(1 / math.sqrt(3))
    curvature = -4 / (3 * math.sqrt(3))
    weights = torch.tensor([[1.0, -2.0, 1.0]], dtype=torch.float64) / (scale**2 * curvature)
    inputs = scale * torch.tensor([[1.0], [0.0], [-1.0]], dtype=torch.float64)
    return TanhNetwork(weights, (inputs,), torch.full((3,), gamma, dtype=torch.float64))


def product(scale: float) -> TanhNetwork:
    """The product of two numbers, ((a + b)² - (a - b)²)/4, of the argument (a, b)."""
    output, (inputs,), bias = square(scale)
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=inputs.dtype)
    outputs = torch.cat([output, -output], 1) / 4
    return TanhNetwork(outputs, (torch.kron(signs, inputs),), bias.repeat(2))


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
    W = torch.randn(size, size, dtype=torch.float64) / math.sqrt(size)
    V, b = torch.randn(size, inputs, dtype=torch.float64), torch.randn(size, dtype=torch.float64)
    return TanhNetwork(torch.eye(size, dtype=torch.float64), (W, V), b)
