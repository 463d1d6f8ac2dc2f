r"""What the papers prove about the structure of UnICORNN (thesis, sections 3.1 and 3.2).

A layer is the symplectic Euler method, with the step sizes :math:`h = dt\,\hat\sigma(c)` of its
neurons, of the Hamiltonian system (3.3) of

.. math::
    H(y, z) = \tfrac{\alpha}{2}|y|^2 + \tfrac12 |z|^2
              + \sum_i \tfrac{1}{w_i} \log\cosh(w_i y_i + (V u + b)_i).

What the checks take, unless they say otherwise:

    layer: One layer, one direction, float64.
    x: The inputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from anharmonic import _checks
from anharmonic.nn import UnICORNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.gradients import jacobians
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import (
    check_one_sequence,
    check_single,
    trajectory,
    weights,
)


def step_sizes(layer: UnICORNN, level: int = 0) -> Tensor:
    """The h = dt σ̂(c) of one layer of a stack, [H]."""
    dt = layer.dt[level] if isinstance(layer.dt, list) else layer.dt
    return dt * torch.sigmoid(weights(layer, level)["timescale"])


def large(layers: int = 1, **words: Any) -> tuple[UnICORNN, Tensor]:
    """An example: three neurons a layer with thrice their usual weights, and large inputs."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = UnICORNN(2, 3, layers, dtype=torch.float64, **words)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.mul_(3.0)
        return layer, 3.0 * torch.randn(60, 1, 2, dtype=torch.float64)


def _log_cosh(a: Tensor) -> Tensor:
    return a.abs() + torch.log1p(torch.exp(-2 * a.abs())) - torch.log(a.new_tensor(2.0))


def _increments(values: Tensor) -> Tensor:
    return values[1:] - values[:-1]


@statement(
    "unicornn-hamiltonian",
    number="T (3.3), (3.4)",
    chapter="UnICORNN",
    claim="z_n - z_{n-1} = -h ∂H/∂y (y_{n-1}) and y_n - y_{n-1} = h ∂H/∂z (z_n).",
    state="holds",
    remark="The equations of the scheme; as h → 0 they are Hamilton's, y' = ∂H/∂z, z' = -∂H/∂y.",
    example=lambda: hamiltonian(*large()),
)
def hamiltonian(layer: UnICORNN, x: Tensor) -> Check:
    """The increments of every step, from rest, against the derivatives of H.

    Shape: x [T, B, F]; measured and bound [2, T, B, H]: z, then y.
    """
    check_single(layer)
    values, h, path = weights(layer), step_sizes(layer), trajectory(layer, x)
    w = values["weight_hh"]
    y, z = path.y[:-1, 0].clone().requires_grad_(), path.z[1:, 0].clone().requires_grad_()
    force = x @ values["weight_ih"].T + values["bias"]
    energy = (
        layer.frequency / 2 * y.square().sum()
        + z.square().sum() / 2
        + (_log_cosh(w * y + force) / w).sum()
    )
    by_y, by_z = torch.autograd.grad(energy, (y, z))
    return Check(
        measured=torch.stack([_increments(path.z[:, 0]), _increments(path.y[:, 0])]),
        bound=torch.stack([-h * by_y, h * by_z]),
        relation="==",
        assumptions={"w has no zeros": bool((w != 0).all())},
        quantity="increments of z and y",
    )


@statement(
    "unicornn-gradient-hamiltonian",
    number="T (3.8), (3.9)",
    chapter="UnICORNN",
    claim=(
        "For θ = w_i, V_ij or b_i the derivatives y_θ, z_θ follow the same scheme with H_θ = "
        "α/2 |y_θ|² + |z_θ|²/2 + Σ tanh'(A_i) w_i (y_θ)_i²/2 + Σ tanh'(A_i) C_i (y_θ)_i, C_i = "
        "y_i, u_j or 1."
    ),
    state="holds",
    example=lambda: gradient_hamiltonian(*_first(large(), 8), parameter="weight_ih"),
)
def gradient_hamiltonian(layer: UnICORNN, x: Tensor, *, parameter: str) -> Check:
    """The increments of the states' derivatives against the derivatives of their Hamiltonian.

    Args:
        x: One sequence.
        parameter: "weight_hh" (w), "weight_ih" (V) or "bias".

    Shape: x [T, 1, F]; measured and bound [2, T, H, F] (F = 1 for w and b): z, then y.
    """
    check_single(layer)
    check_one_sequence(x)
    _checks.choice("parameter", parameter, ("weight_hh", "weight_ih", "bias"))
    path, values, h = trajectory(layer, x), weights(layer), step_sizes(layer)[:, None]
    y, w = path.y[:-1, 0, 0], values["weight_hh"]
    by_z, by_y = (_derivatives(layer, x, parameter, which) for which in ("z", "y"))
    slope = 1 - torch.tanh(w * y + x[:, 0] @ values["weight_ih"].T + values["bias"]).square()
    source = {"weight_hh": y[:, :, None], "weight_ih": x, "bias": x.new_ones(1)}[parameter]
    before, after = by_y[:-1].clone().requires_grad_(), by_z[1:].clone().requires_grad_()
    energy = (
        layer.frequency / 2 * before.square().sum()
        + after.square().sum() / 2
        + (slope[..., None] * (w[:, None] * before.square() / 2 + source * before)).sum()
    )
    force, velocity = torch.autograd.grad(energy, (before, after))
    return Check(
        measured=torch.stack([_increments(by_z), _increments(by_y)]),
        bound=torch.stack([-h * force, h * velocity]),
        relation="==",
        quantity="increments of z_θ and y_θ",
    )


