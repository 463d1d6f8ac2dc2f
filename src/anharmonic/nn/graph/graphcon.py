"""GraphCON: graph-coupled oscillator network."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks
from anharmonic.nn.graph.arguments import Activation, activation_function
from anharmonic.nn.graph.deep import DeepGraphLayer, GraphInputs
from anharmonic.nn.stability import check_learned, warn_unstable
from anharmonic.ops.backend import transformed

# On Cora, networks with a product of rate, dt and layers of 4.8 still learned. With 9.6 they did
# not. A product of 2 is best.
_LONGEST_DECAY = 8.0


class Oscillation(NamedTuple):
    """Every layer's states, the initial ones first.

    Attributes:
        x: Features [L + 1, N, m].
        y: Velocities [L + 1, N, m].
    """

    x: Tensor
    y: Tensor


class GraphCON(DeepGraphLayer):
    r"""Graph-coupled oscillators around any graph convolution.

    The equations are (7.1) and (7.3), with X the node features, Y their velocities and F a graph
    convolution. The L layers are their discretisation (7.4), implicit in X and explicit in Y:

    .. math::
        X'' &= \sigma(F_\theta(X, t)) - \gamma X - \alpha X' \\
        Y^n &= Y^{n-1} + dt\,[\sigma(F_\theta(X^{n-1})) - \gamma X^{n-1} - \alpha Y^{n-1}] \\
        X^n &= X^{n-1} + dt\, Y^n

    Args:
        conv: The convolution F, called as ``conv(x, edge_index, ...)``; output and input have the
            same width. One module shared by all layers, or a list with one per layer.
        num_layers: Number of layers, L >= 1.
        dt: Step size, > 0. Default 0.5, for about eight layers. In deeper networks with damping,
            features vanish unless dt is about 4 / num_layers.
        frequency: γ >= 0. Default 1.
        damping: α >= 0. Default 1.
        activation: σ, a function or "relu", "elu", "tanh", "gelu", "identity".
        initial_velocity: "features" (Y^0 = X^0, as in the published code), "zero", or "rest". With
            "rest", velocities lie half a step before the features, and a node at rest has Y^0 =
            -dt/2 X''. The first layer then moves by dt/2 X'' dt, and errors are of order dt².
        norm: Applied to F(X) before σ, such as ``[torch.nn.LayerNorm(16) for _ in range(8)]``. One
            module shared by all layers, or a list with one per layer; None for no norm.
        dropout: Probability in [0, 1) of zeroing an entry of X and of Y, independently, before
            the first and after every layer.
        trainable_frequency: Whether γ = relu(raw_frequency) is learned.
        trainable_damping: Whether α = relu(raw_damping) is learned.
        checkpoint: Whether to store every sqrt(L)-th state only and recompute the others in the
            backward pass. Memory then grows with sqrt(L).

    Shape:
        x [N, m]; edge_index [2, E], a sparse adjacency [N, N] whose row i holds the edges that end
        in i, or an ``anharmonic.Adjacency``; result [N, m].

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range, or conv changes the width.

    Note:
        With dt = α = γ = 1, the paper's values for citation graphs, the old velocity and position
        cancel. What remains is the plain network X^n = σ(F(X^{n-1})), which oversmooths. These
        values were the defaults until version 0.1. Without coupling, features stay bounded iff dt²γ
        + 2 dt α <= 4 (< 4 for α = 0) and γ + α > 0. Values above 4 issue a ``StabilityWarning``. So
        does a long time dt L, in which damping shrinks uncoupled features by more than e^-8, such
        as that of 64 layers with dt = 0.5, unless there is a norm.
        With γ = α = 0, the paper's values for web pages, features grow linearly with depth, without
        a warning. With coupling, an undamped network with ReLU can still grow without bound; dt =
        0.1 kept it bounded for 1000 layers. With ``checkpoint``, running statistics (batch norm)
        are updated twice.

    Example:
        >>> import anharmonic as ah, torch
        >>> class Neighbours(torch.nn.Module):  # or torch_geometric.nn.GCNConv(16, 16)
        ...     def forward(self, x, edge_index):
        ...         return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        >>> layer = ah.GraphCON(Neighbours(), num_layers=8, dt=0.5)
        >>> layer(torch.rand(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 16])

    References:
        Rusch, Chamberlain, Rowbottom, Mishra and Bronstein, Graph-Coupled Oscillator Networks,
        ICML 2022.
    """

    states_type = Oscillation
    intervals: ClassVar[dict[str, Any]] = {
        "dt": {"low": 0.0, "low_open": True},
        "frequency": {"low": 0.0},
        "damping": {"low": 0.0},
        "dropout": {"low": 0.0, "high": 1.0, "high_open": True},
    }

    def __init__(
        self,
        conv: nn.Module | Iterable[nn.Module],
        num_layers: int,
        dt: float = 0.5,
        frequency: float = 1.0,
        damping: float = 1.0,
        *,
        activation: str | Activation = "relu",
        initial_velocity: str = "features",
        norm: nn.Module | Iterable[nn.Module] | None = None,
        dropout: float = 0.0,
        trainable_frequency: bool = False,
        trainable_damping: bool = False,
        checkpoint: bool = False,
    ) -> None:
        super().__init__(conv, num_layers, checkpoint, norm)
        self.dt, self.frequency, self.damping, self.dropout = dt, frequency, damping, dropout
        self._sigma = activation_function("activation", activation)
        self.initial_velocity = _checks.choice(
            "initial_velocity", initial_velocity, ("features", "zero", "rest")
        )
        self.trainable_frequency = _checks.boolean("trainable_frequency", trainable_frequency)
        self.trainable_damping = _checks.boolean("trainable_damping", trainable_damping)
        if trainable_frequency:
            self.raw_frequency = nn.Parameter(torch.tensor(self.frequency))
        if trainable_damping:
            self.raw_damping = nn.Parameter(torch.tensor(self.damping))
        check_learned("frequency", self.frequency, trainable_frequency)
        check_learned("damping", self.damping, trainable_damping)
        stiffness = self.dt**2 * self.frequency + 2 * self.dt * self.damping
        if stiffness > 4 or (stiffness == 4 and self.damping == 0):
            warn_unstable(
                "dt^2 * frequency + 2 * dt * damping <= 4 (< 4 without damping) must hold",
                f"dt={self.dt:g}, frequency={self.frequency:g}, damping={self.damping:g}",
                "use a smaller dt",
            )
        # Without coupling, features decay at this rate in time: a root of r² - α r + γ = 0.
        rate = (self.damping - max(self.damping**2 - 4 * self.frequency, 0) ** 0.5) / 2
        if norm is None and rate * self.dt * self.num_layers > _LONGEST_DECAY:
            left = math.exp(-rate * self.dt * self.num_layers)
            warn_unstable(
                f"that do not vanish dt * num_layers should be about {2 / rate:.2g}",
                f"dt={self.dt:g} and num_layers={self.num_layers}, after which damping alone "
                f"leaves less than {left:.0e} of the features",
                f"use dt={2 / (rate * self.num_layers):.2g}",
            )

    def initial_states(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return features and velocities before the first layer."""
        y = x if self.initial_velocity == "features" else torch.zeros_like(x)
        return self._drop(x), self._drop(y)

    def _step(self, n: int, states: tuple[Tensor, ...], inputs: GraphInputs) -> tuple[Tensor, ...]:
        x, y = states
        gamma = torch.relu(self.raw_frequency) if self.trainable_frequency else self.frequency
        alpha = torch.relu(self.raw_damping) if self.trainable_damping else self.damping
        coupling = self._sigma(self._coupling(self.convs, self.norms, n, x, inputs))
        # From rest, the velocity, still 0, belongs to half a step earlier.
        dt = self.dt / 2 if n == 0 and self.initial_velocity == "rest" else self.dt
        y, pull = y * (1 - self.dt * alpha), x.new_tensor(-dt) * gamma
        if not torch.compiler.is_compiling() and transformed() is not None:
            # Under vmap the coupling may be batched while Y is not yet.
            y = y.addcmul(x, pull).add(coupling, alpha=dt)
        else:
            # Y + dt (σ(F) - γ X - α Y) in place: allocating tensors costs more time than the sums.
            y = y.addcmul_(x, pull).add_(coupling, alpha=dt)
        x = torch.add(x, y, alpha=self.dt)
        return self._drop(x), self._drop(y)

    def _check_conversion(self) -> None:
        _checks.require(
            not (self.trainable_frequency or self.trainable_damping), "the layer", self,
            "one without learned scalars for torch_geometric.nn.to_hetero",
            "leave trainable_frequency and trainable_damping out", TypeError,
        )  # fmt: skip
        # The converted model would keep the dropout of the mode it was converted in, even in eval.
        _checks.require(
            self.dropout == 0, "dropout", self.dropout, "0 for torch_geometric.nn.to_hetero",
            "drop features before or after the converted layer", TypeError,
        )  # fmt: skip

    def _drop(self, state: Tensor) -> Tensor:
        return functional.dropout(state, self.dropout, self.training) if self.dropout else state

    def reset_parameters(self) -> None:
        """Redraw the convolutions' weights and reset learned scalars."""
        super().reset_parameters()
        with torch.no_grad():
            if self.trainable_frequency:
                self.raw_frequency.fill_(self.frequency)
            if self.trainable_damping:
                self.raw_damping.fill_(self.damping)

    def extra_repr(self) -> str:
        """Return the settings shown in the layer's repr."""
        return (
            f"num_layers={self.num_layers}, dt={self.dt:g}, frequency={self.frequency:g}, "
            f"damping={self.damping:g}"
        )
