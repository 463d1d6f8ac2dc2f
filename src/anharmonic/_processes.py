"""Which of the processes that train together this one is."""

from __future__ import annotations

import os

# SLURM_PROCID comes last: it is also set where SLURM starts no ranks.
_RANKS = ("RANK", "SLURM_PROCID")


def rank() -> int:
    """The number of this process among those that torchrun, SLURM or `fit` started together.

    Example:
        >>> rank()
        0
    """
    return next((int(os.environ[name]) for name in _RANKS if name in os.environ), 0)
