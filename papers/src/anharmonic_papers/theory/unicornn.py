r"""UnICORNN (thesis, chapter 3; U): structure, states, gradients, long-term gradients and depth.

A layer is the symplectic Euler method, with step sizes h = dt σ̂(c) of its neurons, of the
Hamiltonian system (3.3) of H(y, z) = α/2 |y|² + |z|²/2 + Σ_i log cosh(w_i y_i + (V u + b)_i)/w_i.

**Gradients.** E is the mean of E_n over all N steps, T = N dt, Ȳ the largest entry of the targets,
θ any entry of w, V, b and c. With β = max(1 + 2α, 4α²), g = max(2, ‖w‖∞ + α), γ = g + g²/2, V̄ the
product of max(1, ‖V‖∞) over the layers and F = sqrt((2/α)(1 + 2βT)), the papers have |∂E/∂θ| ≤
(1 - dt^L)/(1 - dt) T (1 + 2γT) V̄ (Ȳ + F) Δ, Δ = 2 + sqrt(2 (1 + 2βT)) + (2 + α) F.

For one layer, where a weight touches its own neuron only, ours goes with the scheme itself. With
the bounds Y_n and Z_n of ``unicornn-states`` and h' = 1 - σ̂(c), from zero,
b_n = b_{n-1} + h [(|w| + α) a_{n-1} + s_n] and a_n = a_{n-1} + h (b_n + r_n) bound |∂z_n/∂θ| and
|∂y_n/∂θ|: s_n = max(1, Y_{n-1}) and r_n = 0 for w, V and b, s_n = h' (1 + α Y_{n-1}) and
r_n = h' Z_n for c.

**Long-term gradients.** The partial gradient of E_n counts the use of the first layer's w at step k
only. Its source is ∂⁺z_k/∂w_p = -h_p tanh'(A_{k-1}^p) y_{k-1}^p, and a layer above passes on
G^q_rs = -σ̂(c^{q,r})² tanh'(A^{q,r}) V^q_rs, taken at step k.

Arguments: layer, a stack in one direction, float64, of one layer unless depth is the subject; x
[T, B, F], or one sequence [N, 1, F]; targets [N, 1, H], target [1, H] of the last step; step, k,
counted from 1; state, the initial one.
"""

import copy
import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad

from anharmonic import _checks
from anharmonic.nn import UnICORNN
from anharmonic_papers.theory.integrate import derivatives
from anharmonic_papers.theory.layers import (
    check_one_sequence,
    check_single,
    jacobians,
    largest,
    partial_gradient,
    passed_on,
    row_sum,
    seeded,
    set_weights,
    small_inputs,
    step_numbers,
    total_gradient,
    trajectory,
    weights,
)
from anharmonic_papers.theory.statements import Case, Check, statement

claim = partial(statement, chapter="UnICORNN")
of_formula = partial(claim, relation="==")
of_gradient = partial(claim, quantity="largest |∂E/∂θ|")

State = tuple[Tensor, Tensor]


def step_sizes(layer: UnICORNN, level: int | None = None) -> Tensor:
    """The h = dt σ̂(c) of one layer of a stack, [H]; without a level of a single layer."""
    dt: float = layer._steps[level or 0]
    return dt * torch.sigmoid(weights(layer, level)["timescale"])


def all_step_sizes(layer: UnICORNN) -> Tensor:
    """The h of all layers, [L, 1, H]."""
    return torch.stack([step_sizes(layer, level) for level in range(layer.num_layers)])[:, None]


def largest_step(layer: UnICORNN) -> float:
    """The dt of a layer, the largest of a stack's."""
    return float(max(layer._steps))


@seeded()
def large(layers: int = 1, steps: int = 60, **options: Any) -> Case:
    """An example: three neurons a layer with thrice their usual weights, and large inputs."""
    layer = UnICORNN(2, 3, layers, dtype=torch.float64, **options)
    for weight in layer.parameters():
        weight.mul_(3.0)
    return layer, 3.0 * torch.randn(60, 1, 2, dtype=torch.float64)[:steps]


