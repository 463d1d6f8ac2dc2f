"""What the documents prove about LEM's states and its kinship with the LSTM (thesis, chapter 5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.models.sequence.lem import LEM
from anharmonic.theory.statements import Check, statement
from anharmonic.theory.trajectories import check_single, states, weights

OPEN = 40.0
"""A gate's bias for which σ̂ is 1 in float64."""


def check_gates(layer: LEM) -> None:
    """Checks that a layer is single, with learned gates that are not clipped.

    Raises:
        ValueError: If it is not.
    """
    check_single(layer)
    if not layer.multiscale or layer.gate_floor is not None:
        raise ValueError(
            _checks.message(
                "the statement is about learned gates without a floor",
                f"multiscale={layer.multiscale}, gate_floor={layer.gate_floor}",
                "pass a layer with multiscale=True and gate_floor=None",
            )
        )


def scaled(hidden_size: int, dt: float, scale: float, steps: int) -> tuple[LEM, Tensor]:
    """An example: a layer with a multiple of its usual weights, and inputs in [-1, 1]."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = LEM(2, hidden_size, dt=dt, dtype=torch.float64)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.mul_(scale)
        return layer, 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1


def envelope(steps: int, dt: float) -> Tensor:
    """The min(1, D sqrt(t_n)) of T 5.2.1 for n = 1 to N, D = (1 + dt)/sqrt(2 - dt)."""
    if dt >= 2:
        return torch.ones(steps, dtype=torch.float64)
    n = torch.arange(1, steps + 1, dtype=torch.float64)
    return ((1 + dt) / math.sqrt(2 - dt) * (n * dt).sqrt()).clamp(max=1.0)


@statement(
    "lem-states",
    number="T 5.2.1 = L 4.1",
    chapter="LEM",
    claim="From rest, |z_n^i| and |y_n^i| ≤ min(1, D sqrt(t_n)), D = (1 + dt)/sqrt(2 - dt).",
    state="holds",
    remark="For dt ≤ 1; with dt in (1.5, 2) states above 50 were found. One tuned dt is 1.9.",
    example=lambda: pointwise(*scaled(4, 0.9, 6.0, 100)),
)
def pointwise(layer: LEM, x: Tensor) -> Check:
    """The largest state at every step against its bound.

    Args:
        layer: One layer, one direction, learned gates without a floor, float64.
        x: The inputs.

    Shape:
        x [T, B, F]; measured and bound [T].

    Raises:
        ValueError: If the layer has more than one layer or direction, or other gates.
    """
    check_gates(layer)
    y, z = states(layer, x)
    return Check(
        measured=torch.maximum(y.abs(), z.abs()).amax((1, 2)),
        bound=envelope(len(x), layer.dt),
        assumptions={"dt ≤ 1": layer.dt <= 1},
        quantity="largest |y_n^i|, |z_n^i|",
    )


def lstm(layer: LEM) -> nn.LSTM:
    """The LSTM that equals a LEM of T (5.6): i from the gate of z, f = 1 - i, o = 1.

    Args:
        layer: One layer, one direction, learned gates without a floor.

    Raises:
        ValueError: If the layer has more than one layer or direction, or other gates.

    Example:
        >>> lstm(LEM(2, 3))
        LSTM(2, 3)
    """
    check_gates(layer)
    values, H = weights(layer), layer.hidden_size
    same = nn.LSTM(layer.input_size, H, dtype=values["bias"].dtype)
    given = {"bias_hh_l0": torch.zeros(4 * H)}
    for name, to in (("weight_ih", "weight_ih"), ("weight_hh", "weight_hh"), ("bias", "bias_ih")):
        gate, _, update = values[name][: 3 * H].chunk(3)
        given[f"{to}_l0"] = torch.cat([gate, -gate, update, torch.zeros_like(gate)])
    given["bias_ih_l0"][3 * H :] = OPEN
    same.load_state_dict(given)
    return same


def _like_an_lstm() -> tuple[LEM, Tensor]:
    layer, x = scaled(5, 1.0, 3.0, 50)
    H = layer.hidden_size
    with torch.no_grad():
        for name, value in (("weight_ih", 0.0), ("weight_hh", 0.0), ("bias", OPEN)):
            layer.get_parameter(f"{name}_l0")[H : 2 * H] = value  # e_n = 1
        layer.get_parameter("weight_ih_l0")[3 * H :] = 0.0
        layer.get_parameter("bias_l0")[3 * H :] = 0.0
        layer.get_parameter("weight_zh_l0").copy_(torch.eye(H))  # y_n = tanh(z_n)
    return layer, x


@statement(
    "lem-lstm",
    number="T (5.6)",
    chapter="LEM",
    claim="With e_n = dt = 1, W_y = I, V_y = 0 and b_y = 0, LEM is an LSTM with f = 1 - i, o = 1.",
    state="corrected",
    remark=(
        "The document says c = z, h = y, i_n = a_n, f_n = 1 - a_n, o_n = e_n = 1; equality also "
        "needs W_y = I, V_y = 0, b_y = 0 of LEM and W_f = -W_i, V_f = -V_i, b_f = -b_i."
    ),
    example=lambda: equals_lstm(*_like_an_lstm()),
)
def equals_lstm(layer: LEM, x: Tensor) -> Check:
    """The outputs of a LEM against those of the LSTM made of its weights.

    Args:
        layer: One layer, one direction, learned gates without a floor, float64.
        x: The inputs.

    Shape:
        x [T, B, F]; measured and bound [T, B, H].

    Raises:
        ValueError: If the layer has more than one layer or direction, or other gates.
    """
    same = lstm(layer)
    values, H = weights(layer), layer.hidden_size
    bias, one = values["bias"], torch.eye(H, dtype=x.dtype)
    gate = [values["weight_ih"][H : 2 * H], values["weight_hh"][H : 2 * H]]
    return Check(
        measured=layer(x)[0],
        bound=same(x)[0],
        relation="==",
        assumptions={
            "dt = 1": layer.dt == 1,
            "e_n = 1": all(bool((w == 0).all()) for w in gate)
            and bool((bias[H : 2 * H] >= OPEN).all()),
            "W_y = I": torch.equal(values["weight_zh"], one),
            "V_y = 0, b_y = 0": bool(
                (values["weight_ih"][3 * H :] == 0).all() and (bias[3 * H :] == 0).all()
            ),
        },
        quantity="y_n and h_n",
    )
