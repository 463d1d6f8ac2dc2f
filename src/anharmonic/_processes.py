"""This process: its rank among those that train together, and how it frees memory."""

from __future__ import annotations

import ctypes
import os
import sys

# SLURM_PROCID comes last: it is also set where SLURM starts no ranks.
_RANKS = ("RANK", "SLURM_PROCID")
_M_MMAP_THRESHOLD = -3  # from malloc.h


def rank() -> int:
    """Return the rank of this process among those started by torchrun, SLURM or `fit`."""
    return next((int(os.environ[name]) for name in _RANKS if name in os.environ), 0)


def return_large_blocks() -> None:
    """Make glibc return freed blocks of at least 1 MB to the system from now on.

    Otherwise glibc keeps them, and checkpointing a graph network saves no memory. Other systems
    return them by themselves.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl does not have it
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 1_000_000)
