r"""Gradients of a state and products of Jacobians, by distance in time.

.. math::
    \frac{\partial \mathcal{L}_N}{\partial X_{N-k}}
    = \frac{\partial \mathcal{L}_N}{\partial X_N} \prod_{n=N-k+1}^{N} \frac{\partial X_n}{\partial
    X_{n-1}}

If these shrink exponentially with k, gradients vanish. If they grow exponentially, gradients
explode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import require
from anharmonic._tensors import at_least_single
from anharmonic.diagnostics.recurrence import Step, check_inputs, check_one, examined, recurrence


def _half_square(output: Tensor) -> Tensor:
    return output.square().sum() / 2


def state_gradients(
    layer: Any, x: Tensor, loss: Callable[[Tensor], Tensor] = _half_square
) -> Tensor:
    r"""Return the 2-norm of the last step's loss gradient in the state k steps before.

    .. math::
        g_k = \Big| \frac{\partial \mathcal{L}_N}{\partial X_{N-k}} \Big|_2, \quad k = 0, \dots, N

    Args:
        layer: A recurrent layer; see ``recurrence``; dropout is off and ``.grad`` is not changed.
        x: The inputs, time first, in the layer's dtype.
        loss: Maps the output of the last step to a number, summed over the sequences (so that every
            sequence has its own gradient). The default is :math:`|o_N|^2/2`.

    Shape:
        x [T, B, F]; the loss takes [B, H]; result [T + 1, B], entry k at distance k.

    Raises:
        TypeError: If it is not a recurrent layer.
        ValueError: If the layer is bidirectional, or x or the loss has the wrong shape.

    Note:
        The function keeps T + 1 states, independent of the layer's memory policy.

    Example:
        >>> from anharmonic import CoRNN
        >>> state_gradients(CoRNN(2, 8), torch.randn(100, 3, 2)).shape
        torch.Size([101, 3])

    References:
        Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, ICML
        2013.
    """
    found = recurrence(layer)
    x = check_inputs(x, found.input_size)
    with examined(found.layer), torch.enable_grad():
        states = found.walk(x, found.start(x.shape[1]).requires_grad_())
        value = loss(found.output(states[-1]))
        fits = isinstance(value, Tensor) and value.numel() == 1
        require(fits, "the result of loss", value, "one number", "sum over the sequences")
        gradients = torch.autograd.grad(value, states, allow_unused=True)
    sizes = [
        state.new_zeros(len(state)) if g is None else g.norm(dim=-1)
        for g, state in zip(gradients, states, strict=True)
    ]
    return torch.stack(sizes[::-1]).detach()


def jacobian(step: Step, state: Tensor, x_t: Tensor) -> Tensor:
    """Return the derivative of a step with respect to its initial state.

    One backward pass computes all rows, with one copy of the state per entry.

    Args:
        step: A map of flat states, for example ``recurrence(layer).step``. Sequences of a batch
            must be independent.
        state: One state.
        x_t: The input of the step.

    Shape:
        state [M]; x_t [F]; result [M, M].

    Example:
        >>> jacobian(lambda state, x: state**2, torch.tensor([1.0, 2.0]), torch.zeros(1))
        tensor([[2., 0.],
                [0., 4.]])
    """
    size = len(state)
    with torch.enable_grad():
        copies = state.detach().expand(size, size).clone().requires_grad_()
        after = step(copies, x_t.detach().expand(size, -1))
        rows = torch.eye(size, dtype=state.dtype, device=state.device)
        (found,) = torch.autograd.grad(after, copies, rows)
    return found.detach()


def jacobian_norms(layer: Any, x: Tensor) -> Tensor:
    r"""Return the spectral norm of the Jacobian over the last k steps, which bounds gradients.

    .. math::
        \Big\| \prod_{n=N-k+1}^{N} \frac{\partial X_n}{\partial X_{n-1}} \Big\|_2,
        \quad k = 0, \dots, N

    Args:
        layer: A recurrent layer; see ``recurrence``.
        x: The inputs of one sequence, in the layer's dtype.

    Shape:
        x [T, 1, F]; result [T + 1]: entry k is over k steps, entry 0 is 1. It is infinite where the
        Jacobian overflows.

    Raises:
        TypeError: If it is not a recurrent layer.
        ValueError: If the layer is bidirectional, or x has the wrong shape or more than one
            sequence.

    Note:
        The cost is T steps of M sequences, and T products and singular values of M x M matrices.

    Example:
        >>> from torch import nn
        >>> jacobian_norms(nn.LSTM(2, 4), torch.randn(20, 1, 2)).shape
        torch.Size([21])
    """
    found = recurrence(layer)
    x = check_one(x, found.input_size)
    with examined(found.layer):
        with torch.no_grad():
            states = found.walk(x)
        wide = at_least_single(states[0])
        product = torch.eye(found.size, dtype=wide.dtype, device=wide.device)
        norms = [product.new_ones(())]
        for state, x_t in zip(states[-2::-1], x.flip(0), strict=True):
            product = product @ jacobian(found.step, state[0], x_t[0]).to(product)
            finite = bool(product.isfinite().all())  # otherwise there are no singular values
            norm = torch.linalg.matrix_norm(product, 2) if finite else product.new_tensor(math.inf)
            norms.append(norm)
    return torch.stack(norms)