def one_neuron(dt: float, V: float, w: float) -> UnICORNN:
    """A neuron of an example with α = 1, no bias and h = dt."""
    layer = UnICORNN(1, 1, dt=dt, frequency=1.0, dtype=torch.float64)
    set_weights(layer, weight_ih=V, weight_hh=w, bias=0.0, timescale=40.0)
    return layer


# Structure


@of_formula("T (3.3), (3.4)", "holds", large, "increments of z and y")
def unicornn_hamiltonian(layer: UnICORNN, x: Tensor) -> Check:
    """z_n - z_{n-1} = -h ∂H/∂y (y_{n-1}) and y_n - y_{n-1} = h ∂H/∂z (z_n).

    These are the equations of the scheme. As h → 0 they become Hamilton's equations, y' = ∂H/∂z and
    z' = -∂H/∂y.
    """
    values, h, path = weights(layer), step_sizes(layer), trajectory(layer, x)
    w = values["weight_hh"]

    def energy(y: Tensor, z: Tensor) -> Tensor:
        a = w * y + x @ values["weight_ih"].T + values["bias"]
        log_cosh = torch.logaddexp(a, -a)  # plus a constant
        return layer.frequency / 2 * y.square().sum() + (z.square() / 2 + log_cosh / w).sum()

    by_y, by_z = grad(energy, (0, 1))(path.y[:-1, 0], path.z[1:, 0])
    return Check(
        torch.stack([path.z[:, 0].diff(dim=0), path.y[:, 0].diff(dim=0)]),
        torch.stack([-h * by_y, h * by_z]),
        {"w has no zeros": bool((w != 0).all())},
    )


@of_formula(
    "T (3.8), (3.9)", "holds", lambda: (*large(steps=8), "weight_ih"), "increments of z_θ and y_θ"
)
def unicornn_gradient_hamiltonian(layer: UnICORNN, x: Tensor, parameter: str) -> Check:
    """For θ = w_i, V_ij or b_i the derivatives y_θ, z_θ follow the same scheme with H_θ = α/2
    |y_θ|² + |z_θ|²/2 + Σ tanh'(A_i) w_i (y_θ)_i²/2 + Σ tanh'(A_i) C_i (y_θ)_i, C_i = y_i, u_j or 1.
    """
    h = step_sizes(layer)[:, None]
    check_one_sequence(x)
    _checks.choice("parameter", parameter, ("weight_hh", "weight_ih", "bias"))
    name, path = f"{parameter}_l0", trajectory(layer, x)
    y, w = path.y[:-1, 0, :, :].mT, weights(layer)["weight_hh"][:, None]
    slope = slopes(layer, x, path, 0)[..., None]
    source = {"weight_hh": y, "weight_ih": x, "bias": x.new_ones(1)}[parameter]

    def sums(weight: Tensor) -> Tensor:
        # A neuron depends on no other's weights, so that the sum over neurons is enough.
        runs = [functional_call(layer, {name: weight}, (x[:n],)) for n in range(1, len(x) + 1)]
        return torch.stack([part.sum() for _, state in runs for part in state])

    def energy(y: Tensor, z: Tensor) -> Tensor:
        forced = slope * (w * y.square() / 2 + source * y)
        return (layer.frequency / 2 * y.square() + z.square() / 2 + forced).sum()

    found = derivatives.jacobian(sums, layer.get_parameter(name))
    found = found.reshape(len(x), 2, layer.hidden_size, -1)
    by_y, by_z = torch.cat([0 * found[:1], found]).unbind(1)  # from rest
    force, velocity = grad(energy, (0, 1))(by_y[:-1], by_z[1:])
    return Check(
        torch.stack([by_z.diff(dim=0), by_y.diff(dim=0)]), torch.stack([-h * force, h * velocity])
    )


@of_formula("T 3.1", "holds", lambda: large(3), "det ∂X_n/∂X_{n-1}")
def unicornn_volume(layer: UnICORNN, x: Tensor) -> Check:
    """Every step of a stack preserves volume: det ∂(y_n, z_n)/∂(y_{n-1}, z_{n-1}) = 1."""
    return Check(torch.linalg.det(jacobians(layer, x)), torch.ones(()))


