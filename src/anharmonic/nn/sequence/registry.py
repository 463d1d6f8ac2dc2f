"""Sequence layers by name."""

from __future__ import annotations

from anharmonic import _checks, _plugins
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.fastgrnn import FastGRNN
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator, NeuralOscillator
from anharmonic.nn.sequence.resonator_bank import ResonatorBank
from anharmonic.nn.sequence.skew import SkewRNN
from anharmonic.nn.sequence.torch_layers import GRU, LSTM, RNN, ChronoLSTM
from anharmonic.nn.sequence.unicornn import UnICORNN
from anharmonic.nn.store import Stored

LAYERS: dict[str, type[Stored]] = {
    "CoRNN": CoRNN,
    "UnICORNN": UnICORNN,
    "LEM": LEM,
    "NeuralOscillator": NeuralOscillator,
    "MultiLayerNeuralOscillator": MultiLayerNeuralOscillator,
    "SkewRNN": SkewRNN,
    "RNN": RNN,
    "LSTM": LSTM,
    "GRU": GRU,
    "ChronoLSTM": ChronoLSTM,
    "FastGRNN": FastGRNN,
    "ResonatorBank": ResonatorBank,
}
"""This package's sequence layers: its own first, then those to compare with."""


def layer_names() -> list[str]:
    """Names of all sequence layers: this package's, then those of other installed packages.

    Example:
        >>> layer_names()[:3]
        ['CoRNN', 'UnICORNN', 'LEM']
    """
    return [*LAYERS, *_plugins.names("anharmonic.sequence_models")]


def layer_class(name: str) -> type[Stored]:
    """The class of a sequence layer.

    Args:
        name: Its name, in upper or lower case.

    Raises:
        ValueError: If there is no such layer; the message lists the names and the nearest.

    Example:
        >>> layer_class("lem").__name__
        'LEM'
    """
    known = canonical_name(name)
    if known in LAYERS:
        return LAYERS[known]
    found: type[Stored] = _plugins.load("anharmonic.sequence_models", known)
    return found


def canonical_name(name: str) -> str:
    """The layer's name as it is written here, whatever the case it came in.

    Args:
        name: Its name, in upper or lower case.

    Raises:
        ValueError: If there is no such layer; the message lists the names and the nearest.

    Example:
        >>> canonical_name("lem")
        'LEM'
    """
    return _checks.name_of("model", name, layer_names())
