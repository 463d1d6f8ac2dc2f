"""The weighted sum over in-neighbours, which most graph convolutions are but for a linear map."""

from anharmonic.ops.neighbours.functional import neighbour_sum

__all__ = ["neighbour_sum"]
