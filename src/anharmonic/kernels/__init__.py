"""The recurrences as pure functions on tensors: one call runs a whole stack over a whole sequence.

``gradient_gate`` is the neighbour sum that graph models need beside `Adjacency`. No ``nn.Module``,
no files and no randomness live here. Recurrences take time-major tensors; every function picks a
backend, and the readable one is ``kernels/<name>/reference.py``.
"""

from anharmonic.kernels.cornn import CoRNNWeights, cornn
from anharmonic.kernels.dispatch import available_backends, use_backend
from anharmonic.kernels.gate import gradient_gate
from anharmonic.kernels.lem import LEMWeights, lem
from anharmonic.kernels.oscillator import OscillatorWeights, oscillator
from anharmonic.kernels.precision import use_precision
from anharmonic.kernels.skew import SkewWeights, skew
from anharmonic.kernels.unicornn import UnICORNNWeights, unicornn

__all__ = [
    "CoRNNWeights",
    "LEMWeights",
    "OscillatorWeights",
    "SkewWeights",
    "UnICORNNWeights",
    "available_backends",
    "cornn",
    "gradient_gate",
    "lem",
    "oscillator",
    "skew",
    "unicornn",
    "use_backend",
    "use_precision",
]
