"""Models by name: the names users write, the classes built from them, and their arguments."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import itertools
import pkgutil
import re
import sys
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anharmonic import _checks, _plugins

if TYPE_CHECKING:
    from torch import nn

ALIASES = {"g2": "GradientGating"}
"""Other names of models, in lower case: those of their papers."""
_LAYERS = "anharmonic.nn.sequence."
_GRAPH = "anharmonic.nn.graph."

SEQUENCE_LAYERS = {
    "CoRNN": f"{_LAYERS}cornn:CoRNN",
    "UnICORNN": f"{_LAYERS}unicornn:UnICORNN",
    "LEM": f"{_LAYERS}lem:LEM",
    "NeuralOscillator": f"{_LAYERS}oscillator:NeuralOscillator",
    "MultiLayerNeuralOscillator": f"{_LAYERS}oscillator:MultiLayerNeuralOscillator",
    "SkewRNN": f"{_LAYERS}skew:SkewRNN",
    "LinOSSNetwork": f"{_LAYERS}linoss_network:LinOSSNetwork",
    "RNN": f"{_LAYERS}torch_layers:RNN",
    "LSTM": f"{_LAYERS}torch_layers:LSTM",
    "GRU": f"{_LAYERS}torch_layers:GRU",
    "ChronoLSTM": f"{_LAYERS}torch_layers:ChronoLSTM",
    "FastGRNN": f"{_LAYERS}fastgrnn:FastGRNN",
    "ResonatorBank": f"{_LAYERS}resonator_bank:ResonatorBank",
}
"""Sequence layers by name: this package's own first, then the baselines.

Each class is written as in entry points and imported when the model is first used.
"""

GRAPH_NETWORKS = {
    "GraphCON": f"{_GRAPH}graphcon_network:GraphCONNetwork",
    "GradientGating": f"{_GRAPH}gradient_gating_network:GradientGatingNetwork",
    "PlainGNN": f"{_GRAPH}plain:PlainGNN",
    "GCN": f"{_GRAPH}textbook:GCN",
    "GAT": f"{_GRAPH}textbook:GAT",
}
"""Networks for graph tasks by name: this package's own first, then the baselines."""

TABULAR_NETWORKS = {"NeuralODE": "anharmonic.nn.ode.network:NeuralODENetwork"}
"""Networks for tables of numbers by name."""

FITTED_MODELS = {"Resonators": "anharmonic.nn.resonators.model:Resonators"}
"""Sequence models by name that are fitted in one pass, without epochs or gradients."""

# The models of every kind, and the entry points through which other packages add models.
_KINDS: dict[str, tuple[dict[str, str], _plugins.Group | None]] = {
    "sequence": (SEQUENCE_LAYERS, "anharmonic.sequence_models"),
    "graph": (GRAPH_NETWORKS, "anharmonic.graph_models"),
    "tabular": (TABULAR_NETWORKS, "anharmonic.tabular_models"),
    "fitted": (FITTED_MODELS, None),
}
# Packages whose versions identify a model's code.
_KNOWN = ("anharmonic", "anharmonic_papers", "torch", "torch_geometric")
MODEL_KINDS = tuple(_KINDS)
"""All kinds of models, in the order of their listing."""

_PARTS = (
    f"{_LAYERS}cornn:CoRNNCell",
    f"{_LAYERS}unicornn:UnICORNNCell",
    f"{_LAYERS}lem:LEMCell",
    f"{_LAYERS}linoss:LinOSS",
    f"{_LAYERS}linoss_network:LinOSSBlock",
    "anharmonic.nn.heads:SequenceModel",
    "anharmonic.nn.ode.matrix_form:NeuralODE",
)
STORED_CLASSES = {
    path.partition(":")[2]: path
    for path in (*(p for models, _ in _KINDS.values() for p in models.values()), *_PARTS)
}
"""Classes that can be saved, by the name written in a saved model."""