@claim("T (3.7) = U (7)", "holds", lambda: large(3), "largest error of a rebuilt state")
def unicornn_inverse(layer: UnICORNN, x: Tensor) -> Check:
    """Walking back by (3.7) from the last state rebuilds every state.

    It holds in exact arithmetic. In floating point the error grows with N and is compared with
    1e-14 N of the largest state. memory="reversible" uses a grid, on which the error is zero.
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
    return Check(torch.stack(errors).flip(0), torch.tensor(1e-14 * precision * len(x) * largest))


@claim(
    "T 3.1 = U 3",
    "holds",
    lambda: (UnICORNN(2, 8, 3, memory="reversible"), torch.zeros(500, 4, 2), (50, 100, 200, 500)),
    "numbers kept",
    axis="steps N",
)
def unicornn_memory(layer: UnICORNN, x: Tensor, lengths: tuple[int, ...]) -> Check:
    """Backpropagation with the inverse takes memory O(N b d + L b m).

    We count the numbers that a forward pass with memory="reversible" keeps besides the weights: the
    input, and the states at the ends. They are compared with N b d + 12 L b m. The backward pass
    adds a chunk of time. The benchmarks have the peaks of whole training steps.
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
    met = {'memory="reversible"': layer.memory == "reversible"}
    return Check(torch.tensor(found), torch.tensor(bounds), met, torch.tensor(lengths))


# States


def resonance(steps: int = 1200, dt: float = 0.05) -> Case:
    """The counterexample: α = 1, h = dt, w = 0, a square wave that saturates tanh."""
    times = dt * torch.arange(steps, dtype=torch.float64)
    return one_neuron(dt, V=1.0, w=0.0), 20.0 * torch.sin(times).sign()[:, None, None]


def beta(alpha: float) -> float:
    """The β of the papers."""
    return max(1 + 2 * alpha, 4 * alpha**2)


@claim("T 3.2.1 = U C.1", "false", resonance, "larger of |y| and |z|, each over its bound")
def unicornn_states_printed(layer: UnICORNN, x: Tensor) -> Check:
    """For α > 0 and β = max(1 + 2α, 4α²), |y_n^i| ≤ sqrt((2/α)(1 + 2β t_n)) and |z_n^i| ≤ sqrt(2 (1
    + 2β t_n)) in every layer.

    The proof uses (1 + β dt)^n ≤ 1 + 2β t_n, which holds only up to β t_n of about 1.256.
    Counterexample: a square wave at resonance has ratios to the bound of 0.69, 1.23 and 2.24 at t =
    20, 60 and 200. The tuned models have N dt from 44 to 617 and β up to 3757.
    """
    alpha, path = layer.frequency, trajectory(layer, x)
    growth = (2 * (1 + 2 * beta(alpha) * (largest_step(layer) * step_numbers(x)))).sqrt()
    y, z = (values[1:].abs().flatten(1).amax(1) for values in path)
    found = torch.maximum(math.sqrt(alpha) * y, z) / growth
    return Check(found, torch.ones(()), {"α > 0": alpha > 0})


def stable(layer: UnICORNN) -> dict[str, bool]:
    """What every bound of the states asks for."""
    step = float(all_step_sizes(layer).max())
    return {"h sqrt(α) < 2": step * math.sqrt(layer.frequency) < 2}


def state_bounds(layer: UnICORNN, steps: int) -> tuple[Tensor, Tensor]:
    """What |y| and |z| are at most after 0 to N steps from rest, [N + 1, L, 1, H]."""
    n = torch.arange(steps + 1, dtype=torch.float64)[:, None, None, None]
    h = all_step_sizes(layer)
    if layer.frequency == 0:
        return h.square() * n * (n + 1) / 2, n * h
    root = math.sqrt(layer.frequency)
    z = n * h / (1 - h * root / 2).sqrt()
    return z / root, z


def scaled_energy(layer: UnICORNN, y: Tensor, z: Tensor) -> Tensor:
    """(α y² + z²)(1 - h sqrt(α)/2)/h² of each neuron, [T + 1, L, B, H] -> [T], the largest."""
    alpha, h = layer.frequency, all_step_sizes(layer)
    energy = (alpha * y.square() + z.square()) * (1 - h * math.sqrt(alpha) / 2) / h.square()
    return energy[1:].flatten(1).amax(1)


