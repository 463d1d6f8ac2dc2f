"""A training by one cycle of the rate."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def descent(model: nn.Module, rate: float, steps: int) -> Callable[[Tensor], None]:
    """Return a step of Adam on a loss, with clipped gradients and one cycle of the rate."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)

    def step(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    return step
