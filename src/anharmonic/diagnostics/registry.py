"""The diagnostics by name, for logs of a training and analysis of a trained model."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic._checks import require
from anharmonic.diagnostics import (
    adjoint,
    conclusions,
    energy,
    gradients,
    smoothing,
    timescales,
    weights,
)
from anharmonic.diagnostics.base import Diagnostic, Log, Panel, Probe, Section, steps_of
from anharmonic.diagnostics.lyapunov import lyapunov_exponent
from anharmonic.diagnostics.recurrence import layer_of, recurrence
from anharmonic.nn.graph.encoder_decoder import GraphNetwork
from anharmonic.nn.graph.gradient_gating import GradientGating
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.ode.solve import StiffError
from anharmonic.nn.registry import model_class, model_kind
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.unicornn import UnICORNN

LYAPUNOV_STEPS = 500
"""Largest number of steps for the exponent; the first fifth is ignored."""
JACOBIAN_STEPS, JACOBIAN_SIZE = 100, 300
"""Largest number of steps, and of state entries, for products of Jacobians."""
FEWEST_BINS = 5
"""Smallest number of non-empty bins for a power law."""
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Logged quantiles of the effective steps."""


def applicable(model: str) -> list[str]:
    """Return the names of the diagnostics of a model.

    Example:
        >>> applicable("LEM"), applicable("GraphCON")
        (['gradients', 'timescales', 'lyapunov'], ['smoothing'])
    """
    if model_kind(model) == "fitted":  # no gradients and no recurrent layer
        return []
    kind = model_class(model)
    return [name for name, one in DIAGNOSTICS.items() if one.fits(kind)]


def check_applicable(model: str, names: Sequence[str]) -> None:
    """Refuse diagnostics that a model does not have."""
    known = applicable(model)
    wrong = [name for name in names if name not in known]
    expected = f"among what {model} has: {', '.join(known) or 'nothing'}"
    advice = "choose among these" if known else "leave it out"
    require(not wrong, "diagnose", ", ".join(wrong), expected, advice)


