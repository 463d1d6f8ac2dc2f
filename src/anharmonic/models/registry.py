"""Models by name: the names users write, and the classes that are built from them."""

from __future__ import annotations

from anharmonic.models.heads import SequenceModel
from anharmonic.models.sequence import LAYERS, canonical_name
from anharmonic.models.sequence.cornn import CoRNNCell
from anharmonic.models.sequence.lem import LEMCell
from anharmonic.models.sequence.unicornn import UnICORNNCell
from anharmonic.models.store import Stored

_OTHERS: tuple[type[Stored], ...] = (CoRNNCell, UnICORNNCell, LEMCell, SequenceModel)

__all__ = ["STORED", "canonical_name", "layer_class", "list_models"]

STORED: dict[str, type[Stored]] = {**LAYERS, **{c.__name__: c for c in _OTHERS}}
"""Every class that can be saved and loaded, by name."""


def list_models() -> list[str]:
    """Names of the sequence layers, this package's first, then the baselines.

    Example:
        >>> list_models()
        ['CoRNN', 'UnICORNN', 'LEM', 'RNN', 'LSTM', 'GRU', 'ChronoLSTM']
    """
    return list(LAYERS)


def layer_class(name: str) -> type[Stored]:
    """The class of a sequence layer.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> layer_class("LEM").__name__
        'LEM'
    """
    return LAYERS[canonical_name(name)]
