"""Models by name: the names users write, and the classes that are built from them."""

from __future__ import annotations

from anharmonic import _checks, _plugins
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.nn.graph.graphcon_network import GraphCONNetwork
from anharmonic.nn.graph.plain import PlainGNN
from anharmonic.nn.graph.textbook import GAT, GCN
from anharmonic.nn.ode.matrix_form import NeuralODE
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.sequence.cornn import CoRNN, CoRNNCell
from anharmonic.nn.sequence.fastgrnn import FastGRNN
from anharmonic.nn.sequence.lem import LEM, LEMCell
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator, NeuralOscillator
from anharmonic.nn.sequence.resonator_bank import ResonatorBank
from anharmonic.nn.sequence.skew import SkewRNN
from anharmonic.nn.sequence.torch_layers import GRU, LSTM, RNN, ChronoLSTM
from anharmonic.nn.sequence.unicornn import UnICORNN, UnICORNNCell
from anharmonic.nn.store import Stored, storable

SEQUENCE_LAYERS: dict[str, type[Stored]] = {
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
"""Sequence layers by name: this package's own first, then those to compare with."""

GRAPH_NETWORKS: dict[str, type[GraphNetwork]] = {
    "GraphCON": GraphCONNetwork,
    "GradientGating": GradientGatingNetwork,
    "PlainGNN": PlainGNN,
    "GCN": GCN,
    "GAT": GAT,
}
"""Networks for graph tasks by name: this package's own first, then those to compare with."""

TABULAR_NETWORKS: dict[str, type[Stored]] = {"NeuralODE": NeuralODENetwork}
"""Networks for tables of numbers by name."""

_KINDS: dict[str, tuple[dict[str, type[Stored]], _plugins.Group]] = {
    "sequence": (SEQUENCE_LAYERS, "anharmonic.sequence_models"),
    "graph": ({**GRAPH_NETWORKS}, "anharmonic.graph_models"),
    "tabular": (TABULAR_NETWORKS, "anharmonic.tabular_models"),
}
storable(*(model for models, _ in _KINDS.values() for model in models.values()))
storable(CoRNNCell, UnICORNNCell, LEMCell, NeuralODE)


def list_models(kind: str = "sequence") -> list[str]:
    """Names of models: this package's first, then those that other installed packages add.

    Args:
        kind: "sequence" for the layers that ``SequenceModel`` takes by name, "graph" for the
            networks of graph tasks, "tabular" for those of tables of numbers.

    Raises:
        ValueError: If the kind is unknown.

    Example:
        >>> list_models()[:4]
        ['CoRNN', 'UnICORNN', 'LEM', 'NeuralOscillator']
        >>> list_models("graph")[:3]
        ['GraphCON', 'GradientGating', 'PlainGNN']
        >>> list_models("tabular")
        ['NeuralODE']
    """
    own, group = _KINDS[_checks.choice("kind", kind, _KINDS)]
    return [*own, *_plugins.names(group)]


def model_kind(name: str) -> str:
    """What a model takes: a "sequence", a "graph" or "tabular" data.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> model_kind("LEM"), model_kind("GraphCON")
        ('sequence', 'graph')
    """
    known = canonical_name(name)
    return next(kind for kind in _KINDS if known in list_models(kind))


def canonical_name(name: str, kind: str | None = None) -> str:
    """Return the model's name as it is written here, whatever the case it came in.

    Args:
        name: Its name, in upper or lower case.
        kind: "sequence", "graph" or "tabular"; None for any.

    Raises:
        ValueError: If there is no such model; the message lists the names and the nearest.

    Example:
        >>> canonical_name("graphcon")
        'GraphCON'
    """
    kinds = _KINDS if kind is None else (kind,)
    return _checks.name_of("model", name, [n for one in kinds for n in list_models(one)])


def model_class(name: str) -> type[Stored]:
    """The class of a model: a sequence layer, or a network for graph tasks or tables.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> model_class("LEM").__name__, model_class("GraphCON").__name__
        ('LEM', 'GraphCONNetwork')
    """
    known = canonical_name(name)
    own, group = _KINDS[model_kind(known)]
    if known in own:
        return own[known]
    found: type[Stored] = _plugins.load(group, known)
    return found
