"""``Preprocessing`` as tensor operators, for exported graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anharmonic.data.preprocessing import Preprocessing
from anharmonic.ops.reference import scanning

_LEAST_STD = 1e-10


class Prepared(nn.Module):
    """Prepares sequences of one length in float64; the ``Layout`` of a batch of tensors."""

    def __init__(self, how: Preprocessing) -> None:
        super().__init__()
        self.how = how
        self.where, self.missing = torch.where, torch.isnan
        self.mean = nn.Buffer(torch.tensor(how.mean, dtype=torch.float64))
        self.std = nn.Buffer(torch.tensor(how.std, dtype=torch.float64))
        self.change = nn.Buffer(torch.tensor(how.difference, dtype=torch.float64))
        self.level_shift = nn.Buffer(torch.tensor(how.level_shift, dtype=torch.float64))
        self.level_scale = nn.Buffer(torch.tensor(how.level_scale, dtype=torch.float64))

    def forward(self, x: Tensor, elapsed: Tensor | None = None) -> Tensor:
        """Return the model's input.

        Shape:
            x [B, T, C]; elapsed [B, T]; result [B, T, F].
        """
        columns = self.how.columns(x.double(), self, elapsed)
        return torch.cat([column.to(x.dtype) for column in columns], dim=-1)

    def standardised(self, x: Tensor) -> Tensor:
        """See ``Layout``."""
        return (x - self.mean) / self.std

    def scaled_each(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """See ``Layout``."""
        mean = x.mean(dim=1, keepdim=True)
        x = x - mean
        std = x.square().mean(dim=1, keepdim=True).sqrt().clamp(min=_LEAST_STD)
        levels = (torch.cat([mean, std.log()], dim=-1) - self.level_shift) / self.level_scale
        return x / std, levels.expand(-1, x.shape[1], -1)

    def marks(self, gaps: Tensor) -> Tensor:
        """See ``Layout``."""
        return gaps

    def changes(self, x: Tensor) -> Tensor:
        """See ``Layout``."""
        change = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:] - x[:, :-1]], dim=1)
        return change / self.change

    def steps(self, elapsed: Tensor) -> Tensor:
        """Return the times between samples in nominal steps; a first time of 0 becomes 1."""
        steps = elapsed / self.how.nominal
        first = steps[:, :1]
        return torch.cat([torch.where(first == 0, 1.0, first), steps[:, 1:]], dim=1)

    def carried_forward(self, x: Tensor) -> Tensor:
        """Fill every gap with the last known value, or with the mean before the first."""
        if scanning():  # ONNX has no cumulative maximum
            from torch._higher_order_ops.scan import scan

            def one(before: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
                known = torch.where(now.isnan(), before, now)
                return known.clone(), known.clone()

            start = self.mean.expand(x.shape[0], -1).clone()
            filled: Tensor = scan(one, start, x.transpose(0, 1).clone())[1]
            return filled.transpose(0, 1)
        at = torch.arange(x.shape[1], device=x.device)[None, :, None]
        source = torch.where(x.isnan(), 0, at).cummax(dim=1).values
        return x.gather(1, source)

    def last_known(self, x: Tensor) -> Tensor:
        """Return the last known value of each forecast channel, or its mean if there is none.

        Shape:
            x [B, T, C]; result [B, number of forecast channels].
        """
        last = self.carried_forward(x.double())[:, -1]
        known = torch.where(last.isnan(), self.mean, last)[:, list(self.how.forecast)]
        return known.to(x.dtype)
