"""LEM: long expressive memory, two states with learned time scales."""

from anharmonic.ops.lem.functional import lem
from anharmonic.ops.lem.step import LEMWeights, lem_step

__all__ = ["LEMWeights", "lem", "lem_step"]
