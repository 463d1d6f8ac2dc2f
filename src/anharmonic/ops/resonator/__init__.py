"""Damped oscillators driven by sequences, pooled while they run."""

from anharmonic.ops.resonator.functional import in_place, pool, respond
from anharmonic.ops.resonator.pools import OTHERS, Driven, Pools, at_rest, no_pools
from anharmonic.ops.resonator.step import Propagator, propagator, resonator_step

__all__ = [
    "OTHERS",
    "Driven",
    "Pools",
    "Propagator",
    "at_rest",
    "in_place",
    "no_pools",
    "pool",
    "propagator",
    "resonator_step",
    "respond",
]
