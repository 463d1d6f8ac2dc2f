"""A recurrence whose state matrix is skew-symmetric and depends on state and input."""

from anharmonic.ops.skew.functional import skew
from anharmonic.ops.skew.step import SkewWeights, skew_step

__all__ = ["SkewWeights", "skew", "skew_step"]
