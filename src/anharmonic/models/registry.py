"""Models by name: the names users write, and the classes that are built from them."""

from __future__ import annotations

from anharmonic import _checks
from anharmonic.models.graph.baselines import GCNII, PlainGNN
from anharmonic.models.graph.encoder_decoder import GraphNetwork
from anharmonic.models.graph.gradient_gating_network import GradientGatingNetwork
from anharmonic.models.graph.graphcon_network import GraphCONNetwork
from anharmonic.models.heads import SequenceModel
from anharmonic.models.sequence import LAYERS
from anharmonic.models.sequence.cornn import CoRNNCell
from anharmonic.models.sequence.lem import LEMCell
from anharmonic.models.sequence.unicornn import UnICORNNCell
from anharmonic.models.store import Stored

GRAPH_NETWORKS: dict[str, type[GraphNetwork]] = {
    "GraphCON": GraphCONNetwork,
    "GradientGating": GradientGatingNetwork,
    "PlainGNN": PlainGNN,
    "GCNII": GCNII,
}
"""Networks for graph tasks by name: this package's first, then the baselines."""

_MODELS: dict[str, type[Stored]] = {**LAYERS, **GRAPH_NETWORKS}
_OTHERS: tuple[type[Stored], ...] = (CoRNNCell, UnICORNNCell, LEMCell, SequenceModel)

STORED: dict[str, type[Stored]] = {
    c.__name__: c for c in (*LAYERS.values(), *_OTHERS, *GRAPH_NETWORKS.values())
}
"""Every class that can be saved and loaded, by name."""


def list_models(kind: str = "sequence") -> list[str]:
    """Names of models, this package's first, then the baselines.

    Args:
        kind: "sequence" for the layers that ``SequenceModel`` takes by name, "graph" for the
            networks of graph tasks.

    Raises:
        ValueError: If the kind is unknown.

    Example:
        >>> list_models()[:4]
        ['CoRNN', 'UnICORNN', 'LEM', 'NeuralOscillator']
        >>> list_models("graph")
        ['GraphCON', 'GradientGating', 'PlainGNN', 'GCNII']
    """
    _checks.choice("kind", kind, ("sequence", "graph"))
    return list(LAYERS if kind == "sequence" else GRAPH_NETWORKS)


def canonical_name(name: str) -> str:
    """The model's name as it is written here, whatever the case it came in.

    Raises:
        ValueError: If there is no such model; the message lists the names and the nearest.

    Example:
        >>> canonical_name("graphcon")
        'GraphCON'
    """
    by_lower = {known.lower(): known for known in _MODELS}
    if isinstance(name, str) and name.lower() in by_lower:
        return by_lower[name.lower()]
    return _checks.choice("model", name, _MODELS)


def model_class(name: str) -> type[Stored]:
    """The class of a model: a sequence layer or a network for graph tasks.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> model_class("LEM").__name__, model_class("GraphCON").__name__
        ('LEM', 'GraphCONNetwork')
    """
    return _MODELS[canonical_name(name)]
