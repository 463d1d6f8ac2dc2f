"""Padded batches of sequences: their checks, packing, and means over the valid steps."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from anharmonic import _checks


def packed(values: Tensor, lengths: Tensor) -> PackedSequence:
    """Packs a padded batch [B, T, ...]."""
    return pack_padded_sequence(values, lengths.cpu(), batch_first=True, enforce_sorted=False)


def mean_of_steps(features: Tensor | PackedSequence) -> Tensor:
    """Mean over valid steps: [B, H], of [B, T, H] or of packed rows, which are not padded first."""
    if isinstance(features, Tensor):
        return features.mean(dim=1)
    rows, per_step, _, order = features
    first_rows = torch.repeat_interleave(per_step.cumsum(0) - per_step, per_step)
    sequence = (torch.arange(len(rows)) - first_rows).to(rows.device)
    sums = rows.new_zeros(int(per_step[0]), rows.shape[1]).index_add(0, sequence, rows)
    means = sums / torch.bincount(sequence).to(rows)[:, None]
    return means if order is None else means[order]


def check_elapsed_shape(elapsed: Tensor, x: Tensor) -> None:
    """Checks the shape of elapsed [B, T] against that of x [B, T, F].

    Raises:
        ValueError: If it is no tensor of that shape.

    Example:
        >>> check_elapsed_shape(torch.ones(2, 3), torch.zeros(2, 3, 1))
    """
    if not isinstance(elapsed, Tensor) or elapsed.shape != x.shape[:-1]:
        raise ValueError(
            _checks.message(
                f"elapsed must be a tensor [B, T] = {list(x.shape[:-1])}",
                _checks.described(elapsed),
                "give one time per sample, padding included",
            )
        )


def check_lengths(lengths: Tensor, x: Tensor) -> None:
    """Checks the lengths of a padded batch [B, T, F].

    Raises:
        TypeError: If they are not int64.
        ValueError: If there is not one per sequence or one is outside [1, T].

    Example:
        >>> check_lengths(torch.tensor([2, 1]), torch.zeros(2, 2, 1))
    """
    _checks.require(
        isinstance(lengths, Tensor) and lengths.dtype == torch.int64, "lengths", lengths,
        "a torch.int64 tensor", "make it with torch.tensor([...])", TypeError,
    )  # fmt: skip
    if x.dim() != 3 or tuple(lengths.shape) != (x.shape[0],):
        raise ValueError(
            _checks.message(
                "lengths must have shape [B] for x [B, T, F]",
                f"lengths {list(lengths.shape)} and x {list(x.shape)}",
                "give one length per sequence",
            )
        )
    if lengths.numel() and not (1 <= int(lengths.min()) and int(lengths.max()) <= x.shape[1]):
        raise ValueError(
            _checks.message(
                f"lengths must lie in [1, T={x.shape[1]}]",
                f"values from {int(lengths.min())} to {int(lengths.max())}",
                "count the valid steps of each sequence",
            )
        )
