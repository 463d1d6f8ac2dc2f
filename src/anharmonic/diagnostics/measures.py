"""The diagnostics by name, each as plain numbers for a model and some data: what training logs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.diagnostics import adjoint, energy, gradients, smoothing, timescales, weights
from anharmonic.diagnostics.lyapunov import lyapunov_exponent
from anharmonic.diagnostics.recurrence import layer_of
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.registry import model_class
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.unicornn import UnICORNN

LYAPUNOV_STEPS = 500
"""Steps at most of the sequence whose exponent is estimated; the first fifth does not count."""
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Which quantiles of the effective steps are logged."""


@dataclass(frozen=True)
class Probe:
    """The data a model is looked at with.

    Args:
        inputs: What the model is called with: (x, ...) for sequences, x [B, T, F] and none padded;
            (x,) for rows of numbers, x [B, F]; (x, graph, ...) for graphs.
        loss: From a prediction (sequences: at the last step) [B, O] to the loss of the batch, a
            sum; None where there is no target.
    """

    inputs: tuple[Any, ...]
    loss: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Measure:
    """A diagnostic.

    Args:
        about: What it measures, in words.
        fits: Whether a class of models has it.
        measure: Measures a model with a probe; numbers, lists and texts only.
    """

    about: str
    fits: Callable[[type], bool]
    measure: Callable[[Any, Probe], dict[str, Any]]


def applicable(model: str) -> list[str]:
    """The diagnostics of a model, by name.

    Args:
        model: The model's name, as ``list_models`` has it.

    Example:
        >>> applicable("LEM"), applicable("GraphCON")
        (['gradients', 'timescales', 'lyapunov'], ['smoothing'])
    """
    kind = model_class(model)
    return [name for name, measure in MEASURES.items() if measure.fits(kind)]


def check_applicable(model: str, names: Sequence[str]) -> None:
    """Refuses diagnostics that a model does not have.

    Args:
        model: The model's name.
        names: Diagnostics.

    Raises:
        ValueError: If one is not the model's.

    Example:
        >>> check_applicable("LEM", ["gradients"])
    """
    known = applicable(model)
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ValueError(
            _checks.message(
                f"diagnose must name what {model} has: {', '.join(known) or 'nothing'}",
                ", ".join(wrong),
                "choose among these" if known else "leave it out",
            )
        )


