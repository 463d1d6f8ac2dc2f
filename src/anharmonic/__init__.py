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
from anharmonic.models.registry import list_models
from anharmonic.models.sequence.baselines.gru import GRU
from anharmonic.models.sequence.baselines.lstm import LSTM, ChronoLSTM
from anharmonic.models.sequence.baselines.rnn import RNN
from anharmonic.models.sequence.cornn import CoRNN, CoRNNCell
from anharmonic.models.sequence.lem import LEM, LEMCell
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
    "ChronoLSTM",
    "CoRNN",
    "CoRNNCell",
    "GradientGating",
    "GraphCON",
    "LEMCell",
    "SequenceModel",
    "StabilityWarning",
    "State",
    "UnICORNN",
    "UnICORNNCell",
    "__version__",
    "cite",
    "from_pretrained",
    "list_models",
    "save_pretrained",
    "use_backend",
    "use_precision",
]
