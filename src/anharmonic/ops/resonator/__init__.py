"""Damped oscillators driven by a sequence, pooled while they run."""

from anharmonic.ops.resonator.pools import (
    Driven,
    Pools,
    features_of,
    no_pools,
    pool_reference,
    respond_reference,
)
from anharmonic.ops.resonator.step import Propagator, propagator, resonator_step

__all__ = [
    "Driven",
    "Pools",
    "Propagator",
    "features_of",
    "no_pools",
    "pool_reference",
    "propagator",
    "resonator_step",
    "respond_reference",
]
