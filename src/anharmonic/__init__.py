"""anharmonic: physics-inspired sequence and graph models.

Example:
    >>> import torch, anharmonic as ah
    >>> layer = ah.LEM(input_size=6, hidden_size=32, dt=0.01, batch_first=True)
    >>> output, state = layer(torch.randn(8, 1000, 6))         # as torch.nn.LSTM
    >>> output, state = layer(torch.randn(8, 1000, 6), state)  # carried on
    >>> y_t, state = layer.step(torch.randn(8, 6), state)      # streaming
    >>> output.shape, y_t.shape
    (torch.Size([8, 1000, 32]), torch.Size([8, 32]))
"""

from typing import TYPE_CHECKING, Any

from anharmonic import _checks, _plugins
from anharmonic._plugins import exported_names
from anharmonic._version import __version__

if TYPE_CHECKING:
    from anharmonic.nn.citations import cite
    from anharmonic.nn.graph.gradient_gating import GradientGating
    from anharmonic.nn.graph.graphcon import GraphCON
    from anharmonic.nn.heads import SequenceModel
    from anharmonic.nn.ode.matrix_form import NeuralODE
    from anharmonic.nn.ode.network import NeuralODENetwork
    from anharmonic.nn.ode.solve import StiffError
    from anharmonic.nn.registry import list_models
    from anharmonic.nn.sequence.cornn import CoRNN, CoRNNCell
    from anharmonic.nn.sequence.fastgrnn import FastGRNN
    from anharmonic.nn.sequence.hamiltonian import hamiltonian
    from anharmonic.nn.sequence.lem import LEM, LEMCell
    from anharmonic.nn.sequence.linoss import LinOSS
    from anharmonic.nn.sequence.linoss_network import LinOSSBlock, LinOSSNetwork
    from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator, NeuralOscillator
    from anharmonic.nn.sequence.resonator_bank import ResonatorBank
    from anharmonic.nn.sequence.skew import SkewRNN
    from anharmonic.nn.sequence.torch_layers import GRU, LSTM, RNN, ChronoLSTM
    from anharmonic.nn.sequence.unicornn import UnICORNN, UnICORNNCell
    from anharmonic.nn.stability import StabilityWarning
    from anharmonic.nn.store import from_pretrained, save_pretrained
    from anharmonic.ops import State, use_backend, use_precision
    from anharmonic.ops.compiler.recurrence import explain, recurrence
    from anharmonic.ops.graph import Adjacency

__all__ = [
    "GRU",
    "LEM",
    "LSTM",
    "RNN",
    "Adjacency",
    "ChronoLSTM",
    "CoRNN",
    "CoRNNCell",
    "FastGRNN",
    "GradientGating",
    "GraphCON",
    "LEMCell",
    "LinOSS",
    "LinOSSBlock",
    "LinOSSNetwork",
    "MultiLayerNeuralOscillator",
    "NeuralODE",
    "NeuralODENetwork",
    "NeuralOscillator",
    "ResonatorBank",
    "SequenceModel",
    "SkewRNN",
    "StabilityWarning",
    "State",
    "StiffError",
    "UnICORNN",
    "UnICORNNCell",
    "__version__",
    "cite",
    "explain",
    "from_pretrained",
    "hamiltonian",
    "list_models",
    "recurrence",
    "save_pretrained",
    "use_backend",
    "use_precision",
]

# Models that moved from version 0.1 to the package anharmonic-papers.
_MOVED = (
    "AntisymmetricRNN",
    "ExpRNN",
    "FastRNN",
    "GatedAntisymmetricRNN",
    "IndRNN",
    "LipschitzRNN",
)
# Helpers that moved from version 0.1 and must now be imported from that package.
_HELPERS = {
    "PendulumNetwork": "pendula",
    "as_neural_oscillator": "oscillator_cases",
    "harmonic_oscillators": "oscillator_cases",
}


_exported, __dir__ = exported_names(__name__)


def __getattr__(name: str) -> Any:
    """Return a public name, or a model added by another installed package."""
    if name in __all__:
        return _exported(name)
    if name in _plugins.names("anharmonic.sequence_models"):
        return _plugins.load("anharmonic.sequence_models", name)
    if name in _MOVED:
        expected = f"anharmonic.{name} needs the package anharmonic-papers"
        advice = _checks.GET_PAPERS
        raise AttributeError(_checks.message(expected, "an environment without it", advice))
    if name in _HELPERS:
        expected = f"{name} is part of the package anharmonic-papers"
        advice = f"import it from anharmonic_papers.models.{_HELPERS[name]}"
        raise AttributeError(_checks.message(expected, f"anharmonic.{name}", advice))
    raise AttributeError(f"module 'anharmonic' has no attribute {name!r}")
