"""UnICORNN: uncoupled undamped oscillators with learned time scales."""

from anharmonic.ops.unicornn.functional import unicornn
from anharmonic.ops.unicornn.step import UnICORNNWeights, unicornn_step

__all__ = ["UnICORNNWeights", "unicornn", "unicornn_step"]
