"""This process: its number among those that train together, and how it frees memory."""

from __future__ import annotations

import ctypes
import os
import sys

# SLURM_PROCID comes last: it is also set where SLURM starts no ranks.
_RANKS = ("RANK", "SLURM_PROCID")
_M_MMAP_THRESHOLD = -3  # of malloc.h


def rank() -> int:
    """The number of this process among those that torchrun, SLURM or `fit` started together.

    Example:
        >>> rank()
        0
    """
    return next((int(os.environ[name]) for name in _RANKS if name in os.environ), 0)


def return_large_blocks() -> None:
    """Let glibc return freed blocks of a megabyte and more to the system, from now on.

    It keeps them otherwise, so that a checkpoint of a graph network saves no memory. Other systems
    do so by themselves.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 1_000_000)
