"""The papers behind the models, as BibTeX."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from anharmonic import _checks
from anharmonic.nn.registry import ALIASES

_PAPERS = {
    "CoRNN": ["rusch2021cornn"],
    "UnICORNN": ["rusch2021unicornn"],
    "LEM": ["rusch2022lem"],
    "NeuralOscillator": ["lanthaler2023oscillators"],
    "MultiLayerNeuralOscillator": ["lanthaler2023oscillators"],
    "SkewRNN": ["nestaas2022theoretically"],
    "LinOSS": ["rusch2025linoss", "boyer2025dissipate"],
    "LinOSSNetwork": ["rusch2025linoss", "boyer2025dissipate"],
    "RNN": ["elman1990finding"],
    "LSTM": ["hochreiter1997lstm"],
    "GRU": ["cho2014gru"],
    "ChronoLSTM": ["hochreiter1997lstm", "tallec2018chrono"],
    "AntisymmetricRNN": ["chang2019antisymmetric"],
    "GatedAntisymmetricRNN": ["chang2019antisymmetric"],
    "ExpRNN": ["lezcano2019exprnn"],
    "IndRNN": ["li2018indrnn"],
    "FastRNN": ["kusupati2018fastgrnn"],
    "FastGRNN": ["kusupati2018fastgrnn"],
    "ResonatorBank": ["lanthaler2023oscillators"],
    "Resonators": ["lanthaler2023oscillators"],
    "LipschitzRNN": ["erichson2021lipschitz"],
    "GraphCON": ["rusch2022graphcon"],
    "GradientGating": ["rusch2023gradient"],
    "PlainGNN": ["fey2019pyg"],
    "GCN": ["kipf2017gcn"],
    "GAT": ["velickovic2018gat"],
    "GCNII": ["chen2020gcnii"],
    "NeuralODE": ["nestaas2022theoretically", "chen2018neural"],
}


def _entries() -> list[str]:
    """Read all BibTeX entries."""
    text = files("anharmonic.nn").joinpath("citations.bib").read_text(encoding="utf-8")
    return text.strip().split("\n\n")


def cite(model: Any) -> str:
    """Return the BibTeX of the papers that a model comes from.

    Args:
        model: A model, its class, or its name.

    Raises:
        ValueError: If the model is not from this package.

    Example:
        >>> print(cite("LEM").splitlines()[0])
        @inproceedings{rusch2022lem,
    """
    if isinstance(model, str):
        named = ALIASES.get(model.lower(), model)
        name, chrono = _checks.name_of("model", named, _PAPERS), False
    else:
        kind = model if isinstance(model, type) else type(model)
        names = [base.__name__.removesuffix("Cell").removesuffix("Network") for base in kind.mro()]
        if kind.__name__ == "SequenceModel" and not isinstance(model, type):
            return cite(model.layer)
        name = next((name for name in names if name in _PAPERS), "")
        advice = "cite the source of your own model"
        _checks.require(bool(name), "model", kind.__name__, "one of this package", advice)
        chrono = getattr(model, "chrono_length", None) is not None
    papers = list(_PAPERS[name])
    if chrono and "tallec2018chrono" not in papers:
        papers.append("tallec2018chrono")
    entries = {entry.partition("{")[2].partition(",")[0]: entry for entry in _entries()}
    return "\n\n".join(entries[paper] for paper in papers)
