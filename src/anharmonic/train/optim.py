"""The optimiser and its learning rate, a pure function of the step that needs no saved state."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from anharmonic._checks import require
from anharmonic.train.run import Run

# As in PyTorch's OneCycleLR: first and last rate as shares of the largest, and the first beta at
# the ends and at the peak.
_FIRST, _LAST = 1 / 25, 1 / 25e4
_BETA_ENDS, _BETA_TOP = 0.95, 0.85
_ONE_CYCLE_WARMUP = 0.3


def make_optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    """Return Adam or AdamW for all weights of a model."""
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[run.optimizer]
    optimizer: torch.optim.Optimizer = kind(
        model.parameters() if run.decay_output else _decayed_and_not(model),
        lr=run.lr,
        betas=run.betas,
        weight_decay=run.weight_decay,
        fused=True,
    )
    return optimizer


def _decayed_and_not(model: nn.Module) -> list[dict[str, Any]]:
    layer = getattr(model, "output_layer", None)
    require(
        isinstance(layer, nn.Module), "--decay-output (decay_output)", False,
        f"True for {type(model).__name__}, which does not say its output_layer", "leave it out",
    )  # fmt: skip
    last = list(layer.parameters())  # type: ignore[union-attr]
    ids = {id(weight) for weight in last}
    others = [weight for weight in model.parameters() if id(weight) not in ids]
    return [{"params": others}, {"params": last, "weight_decay": 0.0}]


def learning_rate(run: Run, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of an optimiser step.

    Example:
        >>> run = Run("adding", "LEM", lr=0.5, lr_drop_epoch=2)
        >>> [learning_rate(run, step, 1) for step in range(4)]
        [0.5, 0.5, 0.05, 0.05]
        >>> run = Run("adding", "LEM", lr=0.5, schedule="cosine", warmup=0.2, epochs=10)
        >>> [round(learning_rate(run, step, 1), 2) for step in range(10)]
        [0.02, 0.26, 0.5, 0.48, 0.43, 0.35, 0.25, 0.15, 0.07, 0.02]
    """
    if run.schedule == "one_cycle":
        return run.lr * _one_cycle(run, step, steps_per_epoch, _FIRST, 1.0, _LAST)
    total = run.epochs * steps_per_epoch
    rise = (run.warmup or 0.0) * total
    if step < rise:
        return run.lr * (_FIRST + (1 - _FIRST) * step / rise)
    if run.schedule == "cosine":
        return run.lr * _half_cosine(1.0, 0.0, (step - rise) / (total - rise))
    dropped = run.lr_drop_epoch is not None and step >= run.lr_drop_epoch * steps_per_epoch
    return run.lr / 10 if dropped else run.lr


def first_beta(run: Run, step: int, steps_per_epoch: int) -> float:
    """Return Adam's first beta at an optimiser step; it falls while the one-cycle rate rises."""
    if run.schedule != "one_cycle":
        return run.betas[0]
    return _one_cycle(run, step, steps_per_epoch, _BETA_ENDS, _BETA_TOP, _BETA_ENDS)


def _one_cycle(run: Run, step: int, per_epoch: int, start: float, top: float, end: float) -> float:
    # The first and last step have the first and last value, as in OneCycleLR.
    last = run.epochs * per_epoch - 1
    rise = (_ONE_CYCLE_WARMUP if run.warmup is None else run.warmup) * (last + 1) - 1
    if step <= rise:
        return _half_cosine(start, top, step / rise if rise > 0 else 1.0)
    rise = max(rise, 0.0)
    return _half_cosine(top, end, (step - rise) / (last - rise) if last > rise else 0.0)


def _half_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