@claim("T 3.2.1 = U C.1", "corrected", resonance, "(α y² + z²)(1 - h sqrt(α)/2)/h²")
def unicornn_states(layer: UnICORNN, x: Tensor) -> Check:
    """α (y_n^i)² + (z_n^i)² ≤ (n h_i)²/(1 - h_i sqrt(α)/2) in every layer.

    It holds for all n. Without force α y² - h α y z + z² is conserved, and a force changes its root
    by at most h. The bound is linear in n, where the printed one has sqrt(n).
    """
    found = scaled_energy(layer, *trajectory(layer, x))
    return Check(found, step_numbers(x).square(), stable(layer))


def pushed_free() -> Case:
    """Neurons without restoring force that their input pushes one way."""
    layer, x = resonance(100, 0.01)
    layer.frequency = 0.0
    return layer, torch.full_like(x, 20.0)


@claim("T 3.2.1 = U C.1", "corrected", pushed_free, "larger of |y| and |z|, each over its bound")
def unicornn_states_free(layer: UnICORNN, x: Tensor) -> Check:
    """For α = 0, |z_n^i| ≤ n h_i and |y_n^i| ≤ h_i² n(n+1)/2 in every layer.

    The printed statement leaves out α = 0, which is the tuned value for EigenWorms.
    """
    bounds = torch.stack(state_bounds(layer, len(x)))[:, 1:]
    shares = torch.stack(trajectory(layer, x))[:, 1:].abs() / bounds
    return Check(shares.amax((0, 2, 3, 4)), torch.ones(()), {"α = 0": layer.frequency == 0})


@claim(
    "T 3.2, after 3.2.1",
    "corrected",
    lambda: (*(case := resonance()), -case[1]),
    "(α Δy² + Δz²)(1 - h sqrt(α)/2)/h²",
)
def unicornn_sensitivity(layer: UnICORNN, x: Tensor, other: Tensor) -> Check:
    """Two inputs: α Δy² + Δz² ≤ (2 n h)²/(1 - h sqrt(α)/2) for each neuron: no chaos.

    The papers say that it follows as 3.2.1 does. This is the form that holds.
    """
    one, two = trajectory(layer, x), trajectory(layer, other)
    found = scaled_energy(layer, one.y - two.y, one.z - two.z)
    return Check(found, 4 * step_numbers(x).square(), stable(layer))


# Gradients


def gamma(layer: UnICORNN) -> float:
    """The γ of the papers."""
    top = weights(layer, layer.num_layers - 1)["weight_hh"]
    g = max(2.0, float(top.abs().max()) + layer.frequency)
    return g + g * g / 2


def printed_bound(layer: UnICORNN, x: Tensor, targets: Tensor, met: dict[str, bool]) -> Check:
    """The largest entry of the gradient against the printed bound."""
    alpha, dt, L = layer.frequency, largest_step(layer), layer.num_layers
    span = len(x) * dt
    room = beta(alpha) * span
    F = math.sqrt(2 / alpha * (1 + 2 * room)) if alpha > 0 else math.inf
    delta = 2 + math.sqrt(2 * (1 + 2 * room)) + (2 + alpha) * F
    size = math.prod(max(1.0, float(row_sum(weights(layer, k)["weight_ih"]))) for k in range(L))
    layers = sum(dt**k for k in range(L))  # (1 - dt^L)/(1 - dt)
    reach = float(targets.abs().max()) + F
    bound = layers * span * (1 + 2 * gamma(layer) * span) * size * reach * delta
    met = {"α > 0": alpha > 0} | small_inputs(x) | met
    return Check(largest(total_gradient(layer, x, targets)), torch.tensor(bound), met)


def two_wells(steps: int) -> Case:
    """A neuron at rest between two wells, w = -9, that its target pulls away from there."""
    x = torch.zeros(steps, 1, 1, dtype=torch.float64)
    return one_neuron(1e-3, V=0.0, w=-9.0), x, torch.full_like(x, 1000.0)


