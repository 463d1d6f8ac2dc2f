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

from anharmonic.kernels import use_backend, use_precision
from anharmonic.kernels.adjacency import Adjacency
from anharmonic.models.citations import cite
from anharmonic.models.graph.gradient_gating import GradientGating
from anharmonic.models.graph.graphcon import GraphCON
from anharmonic.models.heads import SequenceModel
from anharmonic.models.inputs import State
from anharmonic.models.ode.matrix_form import NeuralODE
from anharmonic.models.ode.network import NeuralODENetwork
from anharmonic.models.ode.solve import StiffError
from anharmonic.models.registry import list_models
from anharmonic.models.sequence.baselines.antisymmetric import (
    AntisymmetricRNN,
    GatedAntisymmetricRNN,
)
from anharmonic.models.sequence.baselines.exprnn import ExpRNN
from anharmonic.models.sequence.baselines.fastrnn import FastGRNN, FastRNN
from anharmonic.models.sequence.baselines.gru import GRU
from anharmonic.models.sequence.baselines.indrnn import IndRNN
from anharmonic.models.sequence.baselines.lipschitz import LipschitzRNN
from anharmonic.models.sequence.baselines.lstm import LSTM, ChronoLSTM
from anharmonic.models.sequence.baselines.rnn import RNN
from anharmonic.models.sequence.cornn import CoRNN, CoRNNCell
from anharmonic.models.sequence.hamiltonian import hamiltonian
from anharmonic.models.sequence.lem import LEM, LEMCell
from anharmonic.models.sequence.multilayer_oscillator import MultiLayerNeuralOscillator
from anharmonic.models.sequence.oscillator import NeuralOscillator
from anharmonic.models.sequence.oscillator_cases import as_neural_oscillator, harmonic_oscillators
from anharmonic.models.sequence.pendula import PendulumNetwork
from anharmonic.models.sequence.skew import SkewRNN
from anharmonic.models.sequence.unicornn import UnICORNN, UnICORNNCell
from anharmonic.models.stability import StabilityWarning
from anharmonic.models.store import from_pretrained, save_pretrained

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "LEM",
    "LSTM",
    "RNN",
    "Adjacency",
    "AntisymmetricRNN",
    "ChronoLSTM",
    "CoRNN",
    "CoRNNCell",
    "ExpRNN",
    "FastGRNN",
    "FastRNN",
    "GatedAntisymmetricRNN",
    "GradientGating",
    "GraphCON",
    "IndRNN",
    "LEMCell",
    "LipschitzRNN",
    "MultiLayerNeuralOscillator",
    "NeuralODE",
    "NeuralODENetwork",
    "NeuralOscillator",
    "PendulumNetwork",
    "SequenceModel",
    "SkewRNN",
    "StabilityWarning",
    "State",
    "StiffError",
    "UnICORNN",
    "UnICORNNCell",
    "__version__",
    "as_neural_oscillator",
    "cite",
    "from_pretrained",
    "hamiltonian",
    "harmonic_oscillators",
    "list_models",
    "save_pretrained",
    "use_backend",
    "use_precision",
]
