"""Recurrent models, one file each."""

from anharmonic.models.sequence.baselines.gru import GRU
from anharmonic.models.sequence.baselines.lstm import LSTM, ChronoLSTM
from anharmonic.models.sequence.baselines.rnn import RNN
from anharmonic.models.sequence.cornn import CoRNN
from anharmonic.models.sequence.lem import LEM
from anharmonic.models.sequence.unicornn import UnICORNN
from anharmonic.models.store import Stored

LAYERS: dict[str, type[Stored]] = {
    "CoRNN": CoRNN,
    "UnICORNN": UnICORNN,
    "LEM": LEM,
    "RNN": RNN,
    "LSTM": LSTM,
    "GRU": GRU,
    "ChronoLSTM": ChronoLSTM,
}
"""Sequence layers by name: this package's first, then the baselines."""
