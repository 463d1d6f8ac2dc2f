r"""A network of coupled pendula, and the neural oscillators that it computes.

The Frenkel-Kontorova network, with θ the angles, F the forces, masses μ, M = diag(μ), K = diag(k),
:math:`k_l = \mu_l\, g / \text{length}_l`, and C symmetric with
:math:`C_{ll} = -\sum_{l' \ne l} C_{ll'}`:

.. math::
    M \theta'' = -K \sin\theta - C \sin\theta + F

With :math:`\theta = P y`, :math:`P = M^{-1}(K + C)`, this is (4.8) exactly:

.. math::
    y'' = -\sin(P y) + (K + C)^{-1} F

If the pendula come in blocks that are coupled to the next block only, and masses and couplings fall
by a factor ε from block to block (:math:`C^{l-1,l} \sim \mu^l \sim \varepsilon^l`), then P is block
bidiagonal up to O(ε), which is (4.9), neural oscillators in layers with the force outside of σ:

.. math::
    (y^l)'' = -\sin(p^l \odot y^l + P^{l,l-1} y^{l-1}) + F^l

Reference: Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from anharmonic import MultiLayerNeuralOscillator, NeuralOscillator, State, _checks, _tensors


class PendulumNetwork:
    r"""Coupled pendula, :math:`M \theta'' = -(K + C) \sin\theta + F`.

    Args:
        masses: μ, > 0.
        couplings: C_ll' off the diagonal, symmetric, zero on the diagonal, which is filled in.
            Negative entries pull pendula together.
        lengths: Lengths of the pendula, > 0.
        gravity: g, > 0.

    Shape:
        masses and lengths [m], couplings [m, m].

    Raises:
        TypeError: If a tensor, here or in a method, is not float64 on the CPU.
        ValueError: If a shape does not fit, or an entry is out of range.

    Example:
        >>> masses = torch.tensor([1.0, 0.1], dtype=torch.float64)
        >>> couplings = torch.tensor([[0.0, -0.1], [-0.1, 0.0]], dtype=torch.float64)
        >>> pendula = PendulumNetwork(masses, couplings, gravity=1.0)
        >>> pendula.transform
        tensor([[ 1.1000, -0.1000],
                [-1.0000,  2.0000]], dtype=torch.float64)
    """

    def __init__(
        self,
        masses: Tensor,
        couplings: Tensor,
        *,
        lengths: Tensor | None = None,
        gravity: float = 9.81,
    ) -> None:
        self.masses = _positive("masses", masses)
        count = len(self.masses)
        self.lengths = _positive("lengths", torch.ones_like(masses) if lengths is None else lengths)
        _tensors.has_shape("lengths", self.lengths, (count,), "give every pendulum a length")
        self.gravity = _checks.number("gravity", gravity, low=0.0, low_open=True)
        couplings = _float64("couplings", couplings)
        _tensors.has_shape("couplings", couplings, (count, count), "couple every pair of masses")
        symmetric = couplings.isfinite().all() and torch.equal(couplings, couplings.t())
        _checks.require(
            bool(symmetric and not couplings.diagonal().any()), "couplings", couplings.tolist(),
            "finite, symmetric and zero on the diagonal", "the diagonal is filled in from the rest",
        )  # fmt: skip
        self.couplings = couplings - torch.diag(couplings.sum(dim=1))
        self.restoring = torch.diag(self.masses * self.gravity / self.lengths) + self.couplings

    @property
    def transform(self) -> Tensor:
        """P = M⁻¹(K + C), which takes y to the angles, [m, m]."""
        return self.restoring / self.masses[:, None]

    def simulate(
        self, forces: Tensor, *, dt: float, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, State]:
        """Simulate the pendula by velocity Verlet.

        Args:
            forces: F in the middle of every step.
            dt: Step size, > 0.
            state: Angles and their velocities at the start; at rest if None.

        Shape:
            forces [T, B, m]; state 2 times [B, m]. Returns the angles after every step [T, B, m]
            and the last state.
        """
        P = self.transform.t()
        pushes = self._checked_forces(forces) / self.masses
        return self._integrate(lambda theta: -torch.sin(theta) @ P, pushes, dt, state)

    def simulate_reduced(
        self,
        forces: Tensor,
        *,
        dt: float,
        state: tuple[Tensor, Tensor] | None = None,
        sizes: Sequence[int] | None = None,
    ) -> tuple[Tensor, State]:
        """Simulate the neural oscillators y by velocity Verlet; the angles are y Pᵀ.

        Args:
            forces: F in the middle of every step.
            dt: Step size, > 0.
            state: y and y' at the start; at rest if None.
            sizes: None is (4.8), exact; sizes of blocks, the heavy one first, give (4.9), which
                leaves out what a block feels of the lighter ones.

        Raises:
            ValueError: If the sizes do not sum to m.
        """
        P = self.transform if sizes is None else self._bidiagonal(sizes)
        pushes = torch.linalg.solve(self.restoring, self._checked_forces(forces).mT).mT
        return self._integrate(lambda y: -torch.sin(y @ P.t()), pushes, dt, state)

    def oscillator(self, **options: Any) -> NeuralOscillator:
        """The layer (4.8) of pendula without force: W = -P, σ = sin, and V = 0.

        Args:
            **options: Further arguments of the layer (``dt``, ``scheme``, ...).
        """
        layer = NeuralOscillator(
            1, len(self.masses), bias=False, activation="sin", dtype=torch.float64, **options
        )
        with torch.no_grad():
            layer.get_parameter("weight_ih_l0").zero_()
            layer.get_parameter("weight_hh_l0").copy_(-self.transform)
        return layer

    def multilayer_oscillator(
        self, sizes: Sequence[int], **options: Any
    ) -> MultiLayerNeuralOscillator:
        """The layers (4.9) of pendula without force: w and V from the blocks of -P, σ = sin.

        All layers are as wide as the largest block. A smaller block takes the first neurons of its
        layer. The others have zero weights, so they stay at rest.

        Args:
            sizes: Sizes of the blocks, the heavy one first.
            **options: Further arguments of the layer (``dt``, ``scheme``, ...).

        Raises:
            ValueError: If the sizes do not sum to m.
        """
        P, blocks = self._bidiagonal(sizes), self._blocks(sizes)
        layer = MultiLayerNeuralOscillator(
            1, max(sizes), len(sizes), bias=False, activation="sin", dtype=torch.float64, **options
        )
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.zero_()
            for k, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
                layer.get_parameter(f"weight_hh_l{k}")[:size] = -P.diagonal()[block]
                if k:
                    V = layer.get_parameter(f"weight_ih_l{k}")
                    V[:size, : sizes[k - 1]] = -P[block, blocks[k - 1]]
        return layer

    def _blocks(self, sizes: Sequence[int]) -> list[slice]:
        """The rows of every block."""
        widths = [_checks.positive_int(f"sizes[{k}]", size) for k, size in enumerate(sizes)]
        _checks.require(
            sum(widths) == len(self.masses), "sizes", widths,
            f"numbers that sum to the {len(self.masses)} pendula", "give every pendulum a block",
        )  # fmt: skip
        return [slice(*ends) for ends in pairwise(accumulate([0, *widths]))]

    def _bidiagonal(self, sizes: Sequence[int]) -> Tensor:
        """P with its diagonal, and the blocks by which a block feels the heavier one before it."""
        P, blocks = self.transform, self._blocks(sizes)
        bidiagonal = torch.diag(P.diagonal())
        for heavy, light in pairwise(blocks):
            bidiagonal[light, heavy] = P[light, heavy]
        return bidiagonal

    def _checked_forces(self, forces: Tensor) -> Tensor:
        forces = _float64("forces", forces)
        fits = forces.dim() == 3 and forces.shape[-1] == len(self.masses) and 0 not in forces.shape
        _checks.require(
            fits, "forces", forces, f"of shape [T, B, {len(self.masses)}]",
            "give one force per step, sample and pendulum",
        )  # fmt: skip
        return forces

    def _integrate(
        self,
        pull: Callable[[Tensor], Tensor],
        pushes: Tensor,
        dt: float,
        state: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, State]:
        """Velocity Verlet for q'' = pull(q) + push."""
        h = _checks.number("dt", dt, low=0.0, low_open=True)
        zero = torch.zeros_like(pushes[0])
        q, v = (zero, zero) if state is None else state
        for name, value in (("state.y", q), ("state.z", v)):
            _float64(name, value)
            _tensors.has_shape(name, value, tuple(zero.shape), "its sizes are batch, pendula")
        angles = []
        for push in pushes:
            v = v + h / 2 * (pull(q) + push)
            q = q + h * v
            v = v + h / 2 * (pull(q) + push)
            angles.append(q)
        return torch.stack(angles), State(q, v)


def _float64(name: str, value: Tensor) -> Tensor:
    """Check for a tensor of float64 on the CPU."""
    _checks.require(
        isinstance(value, Tensor) and value.dtype == torch.float64 and value.is_cpu, name, value,
        "a float64 tensor on the CPU", "make it with torch.tensor(..., dtype=torch.float64)",
        TypeError,
    )  # fmt: skip
    return value


def _positive(name: str, value: Tensor) -> Tensor:
    """Check for a vector of positive, finite float64 on the CPU."""
    value = _float64(name, value)
    positive = bool((value.isfinite() & (value > 0)).all())
    _checks.require(
        value.dim() == 1 and value.numel() > 0 and positive, name, value.tolist(),
        "a vector of finite numbers > 0", "give one number per pendulum",
    )  # fmt: skip
    return value