def list_models(kind: str = "sequence") -> list[str]:
    """List the names of models: those of this package, then those of other installed packages.

    Args:
        kind: "sequence" for the layers that ``SequenceModel`` takes by name, "graph" for graph
            networks, "tabular" for networks on tables of numbers, "fitted" for sequence models that
            are fitted in one pass.

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
    """Return the kind of a model: "sequence", "graph", "tabular" or "fitted"; see `list_models`.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> model_kind("LEM"), model_kind("GraphCON")
        ('sequence', 'graph')
    """
    known = canonical_name(name)
    return next(kind for kind in _KINDS if known in list_models(kind))


def canonical_name(name: str, kind: str | None = None) -> str:
    """Return the canonical name of a model, ignoring case.

    Args:
        name: Its name in any case; "G2" is GradientGating.
        kind: "sequence", "graph", "tabular" or "fitted"; None for any.

    Raises:
        ValueError: If there is no such model; the message suggests the nearest name.

    Example:
        >>> canonical_name("graphcon")
        'GraphCON'
    """
    kinds = _KINDS if kind is None else (kind,)
    if isinstance(name, str) and name.lower().startswith("resonator"):
        _check_resonators(name, kinds)
    if isinstance(name, str):
        name = ALIASES.get(name.lower(), name)
    return _checks.name_of("model", name, [n for one in kinds for n in list_models(one)])


def _check_resonators(name: str, kinds: Collection[str]) -> None:
    """Explain the difference between the two resonator models if neither name matches."""
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


def model_class(name: str) -> type[nn.Module]:
    """Return the class of a model: a sequence layer, or a network for graph tasks or tables.

    Raises:
        ValueError: If there is no such model.

    Example:
        >>> model_class("LEM").__name__, model_class("GraphCON").__name__
        ('LEM', 'GraphCONNetwork')
    """
    known = canonical_name(name)
    own, group = _KINDS[model_kind(known)]
    found: type[nn.Module]
    if known in own:
        found = pkgutil.resolve_name(own[known])
    else:
        assert group is not None
        found = _plugins.load(group, known)
    return found


def source_digest(name: str) -> str | None:
    """Return the start of a SHA-256 of the files that define another project's model.

    These are the files of its class and of its base classes. None for models of this project, whose
    versions are recorded, and for classes without a file.

    Example:
        >>> source_digest("LEM") is None
        True
    """
    if any(name in own for own, _ in _KINDS.values()):
        return None
    classes = [one for one in model_class(name).__mro__ if not _is_known(one)]
    try:
        paths = sorted({inspect.getfile(one) for one in classes})
        code = b"".join(Path(path).read_bytes() for path in paths)
    except (OSError, TypeError):
        return None
    return hashlib.sha256(code).hexdigest()[:12] if paths else None


def _is_known(cls: type) -> bool:
    """Whether a class belongs to this project, PyTorch or Python."""
    package = cls.__module__.partition(".")[0]
    return package in _KNOWN or package in sys.stdlib_module_names


def constructor_arguments(cls: type, *, eval_str: bool = False) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor by name.

    ``**kwargs`` stands for the arguments of the base class. For a network it also stands for the
    arguments of its ``block_type`` that ``block_options`` names. ``eval_str`` evaluates annotations
    given as text.

    Example:
        >>> import anharmonic as ah
        >>> list(constructor_arguments(ah.GRU))[:2]
        ['input_size', 'hidden_size']
    """
    arguments: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base):
            _, *given = inspect.signature(
                vars(base)["__init__"], eval_str=eval_str
            ).parameters.values()
            named = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            arguments.update({p.name: p for p in named if p.name not in arguments})
            if not any(p.kind is p.VAR_KEYWORD for p in given):
                break
    block_options = getattr(cls, "block_options", ())
    if block_options:
        known = constructor_arguments(cls.block_type, eval_str=eval_str)  # type: ignore[attr-defined]
        arguments.update({name: known[name] for name in block_options})
    return arguments


def argument_descriptions(cls: type) -> dict[str, str]:
    """Return the description of each argument from the docstrings of a class and its bases.

    Example:
        >>> import anharmonic as ah
        >>> argument_descriptions(ah.LEM)["input_size"]
        'Features per step, F >= 1.'
    """
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= described_arguments(vars(base).get("__doc__") or "")
    return texts


@functools.cache
def descriptions(kind: type) -> Mapping[str, str]:
    """Return the description of each argument, from class docstrings or below the fields."""
    described = argument_descriptions(kind)
    if (options := getattr(kind, "options_class", None)) is not None:
        described |= argument_descriptions(options)
    if dataclasses.is_dataclass(kind):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(tree, ast.ClassDef)
        for entry, text in itertools.pairwise(tree.body):
            if (
                isinstance(entry, ast.AnnAssign)
                and isinstance(entry.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                described[entry.target.id] = " ".join(str(text.value.value).split())
    return described


def described_arguments(docstring: str) -> dict[str, str]:
    r"""Return the description of each argument in a docstring in Google form.

    Example:
        >>> described_arguments("Sum.\n\nArgs:\n    a: The first.\n    b: The second.")
        {'a': 'The first.', 'b': 'The second.'}
    """
    section = inspect.cleandoc(docstring).partition("\nArgs:\n")[2]
    entries = re.split(r"^ {4}(\*{0,2}\w+): ", re.split(r"\n\n|\n(?=\S)", section)[0], flags=re.M)
    pairs = zip(entries[1::2], entries[2::2], strict=True)
    return {name: " ".join(text.split()) for name, text in pairs}
