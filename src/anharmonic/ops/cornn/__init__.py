"""coRNN: coupled oscillators with damping."""

from anharmonic.ops.cornn.functional import SCHEMES, cornn
from anharmonic.ops.cornn.step import CoRNNWeights, cornn_step

__all__ = ["SCHEMES", "CoRNNWeights", "cornn", "cornn_step"]
