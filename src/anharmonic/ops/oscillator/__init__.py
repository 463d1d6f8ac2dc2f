"""Neural oscillators: undamped, driven by an activation of position and input."""

from anharmonic.ops.oscillator.functional import SCHEMES, only_reference, oscillator
from anharmonic.ops.oscillator.step import ACTIVATIONS, OscillatorWeights, euler_step, verlet_step

__all__ = [
    "ACTIVATIONS",
    "SCHEMES",
    "OscillatorWeights",
    "euler_step",
    "only_reference",
    "oscillator",
    "verlet_step",
]
