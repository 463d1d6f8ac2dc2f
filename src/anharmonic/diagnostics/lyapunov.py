r"""Largest Lyapunov exponent: the rate per step at which nearby states separate.

.. math::
    \lambda = \lim_{N \to \infty} \frac{1}{N} \log
    \Big| \frac{\partial X_N}{\partial X_0}\, v \Big|

Above 0 the map is chaotic along this trajectory. Below 0 it forgets its initial state. The tangent
v is rescaled to length 1 after every step to avoid overflow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic._checks import require
from anharmonic.diagnostics.gradients import jacobian
from anharmonic.diagnostics.recurrence import Step, check_one, examined, recurrence


def lyapunov_exponent(layer: Any, x: Tensor, *, discard: int = 0, seed: int = 0) -> Tensor:
    r"""Return the largest Lyapunov exponent of a layer along its inputs, in 1 / step.

    Args:
        layer: A recurrent layer; see ``recurrence``; in float64 if the exponent is to be exact.
        x: The inputs of one sequence, in the layer's dtype.
        discard: Initial steps to ignore while state and tangent settle, in [0, T).
        seed: Seed of the tangent's random start.

    Shape:
        x [T, 1, F]; result [T - discard], the mean growth up to each step. The last entry is the
        estimate; the others show its convergence.

    Raises:
        TypeError: If it is not a recurrent layer.
        ValueError: If the layer is bidirectional, x holds more than one sequence, or discard is out
            of range.

    Example:
        >>> from anharmonic import LEM
        >>> layer = LEM(2, 4, dtype=torch.float64)
        >>> x = torch.randn(200, 1, 2, dtype=torch.float64)
        >>> bool(lyapunov_exponent(layer, x, discard=50)[-1] < 0)
        True

    References:
        Benettin, Galgani, Giorgilli and Strelcyn, Lyapunov characteristic exponents for smooth
        dynamical systems, Meccanica 15, 1980. Vogt, Puelma Touzel, Shlizerman and Lajoie, On
        Lyapunov exponents for RNNs, Frontiers in Applied Mathematics and Statistics 8, 2022.
    """
    found = recurrence(layer)
    x = check_one(x, found.input_size)
    with examined(found.layer):
        start = found.start(1)[0]
        return map_lyapunov_exponent(found.step, start, x[:, 0], discard=discard, seed=seed)


def map_lyapunov_exponent(
    step: Step, start: Tensor, inputs: Tensor, *, discard: int = 0, seed: int = 0
) -> Tensor:
    r"""Return the largest Lyapunov exponent of any map from state to state, in 1 / step.

    Args:
        step: Maps batches of states and inputs to the next states; rows must be independent.
        start: The first state.
        inputs: Inputs of the map; F = 0 columns without inputs.
        discard: Initial steps to ignore, in [0, T).
        seed: Seed of the tangent's random start.

    Shape:
        step takes [B, M] and [B, F]; start [M]; inputs [T, F]; result [T - discard], the mean
        growth up to each step.

    Raises:
        ValueError: If shapes do not fit or discard is out of range.

    Example:
        >>> free = torch.empty(1000, 0, dtype=torch.float64)
        >>> start = torch.tensor([0.3], dtype=torch.float64)
        >>> found = map_lyapunov_exponent(lambda x, _: 0.5 * x, start, free)
        >>> round(float(found[-1]), 4)  # log 0.5
        -0.6931
    """
    require(start.dim() == 1, "start", start, "one state, [M]", "pass one state")
    require(inputs.dim() == 2, "inputs", inputs, "one sequence, [T, F]", "pass one sequence")
    whole = isinstance(discard, int) and not isinstance(discard, bool)
    inside = whole and 0 <= discard < len(inputs)
    expected = f"an int in [0, {len(inputs)})"
    require(inside, "discard", discard, expected, "leave steps to average over")
    source = torch.Generator().manual_seed(_checks.natural("seed", seed))
    tangent = torch.randn(len(start), generator=source, dtype=torch.float64).to(start)
    tangent = tangent / tangent.norm()
    state, growth = start.detach(), []
    for x_t in inputs:
        tangent = jacobian(step, state, x_t) @ tangent
        size = tangent.norm()
        growth.append(size.double().log())
        # A tangent of size 0 stays 0; its exponent is minus infinity.
        tangent = tangent / size if size > 0 else tangent
        with torch.no_grad():
            state = step(state[None], x_t[None])[0]
    kept = torch.stack(growth)[discard:]
    return kept.cumsum(0) / torch.arange(1, len(kept) + 1, dtype=torch.float64, device=kept.device)
