"""This process: its rank among those that train together, and how it frees memory."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass

_M_MMAP_THRESHOLD = -3  # from malloc.h


@dataclass(frozen=True)
class Launch:
    """This process as one of several started by torchrun or SLURM."""

    launcher: str
    """"torchrun" or "SLURM"."""
    rank: int
    """Rank of this process, from 0."""
    local_rank: int
    """Its rank on this machine."""
    world_size: int
    """Number of processes."""


def find_launch() -> Launch | None:
    """Return the launcher of this process; None if it was not launched as one of several.

    torchrun comes before SLURM: ``srun torchrun`` starts one torchrun per node.
    """
    found = {name: value for name, value in os.environ.items() if value}
    if {"RANK", "WORLD_SIZE"} <= found.keys():
        rank, size = int(found["RANK"]), int(found["WORLD_SIZE"])
        return Launch("torchrun", rank, int(found.get("LOCAL_RANK", rank)), size)
    # (In an interactive job SLURM sets variables but starts no processes.)
    if "SLURM_NTASKS" in found and found.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        rank, local = (int(found.get(f"SLURM_{name}", 0)) for name in ("PROCID", "LOCALID"))
        return Launch("SLURM", rank, local, int(found["SLURM_NTASKS"]))
    return None


def rank() -> int:
    """Return the rank of this process among those started by torchrun, SLURM or `fit`."""
    launch = find_launch()
    # In an interactive job of SLURM, `srun` starts ranks that train alone: only the first works.
    return int(os.environ.get("SLURM_PROCID") or 0) if launch is None else launch.rank


def return_large_blocks() -> None:
    """Make glibc return freed blocks of at least 1 MB to the system from now on.

    Otherwise glibc keeps them, and checkpointing a graph network saves no memory. Other systems
    return them by themselves.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl does not have it
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 1_000_000)
