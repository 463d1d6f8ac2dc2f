"""The optimiser and its learning rate."""

from __future__ import annotations

import torch
from torch import nn

from anharmonic.train.run import Run


def make_optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    """Adam over all weights of a model.

    Args:
        run: Gives learning rate and weight decay.
        model: The model to train.

    Example:
        >>> make_optimizer(Run("adding", "LEM", lr=0.01), nn.Linear(1, 1)).defaults["lr"]
        0.01
    """
    return torch.optim.Adam(
        model.parameters(), lr=run.lr, weight_decay=run.weight_decay, fused=True
    )


def learning_rate(run: Run, epoch: int) -> float:
    """The learning rate of an epoch: a pure function, so that nothing has to be resumed.

    Args:
        run: Gives the rate and the number of epochs at the full rate.
        epoch: Counted from 0.

    Example:
        >>> run = Run("adding", "LEM", lr=0.5, lr_drop_epoch=2)
        >>> [learning_rate(run, epoch) for epoch in range(4)]
        [0.5, 0.5, 0.05, 0.05]
    """
    dropped = run.lr_drop_epoch is not None and epoch >= run.lr_drop_epoch
    return run.lr / 10 if dropped else run.lr
