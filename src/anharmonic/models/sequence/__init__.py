"""Recurrent models, one file each."""

from anharmonic import _checks
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
from anharmonic.models.sequence.cornn import CoRNN
from anharmonic.models.sequence.lem import LEM
from anharmonic.models.sequence.multilayer_oscillator import MultiLayerNeuralOscillator
from anharmonic.models.sequence.oscillator import NeuralOscillator
from anharmonic.models.sequence.unicornn import UnICORNN
from anharmonic.models.store import Stored

LAYERS: dict[str, type[Stored]] = {
    "CoRNN": CoRNN,
    "UnICORNN": UnICORNN,
    "LEM": LEM,
    "NeuralOscillator": NeuralOscillator,
    "MultiLayerNeuralOscillator": MultiLayerNeuralOscillator,
    "RNN": RNN,
    "LSTM": LSTM,
    "GRU": GRU,
    "ChronoLSTM": ChronoLSTM,
    "AntisymmetricRNN": AntisymmetricRNN,
    "GatedAntisymmetricRNN": GatedAntisymmetricRNN,
    "ExpRNN": ExpRNN,
    "IndRNN": IndRNN,
    "FastRNN": FastRNN,
    "FastGRNN": FastGRNN,
    "LipschitzRNN": LipschitzRNN,
}
"""Sequence layers by name: this package's first, then the baselines."""


def canonical_name(name: str) -> str:
    """The model's name as it is written here, whatever the case it came in.

    Raises:
        ValueError: If there is no such model; the message lists the names and the nearest.

    Example:
        >>> canonical_name("lem")
        'LEM'
    """
    by_lower = {known.lower(): known for known in LAYERS}
    if isinstance(name, str) and name.lower() in by_lower:
        return by_lower[name.lower()]
    return _checks.choice("model", name, LAYERS)