def measure(model: Any, probe: Probe, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Measure a model without changing its weights, modes and gradients.

    Args:
        model: A ``SequenceModel``, a graph network or a ``NeuralODENetwork``.
        probe: The data.
        names: Of ``DIAGNOSTICS``.

    Returns:
        By name what was measured: JSON values, None in place of numbers that are not finite; for a
        diagnostic that failed (a graph without edges, a stiff ODE) {"failed": why}.

    Example:
        >>> from anharmonic.nn.heads import SequenceModel
        >>> model = SequenceModel("UnICORNN", 2, 1, hidden_size=3)
        >>> measure(model, Probe((torch.zeros(1, 5, 2),)), ["weights"])["weights"].keys()
        dict_keys(['norms'])
    """
    model, probe = _with_features(model, probe)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            found[name] = _plain(DIAGNOSTICS[name].measure(model, probe))
        except (ValueError, TypeError, StiffError) as error:
            if _has_two_directions(model):
                found |= measure(*_forward_direction(model, probe), [name])
            else:
                found[name] = {"failed": " ".join(str(error).split())}
    return found


def describe(model: Any, probe: Probe, name: str, log: Log) -> Section:
    """Return a diagnostic's findings on a trained model, or why it does not apply to its layer."""
    model, probe = _with_features(model, probe)
    try:
        return DIAGNOSTICS[name].describe(model, probe, log)
    except (ValueError, TypeError, StiffError) as error:
        if _has_two_directions(model):
            section = describe(*_forward_direction(model, probe), name, log)
            about = f"{section.about} Of the first layer's forward direction alone."
            return dataclasses.replace(section, about=about)
        reason = " ".join(str(error).split())
        return Section(name.capitalize(), DIAGNOSTICS[name].about, {"not measured": reason})


def _with_features(model: Any, probe: Probe) -> tuple[Any, Probe]:
    """Return model and data with the layer's actual inputs: embedded tokens, or patches."""
    x, same = probe.inputs[0], copy.copy(model)  # shares layer and weights
    if getattr(model, "embedding_size", None) is not None:
        x, same.embedding_size = model.embedding(x).detach(), None
    elif getattr(model, "patch", 1) > 1:
        x, same.patch = model.patches(x)[0], 1
    else:
        return model, probe
    same.input_size = x.shape[-1]
    return same, dataclasses.replace(probe, inputs=(x,))


def _has_two_directions(model: Any) -> bool:
    if not isinstance(model, SequenceModel):
        return False
    return model.layer.bidirectional and getattr(model.layer, "output_is_state", True)


def _forward_direction(model: Any, probe: Probe) -> tuple[Any, Probe]:
    """Return a model of the first layer's forward direction, without a loss."""
    layer = model.layer
    options = model.layer_options | {"num_layers": 1, "bidirectional": False, "dropout": 0.0}
    # Options that describe all layers are those of the first one.
    width = (options.pop("hidden_sizes", None) or [model.hidden_size])[0]
    options.pop("skipped_layers", None)
    if isinstance(dt := options.get("dt"), list | tuple):
        options["dt"] = dt[0]
    half = type(layer)(layer.input_size, width, **options, batch_first=True)
    kept = layer.state_dict()
    half.load_state_dict({name: kept[name] for name in half.state_dict()})
    same = copy.copy(model)
    same._modules = {**model._modules, "layer": half.to(next(layer.parameters()))}
    return same, dataclasses.replace(probe, loss=None)


def _plain(value: Any) -> Any:
    """Return JSON values rounded to seven digits."""
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
    """Return the distances at which gradients are logged: all up to 8, then eight per octave.

    Example:
        >>> distances(12)
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
        >>> len(distances(1000)) < 70
        True
    """
    places = (round(2 ** (k / 8)) for k in range(8 * max(steps, 1).bit_length() + 8))
    return sorted({0, *range(min(steps, 8) + 1), *(p for p in places if p <= steps), steps})


def _x(probe: Probe) -> Tensor:
    """Return the sequences, time first."""
    x: Tensor = probe.inputs[0].transpose(0, 1)
    return x


def _gradients(model: Any, probe: Probe) -> dict[str, Any]:
    x, loss = _x(probe), probe.loss
    if loss is None:
        found = gradients.state_gradients(model, x)
    else:
        found = gradients.state_gradients(model, x, lambda output: loss(model.linear(output)))
    places = distances(len(x))
    return {"distance": places, "size": found.median(1).values[places]}


def _describe_gradients(model: Any, probe: Probe, log: Log) -> Section:
    x, layer = _x(probe), layer_of(model)
    now = _gradients(model, probe)
    places, size = now["distance"], now["size"].tolist()
    curves = {"after training": ([float(k) for k in places], size)}
    if log and "size" in log[0]:
        shown = [value or 0.0 for value in log[0]["size"]]
        curves["before training"] = ([float(k) for k in log[0]["distance"]], shown)
    panels = [Panel(curves, "distance k in steps", "|∂loss_N / ∂state_(N-k)|", log="y")]
    middle = len(places) // 2
    numbers = {f"gradient at distance {places[k]}": f"{size[k]:.3g}" for k in (0, middle, -1)}
    about = (
        "Size of the gradient of the last step's loss in the state k steps before, median of "
        f"{x.shape[1]} sequences."
    )
    if recurrence(layer).size <= JACOBIAN_SIZE:
        norms = gradients.jacobian_norms(layer, x[-JACOBIAN_STEPS:, :1])
        panels.append(Panel({"": steps_of(norms)}, "steps k", "norm over k steps", log="y"))
        about += f" Right: product of the Jacobians of the last {len(norms) - 1} steps, from rest."
        numbers[f"Jacobian over {len(norms) - 1} steps"] = f"{norms[-1]:.3g}"
    readout = getattr(model, "readout", "last")
    found = conclusions.gradients_over_time(
        places, size, has_dt=hasattr(layer, "dt"), readout=readout
    )
    return Section("Gradients over time", about, numbers, tuple(panels), found=found)


def _histograms(layer: Any, probe: Probe) -> dict[str, timescales.Histogram]:
    found = {}
    for name, values in timescales.gates(layer, _x(probe)).items():
        top = layer.dt if isinstance(layer, LEM) else 1.0
        # Fixed bins, so that epochs can be compared; values outside are counted too. They are
        # clamped in float64, where the edges are exact.
        values = values.double().clamp(1e-4 * top, top)
        found[name] = timescales.scale_histogram(values, low=1e-4 * top, high=top)
    return found


def _layer_names(layer: Any) -> list[str]:
    """Return the names of all layers in both directions, forward before reverse."""
    ends = ("", ", reverse")[: 1 + layer.bidirectional]
    return [f"layer {k}{end}" for k in range(1, 1 + layer.num_layers) for end in ends]


def _timescales(model: Any, probe: Probe) -> dict[str, Any]:
    layer = layer_of(model)
    if isinstance(layer, UnICORNN):
        steps = timescales.effective_steps(layer).double()
        ranks = torch.tensor(QUANTILES, dtype=steps.dtype, device=steps.device)
        return {"quantiles": QUANTILES, "h": steps.quantile(ranks, dim=1).t()}
    return {name: vars(one) for name, one in _histograms(layer, probe).items()}


def _describe_timescales(model: Any, probe: Probe, log: Log) -> Section:
    layer = layer_of(model)
    if isinstance(layer, UnICORNN):
        steps = timescales.effective_steps(layer).sort(dim=1).values
        rows = dict(zip(_layer_names(layer), steps, strict=True))
        curves = {name: steps_of(row) for name, row in rows.items()}
        numbers = {
            f"steps of {name}": f"{row[0]:.3g} to {row[-1]:.3g}" for name, row in rows.items()
        }
        panel = Panel(curves, "neuron, in the order of its step", "effective step h", log="y")
        about = "h = dt σ̂(c) of every neuron, sorted."
        return Section("Effective steps", about, numbers, (panel,))
    found = _histograms(layer, probe)
    curves = {}
    for name, one in found.items():
        curves[f"gate {name}"] = (one.centres, [float(count) for count in one.counts])
        if is_power_law(one):
            law = [one.factor * place**one.exponent for place in one.centres]
            curves[f"gate {name}, exponent {one.exponent:.2f}"] = (one.centres, law)
    about = (
        "How often each gate value occurs, over all steps, neurons and layers; a gate g has a time "
        "constant of about 1/g steps. A line is a power law fitted to all bins that hold any, "
        f"where it fits (r² of {conclusions.STRAIGHT} or more)."
    )
    share = "gate, share of the distance moved in one step"
    numbers = {f"gate {name}": power_law(one) for name, one in found.items()}
    return Section("Gates", about, numbers, (Panel(curves, share, "count", log="xy", low=0.7),))


def is_power_law(found: timescales.Histogram) -> bool:
    """Whether enough bins are non-empty and lie on a line."""
    held = sum(count > 0 for count in found.counts)
    return held >= FEWEST_BINS and found.r_squared >= conclusions.STRAIGHT


def power_law(found: timescales.Histogram) -> str:
    """Describe the fitted power law, if enough bins are non-empty."""
    held = sum(count > 0 for count in found.counts)
    if held < FEWEST_BINS:
        return f"all values in {held} of {len(found.counts)} bins, too few to fit a power law"
    fit = f"(r² {found.r_squared:.2f}, {held} bins)"
    if not is_power_law(found):
        return f"no power law {fit}"
    return f"power law with exponent {found.exponent:.3g} {fit}"


def _energy(model: Any, probe: Probe) -> dict[str, Any]:
    layer, x = layer_of(model), _x(probe)
    along = energy.energy_along(layer, x)
    found: dict[str, Any] = {"last": along[-1].mean(1), "largest": along.amax((0, 2))}
    if isinstance(layer, UnICORNN):
        found["reversibility_error"] = energy.reversibility_error(layer, x).max()
    return found


def _describe_energy(model: Any, probe: Probe, log: Log) -> Section:
    layer, x = layer_of(model), _x(probe)
    along = energy.energy_along(layer, x).median(2).values.t()
    curves = {f"layer {k}": steps_of(row, first=1) for k, row in enumerate(along, start=1)}
    panels = [Panel(curves, "step", "energy")]
    numbers = {
        f"energy of layer {k}": f"{row[-1]:.3g} at the end, {row.max():.3g} at most"
        for k, row in enumerate(along, start=1)
    }
    kind = "the Hamiltonian, which the input changes"
    if isinstance(layer, CoRNN):
        kind = "(γ|y|² + |z|²)/2"
    about = f"Median of {x.shape[1]} sequences; the energy is {kind}."
    if isinstance(layer, UnICORNN):
        errors = {}
        for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
            found = energy.reversibility_error(copy.deepcopy(layer).to(dtype), x.to(dtype))
            errors[name] = steps_of(found)
            numbers[f"error of undone steps, {name}"] = f"{found.max():.2g} of the largest state"
        panels.append(Panel(errors, "steps undone", "error / largest state", log="y"))
        about += " Right: states rebuilt from the last one by (3.7), against the real ones."
    said = conclusions.energies([*curves], along.tolist())
    return Section("Energy", about, numbers, tuple(panels), found=said)


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


def _describe_weights(model: Any, probe: Probe, log: Log) -> Section:
    layer = layer_of(model)
    names = _layer_names(layer)
    log = [entry for entry in log if "norms" in entry]
    epochs = [float(entry["epoch"]) for entry in log]
    curves = {}
    if isinstance(layer, UnICORNN):
        key, y, about = "norms", "largest |w|", "Largest entry of the vector w, layer by layer."
        norms = weights.weight_norms(layer)
        numbers = {f"{y} of {name}": f"{norm:.3g}" for name, norm in zip(names, norms, strict=True)}
    else:
        key, y, about = "eta", "η", "Condition (2.16), η ≤ dt^r for an r from ½ to 1."
        found = weights.weight_assumption(layer)
        bound = found[0].weakest_bound
        numbers = {
            f"η of {name}": f"{one.eta:.3g}, bound dt^½ = {bound:.3g}: "
            f"{'holds' if one.holds else 'fails'}"
            for name, one in zip(names, found, strict=True)
        }
        curves["dt^½"] = (epochs, [bound] * len(epochs))
    if len(log) < 2:
        about += " Over epochs it is shown of runs trained with --diagnose weights."
        return Section("Weights", about, numbers)
    for k, name in enumerate(names):
        curves[f"{y}, {name}"] = (epochs, [entry[key][k] for entry in log])
    return Section("Weights", about, numbers, (Panel(curves, "epoch", y),))


def _exponents(model: Any, probe: Probe) -> tuple[Tensor, int]:
    """Return the exponent up to each step, and the number of ignored steps."""
    x = probe.inputs[0][:1, -LYAPUNOV_STEPS:].transpose(0, 1)
    discard = len(x) // 5
    return lyapunov_exponent(model, x, discard=discard), discard


def _lyapunov(model: Any, probe: Probe) -> dict[str, Any]:
    found, _ = _exponents(model, probe)
    return {"exponent": found[-1], "steps": len(found)}


def _describe_lyapunov(model: Any, probe: Probe, log: Log) -> Section:
    found, discard = _exponents(model, probe)
    last = float(found[-1])
    growth = math.exp(min(last * len(found), 700.0))
    numbers = {
        "exponent": f"{last:.3g} per step: a small difference is {growth:.2g} times as large after "
        f"{len(found)} steps (after the first {discard}, which are skipped)"
    }
    about = (
        "Mean growth of a tangent along one sequence, up to each step; the first fifth is skipped."
    )
    panel = Panel({"": steps_of(found, first=discard + 1)}, "step", "exponent in 1/step")
    said = conclusions.chaos(last, len(found))
    return Section("Largest Lyapunov exponent", about, numbers, (panel,), found=said)


def _smoothing(model: Any, probe: Probe) -> dict[str, Any]:
    x, graph, *others = probe.inputs
    states = smoothing.layer_features(model, x, graph, *others)
    return {
        "dirichlet_energy": [float(smoothing.dirichlet_energy(s, graph)) for s in states],
        "mean_average_distance": [float(smoothing.mean_average_distance(s, graph)) for s in states],
    }


def _gate_means(model: Any, probe: Probe) -> list[float]:
    """Return the mean rate of every layer; empty without a gate."""
    if not isinstance(getattr(model, "block", None), GradientGating):
        return []
    x, graph, *others = probe.inputs
    return [float(tau.mean()) for tau in smoothing.gate_rates(model, x, graph, *others)]


def _describe_smoothing(model: Any, probe: Probe, log: Log) -> Section:
    found = _smoothing(model, probe)
    names = {
        "Dirichlet energy": "dirichlet_energy",
        "mean average distance": "mean_average_distance",
    }
    panels = [Panel({"": steps_of(found[key])}, "layer", y, log="y") for y, key in names.items()]
    numbers = {
        name: f"{found[key][0]:.3g} before the first layer, {found[key][-1]:.3g} after the last"
        for name, key in names.items()
    }
    about = "How much neighbours differ, layer by layer; what decays exponentially oversmooths."
    has_dt = hasattr(model, "dt")
    said = conclusions.smoothing(found["dirichlet_energy"], has_dt)
    if rates := _gate_means(model, probe):
        panels.append(Panel({"": steps_of(rates)}, "layer", "mean rate τ of the gate"))
        numbers["mean rate of the gate"] = (
            f"{rates[0]:.3g} in the first layer, {rates[-1]:.3g} in the last"
        )
        said += conclusions.gate(rates)
    return Section("Smoothing over depth", about, numbers, tuple(panels), found=said)


def _adjoint(model: Any, probe: Probe) -> dict[str, Any]:
    loss = probe.loss if probe.loss is not None else lambda prediction: prediction.sum()
    norms = adjoint.network_adjoint_norms(model, probe.inputs[0], loss)
    return {
        "norm": norms.median(1).values,
        "score": adjoint.adjoint_score(norms).mean(),
        "nfe": model.ode.nfe,
    }


def _describe_adjoint(model: Any, probe: Probe, log: Log) -> Section:
    found = _adjoint(model, probe)
    norm = found["norm"].tolist()
    numbers = {
        "adjoint score": f"{found['score']:.4g} (1 is best)",
        "norm of the adjoint": f"{norm[0]:.3g} at t = 0, {norm[-1]:.3g} at the end",
        "function evaluations": f"{found['nfe']} a solve",
    }
    about = (
        "How large the gradient in the state is over time, median of "
        f"{len(probe.inputs[0])} rows; the score is the ratio of its 95 % and 5 % "
        "quantiles."
    )
    times = torch.linspace(0, model.ode.end_time, len(norm)).tolist()
    panel = Panel({"": (times, norm)}, "time t", "|dL / dz(t)|")
    said = conclusions.adjoint(float(found["score"]))
    return Section("Adjoint", about, numbers, (panel,), found=said)


def _is_sequence(kind: type) -> bool:
    return not issubclass(kind, GraphNetwork | NeuralODENetwork) and issubclass(kind, nn.Module)


DIAGNOSTICS: dict[str, Diagnostic] = {
    "gradients": Diagnostic(
        "size of the loss gradient in the states, against the time distance",
        _is_sequence,
        _gradients,
        _describe_gradients,
    ),
    "timescales": Diagnostic(
        "gates of LEM and LSTM as a histogram, effective steps of UnICORNN",
        lambda kind: issubclass(kind, LEM | UnICORNN | nn.LSTM),
        _timescales,
        _describe_timescales,
    ),
    "energy": Diagnostic(
        "energy of oscillators along a trajectory; UnICORNN: error of undoing it in floats",
        lambda kind: issubclass(kind, energy.HAVE_ENERGY),
        _energy,
        _describe_energy,
    ),
    "weights": Diagnostic(
        "coRNN: assumption (2.16); UnICORNN: norms of w",
        lambda kind: issubclass(kind, CoRNN | UnICORNN),
        _weights,
        _describe_weights,
    ),
    "lyapunov": Diagnostic(
        "largest Lyapunov exponent along a sequence", _is_sequence, _lyapunov, _describe_lyapunov
    ),
    "smoothing": Diagnostic(
        "Dirichlet energy and mean average distance, layer by layer",
        lambda kind: issubclass(kind, GraphNetwork),
        _smoothing,
        _describe_smoothing,
    ),
    "adjoint": Diagnostic(
        "neural ODEs: norm of the adjoint over time, its score, function evaluations",
        lambda kind: issubclass(kind, NeuralODENetwork),
        _adjoint,
        _describe_adjoint,
    ),
}
"""All diagnostics by name. Add new ones here."""
