"""Sequence layers for recurrences with one variable, as a plain loop over time.

A model says the shapes of its parameters, how they start, and one step of one layer. The input's
part of a layer is one product over the whole sequence; the loop is PyTorch's own, without a
faster backend or a memory policy: these models are compared with, not built on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.base import SequenceLayer
from anharmonic.nn.sequence.inputs import without_autocast
from anharmonic.nn.stability import warn_unstable
from anharmonic.ops.recurrence import HiddenState, Steps, keep
from anharmonic.ops.sequence import gaps_walked_back, reversed_in_time

Update = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""``update(h, u, gap)``: one step of one layer.

It takes the state h [B, H], the input's part u of this step [B, ...] and the time since the
previous sample [B, 1] in nominal steps (None where time is even, or the model has no step size).
"""


class OneStateLayer(SequenceLayer):
    """A stack of recurrences h_n = update(h_{n-1}, V x_n + b)."""

    _state_type = HiddenState
    _has_step_size = False

    # ---- a model defines these, and `_shapes` and `_initialise` ------------------------------
    def _drive(self, x: Tensor, suffix: str) -> Tensor:
        """The input's part of every step of one layer: [T, B, F] -> [T, B, ...]."""
        return F.linear(x, self._weight("weight_ih" + suffix), self._weight("bias" + suffix))

    def _update(self, suffix: str) -> Update:
        """One step of the layer whose parameters end in ``suffix``."""
        raise NotImplementedError

    def _run(
        self, x: Tensor, state: Any, lengths: Tensor | None, elapsed: Tensor | None, output: str
    ) -> tuple[Tensor | None, HiddenState]:
        valid = None
        if lengths is not None:
            steps = torch.arange(len(x), device=x.device)[:, None]
            valid = (steps < lengths.to(x.device))[:, :, None]
        back = None if elapsed is None else gaps_walked_back(elapsed, lengths)
        gaps, D = (elapsed, back), self.num_directions
        ends: list[Tensor] = []
        with without_autocast(x):
            for layer in range(self.num_layers):
                outputs = []
                for direction in range(D):
                    k = D * layer + direction
                    source = reversed_in_time(x, lengths) if direction else x
                    suffix = self._suffixes[k]
                    out, end = self._walk(suffix, Steps(source, gaps[direction], valid), state.h[k])
                    outputs.append(reversed_in_time(out, lengths) if direction else out)
                    ends.append(end)
                x = torch.cat(outputs, dim=-1)
                if self.training and self.dropout > 0 and layer < self.num_layers - 1:
                    x = x * F.dropout(torch.ones_like(x[0]), self.dropout)  # one mask per sequence
        last = HiddenState(torch.stack(ends))
        if output == "all":
            return x, last
        return (torch.cat(ends[-D:], dim=-1) if output == "last" else None), last

    def _walk(self, suffix: str, steps: Steps, h: Tensor) -> tuple[Tensor, Tensor]:
        """Runs one layer in one direction; states stand still beyond a sequence's end."""
        update = self._update(suffix)
        outputs = []
        drive = self._drive(steps.x, suffix).unbind(0)
        for u, gap, valid in zip(drive, steps.gaps(), steps.running(), strict=True):
            h = keep(valid, update(h, u, gap), h)
            outputs.append(h)
        return torch.stack(outputs), h


class OneStateODELayer(OneStateLayer):
    """Steps of size dt of an equation whose state leaks at the rate ``diffusion``."""

    _has_step_size = True

    def _set_step(self, dt: float, diffusion: float) -> None:
        self.dt = _checks.number("dt", dt, low=0.0, low_open=True)
        self.diffusion = _checks.number("diffusion", diffusion, low=0.0)
        self._warn_unstable()

    def _moved(self, h: Tensor, change: Tensor, gap: Tensor | None) -> Tensor:
        """The state after a step of size dt, or dt times the gap: h + dt * change."""
        return h + (self.dt if gap is None else self.dt * gap) * change

    def _warn_unstable(self, longest: float = 1.0) -> bool:
        values = f"dt={self.dt:g}, diffusion={self.diffusion:g}"
        if self.dt * longest * self.diffusion >= 2:
            advice = "choose a smaller dt or less diffusion"
            return warn_unstable("dt * diffusion must be < 2", values, advice, longest)
        if self.dt * longest > 1:  # explicit steps lengthen what a skew matrix only turns
            return warn_unstable("dt must be <= 1", values, "choose a smaller dt", longest)
        return False
