r"""What the papers prove about depth and UnICORNN's gradients (T 3.2.4 = U C.4, T (3.84)).

The partial gradient of E_n counts the use of the first layer's w at step k only, and a layer above
passes on :math:`G^q_{rs} = -\hat\sigma(c^{q,r})^2 \tanh'(A^{q,r})\, V^q_{rs}`, taken at step k.

What the checks take, unless they say otherwise:

    layer: A plain stack in one direction, float64, with the same dt in every layer.
    x: One sequence; its last step is n.
    target: The target of the last step.
    state: The initial state; zeros if None.

Shape: x [n, 1, F]; target [1, H]; state [L, 1, H] each; measured and bound [H].
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import UnICORNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.unicornn_energy import largest_step
from anharmonic_papers.theory.bounds.unicornn_long_term import (
    Start,
    measured_partial,
    ready,
    slopes,
    source,
)
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import trajectory, weights


def _passed_down(layer: UnICORNN, x: Tensor, path: Start, target: Tensor, step: int) -> Tensor:
    """Σ_i (G^L···G^2)_ip (y_n^{L,i} - ȳ^i), [H]."""
    error = path[0][-1, -1, 0] - target[0]
    for level in range(layer.num_layers - 1, 0, -1):
        gate = torch.sigmoid(weights(layer, level)["timescale"]).square()
        G = -(gate * slopes(layer, x, path, level)[step - 1])[:, None]
        error = (G * weights(layer, level)["weight_ih"]).T @ error
    return error


@statement(
    "unicornn-long-term-deep-printed",
    number="T 3.2.4 = U C.4",
    chapter="UnICORNN",
    claim=(
        "For L layers ∂E_n^(k)/∂w^{1,p} = dt^(2L-2) σ̂(c) t_n ∂⁺z_k/∂w Σ_i (G^L···G^2)_ip "
        "(y_n^{L,i} - ȳ^i) to leading order."
    ),
    state="false",
    remark=(
        "(3.78) = (74). It keeps one path through the grid of times and layers. At dt = t_n/2000 "
        "it is off by about 7e5 for L = 2 and 1e11 for L = 3. Leading order is taken as a factor "
        "of two."
    ),
    example=lambda: long_term_deep_printed(*ready(2, 0.2, 2000)),
)
def long_term_deep_printed(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: Start | None = None
) -> Check:
    """The partial gradient with respect to the first layer's w against the printed formula.

    Args:
        step: k, counted from 1, at most n.
    """
    power = largest_step(layer) ** (2 * layer.num_layers - 2) * len(x) * largest_step(layer)
    return _small_time(layer, x, target, step, state, power, 0.5)


@statement(
    "unicornn-long-term-deep",
    number="T 3.2.4 = U C.4",
    chapter="UnICORNN",
    claim=(
        "For L layers and small τ = t_n - t_{k-1}, ∂E_n^(k)/∂w^{1,p} = σ̂(c) τ^(2L-1)/(2L-1)! "
        "∂⁺z_k/∂w Σ_i (G^L···G^2)_ip (y_n^{L,i} - ȳ^i) to leading order."
    ),
    state="corrected",
    remark=(
        "The sum over all paths. The relative remainder is held against 2L/(n-k) + (2 + α + max "
        "|w|) τ (1 + τ); at fixed τ the order in dt is one, whatever L."
    ),
    example=lambda: long_term_deep(*ready(3, 0.05, 1000)),
)
def long_term_deep(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: Start | None = None
) -> Check:
    """The partial gradient with respect to the first layer's w against the sum over all paths.

    Args:
        step: k, counted from 1, below n.
    """
    L, alpha = layer.num_layers, layer.frequency
    span = (len(x) - step + 1) * largest_step(layer)
    pull = max(float(weights(layer, level)["weight_hh"].abs().max()) for level in range(L))
    off = 2 * L / max(1, len(x) - step) + (2 + alpha + pull) * span * (1 + span)
    power = span ** (2 * L - 1) / math.factorial(2 * L - 1)
    return _small_time(layer, x, target, step, state, power, off)


def _small_time(
    layer: UnICORNN,
    x: Tensor,
    target: Tensor,
    step: int,
    state: Start | None,
    power: float,
    tolerance: float,
) -> Check:
    measured, path = measured_partial(layer, x, target, step, state), trajectory(layer, x, state)
    passed = _passed_down(layer, x, path, target, step)
    scale = torch.sigmoid(weights(layer)["timescale"])
    return Check(
        measured=measured,
        bound=scale * power * source(layer, x, path, step) * passed,
        relation="==",
        tolerance=tolerance,
        assumptions={
            "no skips": layer.skipped_layers is None,
            "one dt": not isinstance(layer.dt, list),
            "t_n ≤ 0.5": len(x) * largest_step(layer) <= 0.5 + 1e-12,
            "k << n (20 k ≤ n)": 20 * step <= len(x),
        },
        quantity="∂E_n^(k)/∂w of the first layer",
    )


REFINED = (100, 200, 400)
"""Steps per unit of time at which orders in dt are measured."""


def _slope(layer: UnICORNN, claimed: int) -> Check:
    """The order in dt of the first layer's partial gradient at k = 2, t_n = 1, from y = z = 1/2."""
    sizes = []
    for n in REFINED:
        refined = copy.deepcopy(layer)
        refined.dt, refined._steps = 1 / n, [1 / n] * layer.num_layers
        x = torch.zeros(n, 1, layer.input_size, dtype=torch.float64)
        half = x.new_full((layer.num_layers, 1, layer.hidden_size), 0.5)
        found = measured_partial(refined, x, x.new_zeros(1, layer.hidden_size), 2, (half, half))
        sizes.append(found.abs().max())
    slope = float((sizes[0] / sizes[-1]).log2()) / (len(sizes) - 1)
    return Check(
        measured=torch.tensor(slope),
        bound=torch.tensor(float(claimed)),
        relation="==",
        tolerance=0.05,
        axis="",
        quantity="order in dt of ∂E_n^(k)/∂w of the first layer",
    )


