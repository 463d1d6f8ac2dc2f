"""Models by name: the names users write, and the classes that are built from them."""

from __future__ import annotations

from collections.abc import Collection

from anharmonic import _checks, _plugins
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.nn.graph.graphcon_network import GraphCONNetwork
from anharmonic.nn.graph.plain import PlainGNN
from anharmonic.nn.graph.textbook import GAT, GCN
from anharmonic.nn.ode.matrix_form import NeuralODE
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.resonators.model import Resonators
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

FITTED_MODELS: dict[str, type[Stored]] = {"Resonators": Resonators}
"""Models by name that are fitted to sequences in one pass, without epochs and gradients."""

# The models of every kind, and where other packages add some.
_KINDS: dict[str, tuple[dict[str, type[Stored]], _plugins.Group | None]] = {
    "sequence": (SEQUENCE_LAYERS, "anharmonic.sequence_models"),
    "graph": ({**GRAPH_NETWORKS}, "anharmonic.graph_models"),
    "tabular": (TABULAR_NETWORKS, "anharmonic.tabular_models"),
    "fitted": (FITTED_MODELS, None),
}
MODEL_KINDS = tuple(_KINDS)
"""All kinds, in the order in which models are listed."""
storable(*(model for models, _ in _KINDS.values() for model in models.values()))
storable(CoRNNCell, UnICORNNCell, LEMCell, NeuralODE)


def list_models(kind: str = "sequence") -> list[str]:
    """Names of models: this package's first, then those that other installed packages add.

    Args:
        kind: "sequence" for the layers that ``SequenceModel`` takes by name, "graph" for the
            networks of graph tasks, "tabular" for those of tables of numbers, "fitted" for models
            of sequences that are fitted in one pass.

    Raises:
        ValueError: If the kind is unknown.

    Example:
        >>> list_models()[:4]
        ['CoRNN', 'UnICORNN', 'LEM', 'NeuralOscillator']
        >>> list_models("graph")[:3]
        ['GraphCON', 'GradientGating', 'PlainGNN']
        >>> list_models("tabular")
        ['NeuralODE']
        >>> list_models("fitted")
        ['Resonators']
    """
    own, group = _KINDS[_checks.choice("kind", kind, _KINDS)]
    return [*own, *(() if group is None else _plugins.names(group))]


def model_kind(name: str) -> str:
    """What a model takes: a "sequence", a "graph", "tabular" data; or "fitted", see `list_models`.

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
        kind: "sequence", "graph", "tabular" or "fitted"; None for any.

    Raises:
        ValueError: If there is no such model; the message lists the names and the nearest.

    Example:
        >>> canonical_name("graphcon")
        'GraphCON'
    """
    kinds = _KINDS if kind is None else (kind,)
    if isinstance(name, str) and name.lower().startswith("resonator"):
        _check_resonators(name, kinds)
    return _checks.name_of("model", name, [n for one in kinds for n in list_models(one)])


def _check_resonators(name: str, kinds: Collection[str]) -> None:
    """Tells the model and the layer of resonators apart where neither name fits."""
    named = {one.lower(): kind for kind in ("sequence", "fitted") for one in _KINDS[kind][0]}
    if named.get(name.lower()) in kinds:
        return
    if "fitted" in kinds:
        expected = (
            "the model must be 'Resonators', which is fitted in one pass, or 'ResonatorBank', a "
            "layer that is trained"
        )
        raise ValueError(_checks.message(expected, repr(name), "choose one of the two"))
    if name.lower() == "resonators" and "sequence" in kinds:
        expected = "the layer must be one that is trained, such as 'ResonatorBank'"
        advice = "call anharmonic.nn.Resonators, or `anharmonic train resonators FILE`"
        raise ValueError(_checks.message(expected, repr(name), advice))


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
    assert group is not None
    found: type[Stored] = _plugins.load(group, known)
    return found
