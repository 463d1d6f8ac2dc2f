"""LinOSS and D-LinOSS: linear oscillators, the published block, and a stack of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import check_can_step
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.nn.store import Stored, repr_of
from anharmonic.ops import Equation, State
from anharmonic.ops.reference import without_autocast
from anharmonic.ops.sequence import OUTPUTS, gaps_walked_back, reversed_in_time

SCHEMES = ("implicit", "implicit-explicit")
NORMS = ("layer", "batch")
_RADII = (0.9, 1.0)
"""Between these lie the eigenvalues of damped oscillators at the start."""


class _Terms(NamedTuple):
    """Step Δ and stiffness A of every oscillator, 1 / S, and its eigenvalues exp(log_r ± i θ)."""

    step: Tensor
    A: Tensor
    inverse: Tensor
    log_r: Tensor
    theta: Tensor


class LinOSS(SequenceLayer):
    r"""Linear oscillators, each with a frequency and a step of its own: LinOSS, and D-LinOSS.

    .. math::
        z_n &= (z_{n-1} + \Delta\,(V u_n + b - A y_{n-1})) / S, \qquad y_n = y_{n-1} + \Delta z_n \\
        S &= 1 + \Delta^2 A \text{ (implicit)}, \qquad
        S = 1 + \Delta G \text{ (implicit-explicit)}

    They are discrete forms of y'' = V u + b - A y - G y'. The implicit one loses energy at a rate
    that falls with Δ, the other one keeps it where G = 0. Δ = σ̂(raw_step), A = relu(raw_stiffness)
    and G = relu(raw_damping). No eigenvalue lies outside the unit circle: the implicit scheme has
    \|λ\|² <= 1 / S; in the other one A is kept within (2 + ΔG ± 2 sqrt(1 + ΔG)) / Δ², where they
    are complex and \|λ\|² = 1 / S. Before a sample that came after ``elapsed`` steps the
    oscillators swing freely for elapsed - 1 steps, which need not be a whole number: any gaps are
    stable.

    The layer is linear: a stack of it alone says no more than one layer. ``LinOSSBlock`` puts a
    nonlinearity behind it, ``LinOSSNetwork`` stacks such blocks.

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H] (V), ``bias_lk`` [H],
    ``raw_step_lk``, ``raw_stiffness_lk`` and, with damping, ``raw_damping_lk`` [H], or [H / 2] if
    the neurons are paired; those of a reverse direction end in ``_reverse``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Oscillators per layer, H >= 1; the output are their positions.
        num_layers: Layers stacked on each other, L >= 1.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        paired: Whether neuron k and neuron k + H / 2 share step, stiffness and damping, as real and
            imaginary part do in the publication; H is then even.
        bias: Whether the input's map has a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also walks from the end.
        memory: What is kept for the backward pass: "stored" states, "chunked" (a state now and
            then, the rest computed again), or "auto", which picks between them by size.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y, z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Note:
        Weights start from U(-1/sqrt(F), 1/sqrt(F)), biases from 0, raw steps and stiffnesses from
        U(0, 1). With damping raw steps start from N(0, 0.5²), and stiffness and damping so that the
        eigenvalues are spread evenly over the ring between the radii 0.9 and 1.

    Example:
        >>> import torch
        >>> layer = LinOSS(6, 32, scheme="implicit-explicit", damping=True, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.z.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025; Boyer, Rusch and Rus, Learning to
        Dissipate Energy in Oscillatory State-Space Models, 2025.
    """

    state_type = State
    has_step_size = True
    dt = 1.0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        scheme: str = "implicit",
        damping: bool = False,
        paired: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self.scheme = _checks.choice("scheme", scheme, SCHEMES)
        self.damping = _checks.boolean("damping", damping)
        self.paired = _checks.boolean("paired", paired)
        _checks.require(
            not damping or scheme == "implicit-explicit", "scheme", scheme,
            '"implicit-explicit" with damping', "the implicit scheme damps by itself",
        )  # fmt: skip
        _checks.require(
            not paired or hidden_size % 2 == 0, "hidden_size", hidden_size,
            "even if neurons are paired", "add a neuron",
        )  # fmt: skip
        self.make_parameters(device=device, dtype=dtype)

    # ---- the equation --------------------------------------------------------------------------
    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """V, b, and what Δ, A and G are made of."""
        H = self.hidden_size
        own = (H // 2 if self.paired else H,)
        shapes = {"weight_ih": (H, input_size), "bias": (H,)}
        shapes |= {"raw_step": own, "raw_stiffness": own}
        return shapes | ({"raw_damping": own} if self.damping else {})

    def prepare(self, w: Any) -> _Terms:
        """Δ, A and G of every oscillator, A kept where the scheme is stable."""
        step, A, G = torch.sigmoid(w.raw_step), torch.relu(w.raw_stiffness), None
        if self.damping:
            G = torch.relu(w.raw_damping)
        if self.scheme == "implicit":
            S = 1 + step * step * A
        else:
            S = torch.ones_like(step) if G is None else 1 + step * G
            low, high = _stable_stiffness(step, S)
            A = torch.maximum(torch.minimum(A, high), low)
        # From tr M = 2 r cos θ and r² = det M = 1 / S; the bounds keep sin θ away from 0.
        q = step * step * A
        root = S.sqrt()
        sine = (q - (root - 1).square()) / (4 * root)  # of θ / 2, squared
        theta = 2 * sine.clamp(1e-6, 1 - 1e-6).sqrt().asin()
        terms = _Terms(step, A, 1 / S, -0.5 * S.log(), theta)
        return _Terms(*(part.repeat(2) for part in terms)) if self.paired else terms

    def step_function(self, u: Tensor, state: State, w: _Terms, dt: float | Tensor) -> State:
        """The equation above; between samples, a power of it without input."""
        y, z = state
        if not isinstance(dt, Tensor):
            z = (z + w.step * (u - w.A * y)) * w.inverse
            return State(y + w.step * z, z)
        # A step without input is the matrix M, and M^dt = a M + b.
        sine = w.theta.sin()
        a = torch.exp((dt - 1) * w.log_r) * torch.sin(dt * w.theta) / sine
        b = -torch.exp(dt * w.log_r) * torch.sin((dt - 1) * w.theta) / sine
        z_free = (z - w.step * w.A * y) * w.inverse
        y_free = y + w.step * z_free
        kick = w.step * w.inverse * u
        return State(a * y_free + b * y + w.step * kick, a * z_free + b * z + kick)

    # ---- first values --------------------------------------------------------------------------
    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        if name == "weight_ih":
            parameter.uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
        elif name == "bias":
            parameter.zero_()
        else:
            parameter.uniform_(0, 1)

    def reset_parameters(self) -> None:
        """Draw every weight anew from the model's initial distribution."""
        super().reset_parameters()
        if not self.damping:
            return
        with torch.no_grad():
            for suffix in self._suffixes:
                w = self.layer_weights(suffix)
                step = torch.sigmoid(w.raw_step.normal_(0, 0.5))
                low, high = (radius**2 for radius in _RADII)
                r = torch.empty_like(step).uniform_(low, high).sqrt()
                cosine = torch.empty_like(step).uniform_(0, math.pi).cos()
                w.raw_damping.copy_((r**-2 - 1) / step)
                w.raw_stiffness.copy_((1 + r * r - 2 * r * cosine) / (r * step) ** 2)


def _stable_stiffness(step: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and largest A for which the eigenvalues of IMEX are complex."""
    root = 2 * S.sqrt()
    return (1 + S - root) / (step * step), (1 + S + root) / (step * step)


class LinOSSBlock(Stored, nn.Module):
    r"""The block of LinOSS: norm, oscillators, GELU and a gated linear unit, beside a skip.

    .. math::
        v = \text{norm}(x), \quad r = \text{GELU}(C\,y(v) + d \odot v), \quad
        x' = x + \text{GLU}(W r + q)

    y(v) are the positions of 2 P paired oscillators that v drives: the real and imaginary parts of
    the publication's P. d starts from N(0, 1), C from U(-1/sqrt(P), 1/sqrt(P)).

    Args:
        size: Features of input and output, H >= 1.
        state_size: Pairs of oscillators, P >= 1.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        norm: "layer" (over the features of a step) or "batch" (the publication's, over all steps of
            a batch; in training a sequence then depends on the others of its batch).
        dropout: Probability in [0, 1] of zeroing a feature behind GELU and behind the gate; one
            mask per sequence.
        batch_first: Whether input and output are [B, T, H] instead of [T, B, H].
        memory: What is kept for the backward pass, see ``LinOSS``.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, H], [B, T, H] with ``batch_first``; lengths [B]; elapsed [T, B], or [B, T] with
        ``batch_first``; output as x; state: y, z [1, B, 2 P].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Example:
        >>> import torch
        >>> block = LinOSSBlock(16, 8, batch_first=True)
        >>> output, state = block(torch.zeros(4, 100, 16))
        >>> output.shape, state.y.shape
        (torch.Size([4, 100, 16]), torch.Size([1, 4, 16]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025.
    """

    def __init__(
        self,
        size: int,
        state_size: int,
        *,
        scheme: str = "implicit",
        damping: bool = False,
        norm: str = "layer",
        dropout: float = 0.0,
        batch_first: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.size = _checks.positive_int("size", size)
        self.state_size = _checks.positive_int("state_size", state_size)
        self.norm = _checks.choice("norm", norm, NORMS)
        self.dropout = _checks.number("dropout", dropout, low=0.0, high=1.0)
        self.batch_first = _checks.boolean("batch_first", batch_first)
        self.scheme, self.damping, self.memory = scheme, damping, memory
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.normalise: nn.Module
        if norm == "layer":
            self.normalise = nn.LayerNorm(size, elementwise_affine=False)
        else:
            self.normalise = nn.BatchNorm1d(size, affine=False, **factory)
        self.oscillators = LinOSS(
            size, 2 * state_size, scheme=scheme, damping=damping, paired=True, bias=False,
            memory=memory, **factory,
        )  # fmt: skip
        self.readout = nn.Linear(2 * state_size, size, bias=False, **factory)
        self.direct = nn.Parameter(torch.empty(size, **factory))
        self.gate = nn.Linear(size, 2 * size, **factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every weight anew from its initial distribution."""
        self.oscillators.reset_parameters()
        self.gate.reset_parameters()
        bound = 1 / math.sqrt(self.state_size)
        with torch.no_grad():
            self.readout.weight.uniform_(-bound, bound)
            self.direct.normal_()

    def forward(
        self,
        x: Tensor,
        state: Any = None,
        *,
        lengths: Tensor | None = None,
        elapsed: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Run over whole sequences, or over the next part of long ones.

        Args:
            x: The sequences, padded at the end.
            state: What the part before returned; zeros if None.
            lengths: Valid steps of each sequence (int64, 1 to T); all if None.
            elapsed: Time since the previous sample in nominal steps; 1 if None.

        Returns:
            The output, whose values past the end of a sequence mean nothing, and the state at the
            last valid steps.

        Raises:
            ValueError: If a shape does not fit.
            TypeError: If a dtype does not fit.
        """
        _checks.require(
            isinstance(x, Tensor) and x.dim() == 3 and x.shape[2] == self.size, "x", x,
            f"a batch of sequences of {self.size} features", "put a single sequence into a batch",
        )  # fmt: skip
        if self.batch_first:
            output, last = self.run_padded(x.transpose(0, 1), state, lengths, _turned(elapsed))
            return output.transpose(0, 1), last
        return self.run_padded(x, state, lengths, elapsed)

    def run_padded(
        self, x: Tensor, state: Any, lengths: Tensor | None, elapsed: Tensor | None
    ) -> tuple[Tensor, State]:
        """Run as ``forward`` with x [T, B, H] and elapsed [T, B], whatever ``batch_first`` is."""
        v = self._normalised(x, lengths)
        layer = self.oscillators
        equation = layer.equation()
        weights = layer._weights(equation)
        y, last = layer._run(equation, weights, v, state, True, lengths, elapsed, "all")
        assert y is not None
        r = self._drop(F.gelu(torch.addcmul(self.readout(y), self.direct, v)))
        return x + self._drop(F.glu(self.gate(r), dim=-1)), last

    def _normalised(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if self.norm == "layer":
            return self.normalise(x)  # type: ignore[no-any-return]
        if lengths is None:
            return self.normalise(x.flatten(0, 1)).view_as(x)  # type: ignore[no-any-return]
        valid = torch.arange(len(x), device=x.device)[:, None] < lengths.to(x.device)
        v = torch.zeros_like(x)
        v[valid] = self.normalise(x[valid])
        return v

    def _drop(self, x: Tensor) -> Tensor:
        if not self.training or self.dropout == 0:
            return x
        return x * F.dropout(x.new_ones(x.shape[1:]), self.dropout)

    def extra_repr(self) -> str:
        """Names what differs from the defaults."""
        return repr_of(self)


class LinOSSNetwork(SequenceLayer):
    r"""Blocks of oscillators behind a linear encoder, with the call of ``nn.LSTM``.

    The published model without its readout, which ``SequenceModel`` adds:
    ``SequenceModel("LinOSSNetwork", ..., readout="mean")``. Unlike that of ``LinOSS``, the output
    is no variable of the state.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Features between the blocks, H >= 1, and of the output.
        num_layers: Blocks, L >= 1.
        state_size: Pairs of oscillators in a block, P >= 1; None for half of ``hidden_size``.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        norm: "layer" or "batch"; see ``LinOSSBlock``.
        bias: Whether the encoder has a bias.
        dropout: Probability in [0, 1] of zeroing a feature, twice in each block; one mask per
            sequence.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        bidirectional: Whether blocks of their own also walk from the end.
        memory: What is kept for the backward pass, see ``LinOSS``.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y, z [L * D, B, 2 P]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Note:
        The publication normalises over the batch; here it is over the features of a step, so that
        a stream, a batch and a padded batch see the same numbers. ``norm="batch"`` is the other.

    Example:
        >>> import torch
        >>> network = LinOSSNetwork(6, 16, num_layers=2, batch_first=True)
        >>> output, state = network(torch.zeros(8, 100, 6))
        >>> output.shape, state.y.shape
        (torch.Size([8, 100, 16]), torch.Size([2, 8, 16]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025; Boyer, Rusch and Rus, Learning to
        Dissipate Energy in Oscillatory State-Space Models, 2025.
    """

    state_type = State
    has_step_size = True
    output_is_state = False
    dt = 1.0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 2,
        *,
        state_size: int | None = None,
        scheme: str = "implicit",
        damping: bool = False,
        norm: str = "layer",
        bias: bool = True,
        dropout: float = 0.0,
        batch_first: bool = False,
        bidirectional: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, bidirectional=bidirectional,
            memory=memory,
        )  # fmt: skip
        self.dropout = dropout
        self.scheme, self.damping, self.norm = scheme, damping, norm
        self.state_size = (hidden_size + 1) // 2 if state_size is None else state_size
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.encoder = nn.Linear(input_size, hidden_size, bias, **factory)
        # Layer by layer, and in each the forward direction first, as in the state.
        self.blocks = nn.ModuleList(
            LinOSSBlock(
                hidden_size, self.state_size, scheme=scheme, damping=damping, norm=norm,
                dropout=dropout, memory=memory, **factory,
            )
            for _ in range(num_layers * self.num_directions)
        )  # fmt: skip
        self._state_size = 2 * self.state_size
        self._suffixes = [f"_{k}" for k in range(len(self.blocks))]

    def reset_parameters(self) -> None:
        """Draw every weight anew from its initial distribution."""
        for part in (self.encoder, *self.blocks):
            part.reset_parameters()

    def equation(self) -> Equation:
        """Return the oscillators' equation, which is the same in every block."""
        equation: Equation = self.blocks[0].oscillators.equation()  # type: ignore[operator,union-attr]
        return equation

    def _weights(self, equation: Equation, suffixes: Sequence[str] | None = None) -> list[Any]:
        return [(self.encoder.weight,)]

    @property
    def _example(self) -> Tensor:
        return self.encoder.weight

    def step(
        self, x_t: Tensor, state: Any = None, elapsed: Tensor | None = None
    ) -> tuple[Any, Any]:
        """Takes one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If it trains with dropout or the norm over a batch, or the input does not
                fit.
        """
        check_can_step(self)
        _checks.require(
            not self.training or (self.dropout == 0 and self.norm == "layer"),
            "training", True, "False for step() with dropout or the norm over a batch",
            "call layer.eval() first, or train on whole sequences",
        )  # fmt: skip
        return super().step(x_t, state, elapsed)

    def _run(
        self,
        equation: Equation,
        weights: Any,
        x: Tensor,
        state: Any,
        batched: bool,
        lengths: Tensor | None,
        elapsed: Tensor | None,
        output: str,
    ) -> tuple[Tensor | None, Any]:
        _checks.choice("output", output, OUTPUTS)
        with without_autocast(x):
            return self._run_blocks(x, state, batched, lengths, elapsed, output)

    def _run_blocks(
        self,
        x: Tensor,
        state: Any,
        batched: bool,
        lengths: Tensor | None,
        elapsed: Tensor | None,
        output: str,
    ) -> tuple[Tensor | None, Any]:
        """Walk through all blocks of each direction; arguments as of ``_run``."""
        start, x = self._start(state, x, batched), self.encoder(x)
        outputs: list[Tensor] = []
        ends: list[Any] = [None] * len(self.blocks)
        for direction in range(self.num_directions):
            level, gaps = x, elapsed
            if direction == 1:
                level = reversed_in_time(x, lengths)
                gaps = None if elapsed is None else gaps_walked_back(elapsed, lengths)
            for k in range(direction, len(self.blocks), self.num_directions):
                own = State(*(part[k : k + 1] for part in start))
                level, ends[k] = self.blocks[k].run_padded(level, own, lengths, gaps)  # type: ignore[operator]
            if output == "last":
                final = len(x) - 1 if lengths is None else lengths.to(x.device) - 1
                outputs.append(level[final, torch.arange(x.shape[1], device=x.device)])
            elif output == "all":
                outputs.append(reversed_in_time(level, lengths) if direction else level)
        last = State(*(torch.cat(parts) for parts in zip(*ends, strict=True)))
        if not batched:
            last = State(last.y[:, 0], last.z[:, 0])
        if output == "none":
            return None, last
        result = torch.cat(outputs, dim=-1) if len(outputs) > 1 else outputs[0]
        if output == "all" and lengths is not None:
            valid = torch.arange(len(x), device=x.device)[:, None] < lengths.to(x.device)
            result = torch.where(valid[:, :, None], result, torch.zeros_like(result))
        return result, last


def _turned(elapsed: Tensor | None) -> Tensor | None:
    return None if elapsed is None else elapsed.transpose(0, 1)