def _first(example: tuple[UnICORNN, Tensor], steps: int) -> tuple[UnICORNN, Tensor]:
    return example[0], example[1][:steps]


def _derivatives(layer: UnICORNN, x: Tensor, parameter: str, which: str) -> Tensor:
    """Derivatives of each neuron's y or z with respect to its own weights, from rest, [T+1, H, F].

    A neuron depends on no other's weights, so those of the sum over neurons are these.
    """
    weight = layer.get_parameter(f"{parameter}_l0").detach().clone().requires_grad_()
    found = [torch.zeros_like(weight)]
    for n in range(1, len(x) + 1):
        given = {f"{parameter}_l0": weight}
        _, state = functional_call(layer, given, (x[:n],), {"output": "none"})
        found.append(torch.autograd.grad(getattr(state, which).sum(), weight)[0])
    return torch.stack(found).reshape(len(found), layer.hidden_size, -1)


@statement(
    "unicornn-volume",
    number="T 3.1",
    chapter="UnICORNN",
    claim="Every step of a stack preserves volume: det ∂(y_n, z_n)/∂(y_{n-1}, z_{n-1}) = 1.",
    state="holds",
    example=lambda: volume(*large(3)),
)
def volume(layer: UnICORNN, x: Tensor) -> Check:
    """The determinant of the Jacobian of every step, from rest.

    Args:
        layer: A stack in one direction, float64.
        x: One sequence.

    Shape: x [T, 1, F]; measured and bound [T].
    """
    found = torch.linalg.det(jacobians(layer, x))
    return Check(found, torch.ones(()), relation="==", quantity="det ∂X_n/∂X_{n-1}")


@statement(
    "unicornn-inverse",
    number="T (3.7) = U (7)",
    chapter="UnICORNN",
    claim="Walking back by (3.7) from the last state rebuilds every state.",
    state="holds",
    remark=(
        "In exact arithmetic; in floating point the error grows with N (held here against 1e-14 N "
        'of the largest state). memory="reversible" walks on a grid, where it is zero.'
    ),
    example=lambda: inverse(*large(3)),
)
def inverse(layer: UnICORNN, x: Tensor) -> Check:
    """The states rebuilt backwards in floating point against those of the way there, from rest.

    Args:
        layer: A stack in one direction.

    Shape: x [T, B, F]; measured and bound [T + 1]: the norm of the error, and zero up to rounding.
    """
    path = trajectory(layer, x)
    y, z = list(path.y[-1].clone()), list(path.z[-1].clone())
    errors = [x.new_zeros(())]
    for n in range(len(x), 0, -1):
        levels = [x[n - 1], *y]  # y^0 is the input; all at time n
        for level in range(layer.num_layers):
            values, h = weights(layer, level), step_sizes(layer, level)
            force = levels[level] @ values["weight_ih"].T + values["bias"]
            if "weight_skip" in values and layer.skipped_layers is not None:
                force = force + levels[level - layer.skipped_layers] @ values["weight_skip"].T
            y[level] = y[level] - h * z[level]
            pull = torch.tanh(values["weight_hh"] * y[level] + force)
            z[level] = z[level] + h * (pull + layer.frequency * y[level])
        off = torch.stack([*y, *z]) - torch.cat([path.y[n - 1], path.z[n - 1]])
        errors.append(off.abs().max())
    largest = max(float(path.y.abs().max()), float(path.z.abs().max()))
    precision = torch.finfo(x.dtype).eps / torch.finfo(torch.float64).eps
    return Check(
        measured=torch.stack(errors).flip(0),
        bound=torch.tensor(1e-14 * precision * len(x) * largest),
        quantity="largest error of a rebuilt state",
    )


@statement(
    "unicornn-memory",
    number="T 3.1 = U 3",
    chapter="UnICORNN",
    claim="Backpropagation with the inverse takes memory O(N b d + L b m).",
    state="holds",
    remark=(
        'Measured is what a forward pass with memory="reversible" keeps besides the weights, in '
        "numbers, against N b d + 12 L b m: the input, and states of the ends. The backward pass "
        "adds a chunk of time; peaks of whole training steps are in the benchmarks."
    ),
    example=lambda: memory(
        UnICORNN(2, 8, 3, memory="reversible"), torch.zeros(500, 4, 2), lengths=(50, 100, 200, 500)
    ),
)
def memory(layer: UnICORNN, x: Tensor, *, lengths: tuple[int, ...]) -> Check:
    """What is kept for the backward pass against the length of the sequences.

    Args:
        layer: A stack in one direction; only with memory="reversible" it keeps what is promised.
        lengths: How many steps of them are run.

    Shape: x [T, B, F]; measured and bound [len(lengths)].
    """
    own = {p.untyped_storage().data_ptr() for p in layer.state_dict().values()}
    ends = 12 * layer.num_layers * x.shape[1] * layer.hidden_size
    found, bounds = [], []
    for length in lengths:
        kept: dict[int, int] = {}

        def keep(saved: Tensor, kept: dict[int, int] = kept) -> Tensor:
            place = saved.untyped_storage().data_ptr()
            if place not in own:
                kept[place] = saved.untyped_storage().nbytes()
            return saved

        part = x[:length].clone()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
            _, state = layer(part, output="none")
        found.append(sum(kept.values()) / x.element_size())
        bounds.append(float(part.numel() + ends))
        del state
    return Check(
        measured=torch.tensor(found),
        bound=torch.tensor(bounds),
        assumptions={'memory="reversible"': layer.memory == "reversible"},
        places=torch.tensor(lengths),
        axis="steps N",
        quantity="numbers kept",
    )
