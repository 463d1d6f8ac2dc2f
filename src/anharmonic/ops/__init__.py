"""Recurrences and graph operations as functions on tensors: no ``nn.Module``, no files.

One call runs a whole stack over a whole sequence, on time-major tensors. Every function picks a
backend; the equation is in ``ops/<name>/step.py``.
"""

from anharmonic.ops.adjacency import Adjacency
from anharmonic.ops.cornn import CoRNNWeights, cornn
from anharmonic.ops.dispatch import available_backends, use_backend
from anharmonic.ops.gate import gradient_gate
from anharmonic.ops.lem import LEMWeights, lem
from anharmonic.ops.oscillator import OscillatorWeights, oscillator
from anharmonic.ops.precision import use_precision
from anharmonic.ops.sequence import SequenceOptions
from anharmonic.ops.skew import SkewWeights, skew
from anharmonic.ops.unicornn import UnICORNNWeights, unicornn

__all__ = [
    "Adjacency",
    "CoRNNWeights",
    "LEMWeights",
    "OscillatorWeights",
    "SequenceOptions",
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
