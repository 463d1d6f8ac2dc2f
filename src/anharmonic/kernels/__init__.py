"""The recurrences as pure functions on tensors: one call runs a whole stack over a whole sequence.

No ``nn.Module``, no files and no randomness live here. Every function takes time-major tensors and
picks a backend; the readable one is ``kernels/<name>/reference.py``.
"""

from anharmonic.kernels.cornn import CoRNNWeights, cornn
from anharmonic.kernels.dispatch import available_backends, use_backend
from anharmonic.kernels.lem import LEMWeights, lem
from anharmonic.kernels.unicornn import UnICORNNWeights, unicornn

__all__ = [
    "CoRNNWeights",
    "LEMWeights",
    "UnICORNNWeights",
    "available_backends",
    "cornn",
    "lem",
    "unicornn",
    "use_backend",
]