@of_gradient("T 3.2.2 = U 3.1 = U C.2", "false", lambda: two_wells(7000))
def unicornn_gradient_printed(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """|∂E/∂θ| ≤ (1 - dt^L)/(1 - dt) T (1 + 2γT) V̄ (Ȳ + F) Δ, so gradients grow like T³ at most.

    The expansion (1 + γ dt)^n ≤ 1 + 2γ t_n fails for long times. Counterexample: one neuron at rest
    with w = -9, α = 1 and T = 7, whose derivatives grow exponentially. Δ is that of U's main text.
    Equation (15) of its supplement lacks the factor 2 under the first root.
    """
    check_single(layer)
    return printed_bound(layer, x, targets, {})


@of_gradient("T 3.2.2 = U 3.1 = U C.2", "corrected", lambda: two_wells(1500))
def unicornn_gradient(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """For one layer, from rest and |u| ≤ 1, |∂E/∂θ| is for w, V and b at most the mean of (Y_n + Ȳ)
    a_n with Y_n = n h/sqrt(α (1 - h sqrt(α)/2)), a_n = a_{n-1} + h b_n, b_n = b_{n-1} + h [(|w| +
    α) a_{n-1} + max(1, Y_{n-1})]; likewise for c.

    This bound is ours and holds for all times. It follows the scheme itself instead of an
    expansion, and uses the state bound that holds. It grows exponentially with T sqrt(|w| + α), as
    does the gradient at the counterexample.
    """
    alpha, values, h = layer.frequency, weights(layer), step_sizes(layer)
    slow = 1 - torch.sigmoid(values["timescale"])
    y, z = (bound[:, 0, 0] for bound in state_bounds(layer, len(x)))
    pull = values["weight_hh"].abs() + alpha
    by_weights = passed_on(y[:-1].clamp(min=1.0), h, 1.0, pull)
    by_c = passed_on(slow * (1 + alpha * y[:-1]), h, 1.0, pull, moved=slow * z[1:])
    bound = ((y[1:] + targets.abs().max()) * torch.stack([by_weights, by_c])).mean(1).max()
    return Check(largest(total_gradient(layer, x, targets)), bound, stable(layer) | small_inputs(x))


def short_run() -> Case:
    """Three layers and a small dt."""
    layer, x = large(3, dt=0.002)
    return layer, x.clamp(-1, 1), torch.ones(60, 1, 3, dtype=x.dtype)


@of_gradient("T 3.2.2 = U 3.1 = U C.2", "open", short_run)
def unicornn_gradient_deep(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """For several layers and max(γ, β) T ≤ 1.256 the printed bound holds.

    The proof follows one path through the grid of times and layers. But the derivative is the sum
    over all monotone paths. The statement is not proved, and we found no violation.
    """
    # (1 + a dt)^n ≤ 1 + 2 a t_n has to hold for the two rates of the proof.
    rate = max(gamma(layer), beta(layer.frequency)) * (len(x) * largest_step(layer))
    return printed_bound(layer, x, targets, {"max(γ, β) T ≤ 1.256": rate <= 1.256})


# Long-term gradients


def slopes(layer: UnICORNN, x: Tensor, path: State, level: int) -> Tensor:
    """The tanh'(A) of one layer of a plain stack at every step, [T, H]."""
    values = weights(layer, level)
    below = x[:, 0] if level == 0 else path[0][1:, level - 1, 0]
    force = below @ values["weight_ih"].T + values["bias"]
    return 1 - torch.tanh(values["weight_hh"] * path[0][:-1, level, 0] + force).square()


def source(layer: UnICORNN, x: Tensor, path: State, step: int) -> Tensor:
    """The ∂⁺z_k/∂w of the first layer, [H]."""
    return -step_sizes(layer, 0) * slopes(layer, x, path, 0)[step - 1] * path[0][step - 1, 0, 0]


@seeded()
def ready(layers: int, span: float, steps: int) -> Case:
    """An example: three neurons a layer, α = 1, from random positions, k = 2, t_n = span."""
    layer = UnICORNN(2, 3, layers, dt=span / steps, dtype=torch.float64)
    for level in range(1, layers):
        layer.get_parameter(f"weight_ih_l{level}").mul_(3.0)
    y = torch.randn(layers, 1, 3, dtype=torch.float64)
    x = torch.zeros(steps, 1, 2, dtype=torch.float64)
    return layer, x, torch.ones(1, 3, dtype=x.dtype), 2, (y, torch.zeros_like(y))


@of_formula("T 3.2.3 = U 3.2 = U C.3", "false", lambda: ready(1, 10.0, 2000), "∂E_n^(k)/∂w")
def unicornn_long_term_printed(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: State | None = None
) -> Check:
    """∂E_n^(k)/∂w_p = -dt σ̂(c_p)² t_n tanh'(A_{k-1}^p) y_{k-1}^p (y_n^p - ȳ_n^p) + O(dt²), one
    layer.

    It replaces Π(I + dt C_j) by I + dt ΣC_j, which needs small t_n. The remainder is compared with
    100 dt times the formula. At w = 0.9, α = 2, k = 2 and dt = 1e-3 the exact value divided by the
    formula is 0.98, 0.99, 0.88, 0.22 and 0.09 at t_n = 0.05, 0.2, 1, 3 and 10.
    """
    check_single(layer)
    found = partial_gradient(layer, x, target, step, state)["weight_hh_l0"]
    path = trajectory(layer, x, state)
    error = path.y[-1, 0, 0] - target[0]
    formula = len(x) * step_sizes(layer) * source(layer, x, path, step) * error
    met = {"k << n (20 k ≤ n)": 20 * step <= len(x)}
    return Check(found, formula, met, tolerance=100 * largest_step(layer))


@of_formula("T 3.2.3 = U 3.2 = U C.3", "corrected", lambda: ready(1, 10.0, 500), "∂E_n^(k)/∂w")
def unicornn_long_term(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: State | None = None
) -> Check:
    """∂E_n^(k)/∂w_p = P_p ∂⁺z_k/∂w_p (y_n^p - ȳ_n^p), P_p the entry (y, z) of the product of the
    Jacobians of steps k to n of neuron p, one layer.

    It is exact up to the rounding of 1 - tanh². P_p is an entry of a product of 2 × 2 matrices with
    determinant 1, near h sin(ω τ)/ω. Where the neuron oscillates, it is bounded in t_n. There the
    gradient neither grows with t_n nor vanishes with n - k.
    """
    h, w = step_sizes(layer), weights(layer)["weight_hh"]
    found = partial_gradient(layer, x, target, step, state)["weight_hh_l0"]
    path = trajectory(layer, x, state)
    pulls = slopes(layer, x, path, 0) * w + layer.frequency
    y, z = h, torch.ones_like(h)  # what a unit of z_k moves, in y_k and z_k
    for pull in pulls[step:]:
        z = z - h * pull * y
        y = y + h * z
    return Check(found, y * source(layer, x, path, step) * (path.y[-1, 0, 0] - target[0]))


# Depth


def small_time(case: Case, power: float, tolerance: float) -> Check:
    """The partial gradient against σ̂(c) power ∂⁺z_k/∂w Σ_i (G^L···G^2)_ip (y_n^{L,i} - ȳ^i)."""
    layer, x, target, step, state = case
    found, path = partial_gradient(*case)["weight_hh_l0"], trajectory(layer, x, state)
    passed = path.y[-1, -1, 0] - target[0]
    for level in range(layer.num_layers - 1, 0, -1):
        gate = torch.sigmoid(weights(layer, level)["timescale"]).square()
        G = -(gate * slopes(layer, x, path, level)[step - 1])[:, None]
        passed = (G * weights(layer, level)["weight_ih"]).T @ passed
    scale = torch.sigmoid(weights(layer, 0)["timescale"])
    met = {
        "no skips": layer.skipped_layers is None,
        "one dt": not isinstance(layer.dt, list),
        "t_n ≤ 0.5": len(x) * largest_step(layer) <= 0.5 + 1e-12,
        "k << n (20 k ≤ n)": 20 * step <= len(x),
    }
    formula = scale * power * source(layer, x, path, step) * passed
    return Check(found, formula, met, tolerance=tolerance)


@of_formula(
    "T 3.2.4 = U C.4", "false", lambda: ready(2, 0.2, 2000), "∂E_n^(k)/∂w of the first layer"
)
def unicornn_long_term_deep_printed(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: State | None = None
) -> Check:
    """For L layers ∂E_n^(k)/∂w^{1,p} = dt^(2L-2) σ̂(c) t_n ∂⁺z_k/∂w Σ_i (G^L···G^2)_ip (y_n^{L,i} -
    ȳ^i) to leading order.

    This is (3.78) = (74). It keeps one path through the grid of times and layers. At dt = t_n/2000
    it is wrong by a factor of about 7e5 for L = 2 and 1e11 for L = 3. "To leading order" means up
    to a factor of two.
    """
    power = len(x) * largest_step(layer) ** (2 * layer.num_layers - 1)
    return small_time((layer, x, target, step, state), power, 0.5)


@of_formula(
    "T 3.2.4 = U C.4", "corrected", lambda: ready(3, 0.05, 1000), "∂E_n^(k)/∂w of the first layer"
)
def unicornn_long_term_deep(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: State | None = None
) -> Check:
    """For L layers and small τ = t_n - t_{k-1}, ∂E_n^(k)/∂w^{1,p} = σ̂(c) τ^(2L-1)/(2L-1)! ∂⁺z_k/∂w
    Σ_i (G^L···G^2)_ip (y_n^{L,i} - ȳ^i) to leading order.

    It is the sum over all paths. The relative remainder is compared with 2L/(n-k) + (2 + α + max
    |w|) τ (1 + τ). At fixed τ the order in dt is one for every L.
    """
    L, alpha = layer.num_layers, layer.frequency
    span = (len(x) - step + 1) * largest_step(layer)
    pull = max(float(weights(layer, level)["weight_hh"].abs().max()) for level in range(L))
    off = 2 * L / max(1, len(x) - step) + (2 + alpha + pull) * span * (1 + span)
    power = span ** (2 * L - 1) / math.factorial(2 * L - 1)
    return small_time((layer, x, target, step, state), power, off)


def order(layer: UnICORNN, claimed: int) -> Check:
    """The order in dt of the first layer's partial gradient at k = 2, t_n = 1, from y = z = 1/2."""
    sizes = []
    for n in (100, 400):
        refined = copy.deepcopy(layer)
        refined.dt = 1 / n
        x = torch.zeros(n, 1, layer.input_size, dtype=torch.float64)
        half = x.new_full((layer.num_layers, 1, layer.hidden_size), 0.5)
        found = partial_gradient(refined, x, 0 * half[-1], 2, (half, half))["weight_hh_l0"]
        sizes.append(found.abs().max())
    return Check((sizes[0] / sizes[1]).log2() / 2, torch.tensor(float(claimed)))


@seeded()
def stack(layers: int, skipped: int | None = None) -> Case:
    """Three neurons a layer."""
    return (UnICORNN(1, 3, layers, skipped_layers=skipped, dtype=torch.float64),)


of_order = partial(
    of_formula, tolerance=0.05, axis="", quantity="order in dt of ∂E_n^(k)/∂w of the first layer"
)


@of_order("T (3.78) = U (74)", "false", lambda: stack(3))
def unicornn_depth_order_printed(layer: UnICORNN) -> Check:
    """For L layers ∂E_n^(k)/∂w of the first layer is of the order of dt^(2L-1).

    At fixed t_n = 1 the measured order is 1 for every L. Depth costs the factor t_n^(2L-1)/(2L-1)!
    and the product of the V.
    """
    return order(layer, 2 * layer.num_layers - 1)


@of_order("T (3.83), (3.84) = U (79), (80)", "open", lambda: stack(7, 3))
def unicornn_residual_order(layer: UnICORNN) -> Check:
    """With S skipped layers the order is dt^(2ν + 2L - 2νS - 1), ν = floor(L/S) if S does not
    divide L, else L/S - 1.

    The argument keeps one path, as for plain stacks. It counts jumps of S levels, but the
    connections span S + 1. At t_n = 1 the measured order is 1, with skips and without. For L = 7
    the claim is 5 with S = 3, and 13 without skips.
    """
    L, S = layer.num_layers, layer.skipped_layers or 0
    _checks.require(S > 0, "skipped_layers", None, "a number", "pass a residual stack")
    jumps = L // S if L % S else L // S - 1
    return order(layer, 2 * jumps + 2 * L - 2 * jumps * S - 1)