def measure(model: Any, probe: Probe, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Measures a model, whose weights, modes and gradients stay as they are.

    Args:
        model: A ``SequenceModel``, a graph network or a ``NeuralODENetwork``.
        probe: The data.
        names: Of ``MEASURES``.

    Returns:
        By name what was measured: JSON values, None in place of numbers that are not finite; for a
        diagnostic that failed (a graph without edges, a weight at zero) {"failed": why}.

    Example:
        >>> from anharmonic.nn.heads import SequenceModel
        >>> model = SequenceModel("UnICORNN", 2, 1, hidden_size=3)
        >>> measure(model, Probe((torch.zeros(1, 5, 2),)), ["weights"])["weights"].keys()
        dict_keys(['norms'])
    """
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            found[name] = _plain(MEASURES[name].measure(model, probe))
        except (ValueError, TypeError) as error:
            found[name] = {"failed": " ".join(str(error).split())}
    return found


def _plain(value: Any) -> Any:
    """JSON values, rounded to seven digits."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().tolist()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def distances(steps: int) -> list[int]:
    """Time distances at which gradients are logged: all up to 8, then eight per octave.

    Example:
        >>> distances(12)
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
        >>> len(distances(1000)) < 70
        True
    """
    places = (round(2 ** (k / 8)) for k in range(8 * max(steps, 1).bit_length() + 8))
    return sorted({0, *range(min(steps, 8) + 1), *(p for p in places if p <= steps), steps})


def _gradients(model: Any, probe: Probe) -> dict[str, Any]:
    x = probe.inputs[0].transpose(0, 1)
    loss = probe.loss
    if loss is None:
        found = gradients.state_gradients(model, x)
    else:
        found = gradients.state_gradients(model, x, lambda output: loss(model.linear(output)))
    places = distances(len(x))
    return {"distance": places, "size": found.median(1).values[places]}


def _timescales(model: Any, probe: Probe) -> dict[str, Any]:
    layer = layer_of(model)
    if isinstance(layer, UnICORNN):
        steps = timescales.effective_steps(layer).double()
        ranks = torch.tensor(QUANTILES, dtype=steps.dtype, device=steps.device)
        return {"quantiles": QUANTILES, "h": steps.quantile(ranks, dim=1).t()}
    found = {}
    for name, values in timescales.gates(layer, probe.inputs[0].transpose(0, 1)).items():
        top = layer.dt if isinstance(layer, LEM) else 1.0
        # Bins that stay, so that epochs can be compared; what is faster or slower is counted too.
        values = values.clamp(1e-4 * top, top)
        found[name] = vars(timescales.scale_histogram(values, low=1e-4 * top, high=top))
    return found


def _energy(model: Any, probe: Probe) -> dict[str, Any]:
    layer, x = layer_of(model), probe.inputs[0].transpose(0, 1)
    along = energy.energy_along(layer, x)
    found: dict[str, Any] = {"last": along[-1].mean(1), "largest": along.amax((0, 2))}
    if isinstance(layer, UnICORNN):
        found["reversibility_error"] = energy.reversibility_error(layer, x).max()
    return found


def _weights(model: Any, probe: Probe) -> dict[str, Any]:
    layer = layer_of(model)
    if isinstance(layer, UnICORNN):
        return {"norms": weights.weight_norms(layer)}
    found = weights.weight_assumption(layer)
    return {
        "dt": found[0].dt,
        "eta": [one.eta for one in found],
        "norms": [one.norms for one in found],
        "holds": all(one.holds for one in found),
    }


def _lyapunov(model: Any, probe: Probe) -> dict[str, Any]:
    x = probe.inputs[0][:1, -LYAPUNOV_STEPS:].transpose(0, 1)
    found = lyapunov_exponent(model, x, discard=len(x) // 5)
    return {"exponent": found[-1], "steps": len(found)}


def _smoothing(model: Any, probe: Probe) -> dict[str, Any]:
    x, graph, *others = probe.inputs
    states = smoothing.layer_features(model, x, graph, *others)
    return {
        "dirichlet_energy": [float(smoothing.dirichlet_energy(s, graph)) for s in states],
        "mean_average_distance": [float(smoothing.mean_average_distance(s, graph)) for s in states],
    }


def _adjoint(model: Any, probe: Probe) -> dict[str, Any]:
    loss = probe.loss if probe.loss is not None else lambda prediction: prediction.sum()
    norms = adjoint.network_adjoint_norms(model, probe.inputs[0], loss)
    return {
        "norm": norms.median(1).values,
        "score": adjoint.adjoint_score(norms).mean(),
        "nfe": model.ode.nfe,
    }


def _is_sequence(kind: type) -> bool:
    return not issubclass(kind, GraphNetwork | NeuralODENetwork) and issubclass(kind, nn.Module)


def _is_graph(kind: type) -> bool:
    return issubclass(kind, GraphNetwork)


MEASURES: dict[str, Measure] = {
    "gradients": Measure(
        "size of the loss gradient in the states, against the time distance",
        _is_sequence,
        _gradients,
    ),
    "timescales": Measure(
        "gates of LEM and LSTM as a histogram, effective steps of UnICORNN",
        lambda kind: issubclass(kind, LEM | UnICORNN | nn.LSTM),
        _timescales,
    ),
    "energy": Measure(
        "energy of oscillators along a trajectory; UnICORNN: error of undoing it in floats",
        lambda kind: issubclass(kind, energy.HAVE_ENERGY),
        _energy,
    ),
    "weights": Measure(
        "coRNN: assumption (2.16); UnICORNN: norms of w",
        lambda kind: issubclass(kind, CoRNN | UnICORNN),
        _weights,
    ),
    "lyapunov": Measure("largest Lyapunov exponent along a sequence", _is_sequence, _lyapunov),
    "smoothing": Measure(
        "Dirichlet energy and mean average distance, layer by layer", _is_graph, _smoothing
    ),
    "adjoint": Measure(
        "neural ODEs: norm of the adjoint over time, its score, function evaluations",
        lambda kind: issubclass(kind, NeuralODENetwork),
        _adjoint,
    ),
}
"""Every diagnostic by its name."""