def _stack(layers: int, skipped: int | None = None) -> UnICORNN:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return UnICORNN(1, 3, layers, skipped_layers=skipped, dtype=torch.float64)


@statement(
    "unicornn-depth-order-printed",
    number="T (3.78) = U (74)",
    chapter="UnICORNN",
    claim="For L layers ∂E_n^(k)/∂w of the first layer is of the order of dt^(2L-1).",
    state="false",
    remark=(
        "At fixed t_n = 1 measured orders are 1 for every L: depth costs t_n^(2L-1)/(2L-1)! and "
        "the product of the V."
    ),
    example=lambda: depth_order(_stack(3)),
)
def depth_order(layer: UnICORNN) -> Check:
    """The order in dt of the first layer's partial gradient at k = 2 and t_n = 1.

    Args:
        layer: A plain stack in one direction, float64; its own dt plays no part.

    Shape: measured and bound []: the slope in dt and 2L - 1.
    """
    return _slope(layer, 2 * layer.num_layers - 1)


@statement(
    "unicornn-residual-order",
    number="T (3.83), (3.84) = U (79), (80)",
    chapter="UnICORNN",
    claim=(
        "With S skipped layers the order is dt^(2ν + 2L - 2νS - 1), ν = floor(L/S) if S does not "
        "divide L, else L/S - 1."
    ),
    state="open",
    remark=(
        "The argument keeps one path as for plain stacks, and counts jumps of S levels where the "
        "connections span S + 1. At t_n = 1 the measured order is 1, with skips and without "
        "(claimed for L = 7: 5 with S = 3, 13 without)."
    ),
    example=lambda: residual_order(_stack(7, 3)),
)
def residual_order(layer: UnICORNN) -> Check:
    """The order in dt of the first layer's partial gradient at k = 2 and t_n = 1, with skips.

    Args:
        layer: A stack with skipped layers in one direction, float64; its own dt plays no part.

    Shape: measured and bound []: the slope in dt and the claimed one.
    """
    L, S = layer.num_layers, layer.skipped_layers
    if S is None:
        raise ValueError(
            _checks.message(
                "the statement is about residual stacking",
                "skipped_layers=None",
                "pass a stack with skipped_layers",
            )
        )
    jumps = L // S if L % S else L // S - 1
    return _slope(layer, 2 * jumps + 2 * L - 2 * jumps * S - 1)
