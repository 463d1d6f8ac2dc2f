"""Recurrences and graph operations as functions on tensors: no ``nn.Module``, no files.

One call runs a whole stack over a whole sequence, on time-major tensors. Every function chooses a
backend. A model is an ``Equation`` in its own file, such as ``ops/lem.py``.
"""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names
from anharmonic.ops.backend import available_backends, use_backend, use_precision
from anharmonic.ops.cornn import CoRNNEquation, CoRNNWeights, cornn
from anharmonic.ops.equation import Compiled, Equation, HiddenState, State
from anharmonic.ops.lem import LEMEquation, LEMWeights, lem
from anharmonic.ops.oscillator import OscillatorEquation, OscillatorWeights, oscillator
from anharmonic.ops.sequence import SequenceOptions, run
from anharmonic.ops.skew import SkewEquation, SkewWeights, skew
from anharmonic.ops.unicornn import UnICORNNEquation, UnICORNNWeights, unicornn

if TYPE_CHECKING:
    from anharmonic.ops.gate import gradient_gate
    from anharmonic.ops.graph import Adjacency
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = [
    "Adjacency",
    "CoRNNEquation",
    "CoRNNWeights",
    "Compiled",
    "Equation",
    "HiddenState",
    "LEMEquation",
    "LEMWeights",
    "OscillatorEquation",
    "OscillatorWeights",
    "SequenceOptions",
    "SkewEquation",
    "SkewWeights",
    "State",
    "UnICORNNEquation",
    "UnICORNNWeights",
    "available_backends",
    "cornn",
    "gradient_gate",
    "lem",
    "oscillator",
    "run",
    "skew",
    "unicornn",
    "use_backend",
    "use_precision",
]
