"""The sections of a trained run's page: what is measured, said and drawn for each diagnostic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from anharmonic.diagnostics import adjoint, energy, gradients, smoothing, timescales, weights
from anharmonic.diagnostics.lyapunov import lyapunov_exponent
from anharmonic.diagnostics.measures import LYAPUNOV_STEPS, MEASURES, applicable
from anharmonic.diagnostics.recurrence import layer_of, recurrence
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.unicornn import UnICORNN
from anharmonic.pages import plots
from anharmonic.train.diagnosis import Section, Trained

JACOBIAN_STEPS, JACOBIAN_SIZE = 100, 300
"""Products of Jacobians are over so many steps at most, of states of so many entries at most."""
FEWEST_BINS = 5
"""With fewer bins that hold any value a power law says nothing."""


def sections(trained: Trained, say: Callable[[str], None] = lambda text: None) -> Iterator[Section]:
    """Everything that applies to the run's model, one after the other.

    Args:
        trained: The run.
        say: Takes a word on what is measured next.

    Raises:
        ImportError: If matplotlib is missing.
    """
    yield _learning(trained)
    for name in applicable(trained.result.run.model):
        say(name)
        try:
            yield from _SECTIONS[name](trained)
        except (ValueError, TypeError) as error:  # what this very layer does not have
            reason = " ".join(str(error).split())
            yield Section(name.capitalize(), {"not measured": reason}, None, MEASURES[name].about)


def _learning(trained: Trained) -> Section:
    curve, result = trained.result.curve, trained.result
    drawn, axes = plots.panels(2)
    epochs = [float(e) for e in curve["epoch"]]
    for axis, name, y in (
        (axes[0], "train_loss", "training loss"),
        (axes[1], "valid", f"validation {result.metric}"),
    ):
        wide = min(curve[name]) > 0 and max(curve[name]) > 30 * min(curve[name])
        plots.lines(axis, {"": (epochs, curve[name])}, x="epoch", y=y, log="y" if wide else "")
    numbers = {
        f"test {result.metric}": f"{result.test:.6g}",
        f"validation {result.metric}": f"{result.valid:.6g} (epoch {result.best_epoch})",
        "parameters": f"{result.parameters:,}",
    }
    return Section("Training", numbers, drawn, "Loss and validation metric against epochs.")


def _gradients(trained: Trained) -> Iterator[Section]:
    model, x = trained.model, trained.probe.inputs[0].transpose(0, 1)
    loss = trained.probe.loss
    assert loss is not None
    sizes = gradients.state_gradients(model, x, lambda output: loss(model.linear(output)))
    middle = sizes.median(1).values
    steps = len(x)
    curves = {"after training": (list(map(float, range(steps + 1))), middle.tolist())}
    if trained.log and "size" in trained.log[0].get("gradients", {}):
        first = trained.log[0]["gradients"]
        shown = [v or 0.0 for v in first["size"]]
        curves["before training"] = ([float(d) for d in first["distance"]], shown)
    layer = layer_of(model)
    about = (
        "Size of the gradient of the last step's loss in the state k steps before, median of "
        f"{x.shape[1]} validation sequences."
    )
    wanted = recurrence(layer).size <= JACOBIAN_SIZE
    drawn, axes = plots.panels(2 if wanted else 1)
    plots.lines(axes[0], curves, x="distance k in steps", y="|∂loss_N / ∂state_(N-k)|", log="y")
    numbers = {
        f"gradient at distance {k}": f"{middle[k]:.3g}" for k in sorted({0, steps // 2, steps})
    }
    if wanted:
        norms = gradients.jacobian_norms(layer, x[-JACOBIAN_STEPS:, :1])
        places = [float(k) for k in range(len(norms))]
        plots.lines(
            axes[1],
            {"": (places, norms.tolist())},
            x="steps k",
            y="spectral norm over k steps",
            log="y",
        )
        about += f" Right: product of the Jacobians of the last {len(norms) - 1} steps, from rest."
        numbers[f"Jacobian over {len(norms) - 1} steps"] = f"{norms[-1]:.3g}"
    yield Section("Gradients over time", numbers, drawn, about)


def _timescales(trained: Trained) -> Iterator[Section]:
    layer, x = layer_of(trained.model), trained.probe.inputs[0].transpose(0, 1)
    drawn, axes = plots.panels(1, height=3.2)
    if isinstance(layer, UnICORNN):
        steps = timescales.effective_steps(layer).sort(dim=1).values
        curves = {
            f"layer {k + 1}": (list(map(float, range(len(row)))), row.tolist())
            for k, row in enumerate(steps)
        }
        plots.lines(
            axes[0], curves, x="neuron, in the order of its step", y="effective step h", log="y"
        )
        numbers = {
            f"steps of layer {k + 1}": f"{row[0]:.3g} to {row[-1]:.3g}"
            for k, row in enumerate(steps)
        }
        yield Section("Effective steps", numbers, drawn, "h = dt σ̂(c) of every neuron, sorted.")
        return
    found = {}
    for name, values in timescales.gates(layer, x).items():
        top = layer.dt if isinstance(layer, LEM) else 1.0
        values = values.clamp(1e-4 * top, top)
        found[name] = timescales.scale_histogram(values, low=1e-4 * top, high=top)
    plots.histograms(axes[0], found, x="gate, share of the distance moved in one step")
    numbers = {f"gate {name}": _law(one) for name, one in found.items()}
    about = (
        "How often each gate value occurs, over all steps, neurons and layers; a gate g has a time "
        "constant of about 1/g steps. The line is the power law fitted to all bins that hold any."
    )
    yield Section("Gates", numbers, drawn, about)


def _law(found: timescales.Histogram) -> str:
    held = sum(count > 0 for count in found.counts)
    if held < FEWEST_BINS:
        return f"all values in {held} of {len(found.counts)} bins, too few for a power law"
    return f"power law with exponent {found.exponent:.3g} (r² {found.r_squared:.2f}, {held} bins)"


def _energy(trained: Trained) -> Iterator[Section]:
    layer, x = layer_of(trained.model), trained.probe.inputs[0].transpose(0, 1)
    along = energy.energy_along(layer, x).median(2).values
    undone = isinstance(layer, UnICORNN)
    drawn, axes = plots.panels(2 if undone else 1)
    steps = [float(n) for n in range(1, len(along) + 1)]
    curves = {f"layer {k + 1}": (steps, row.tolist()) for k, row in enumerate(along.t())}
    plots.lines(axes[0], curves, x="step", y="energy")
    numbers = {
        f"energy of layer {k + 1}": f"{row[-1]:.3g} at the end, {row.max():.3g} at most"
        for k, row in enumerate(along.t())
    }
    kind = _ENERGIES[isinstance(layer, CoRNN)]
    about = f"Median of {x.shape[1]} validation sequences; {kind}."
    if undone:
        drift = {}
        for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
            errors = energy.reversibility_error(layer.to(dtype), x.to(dtype))
            layer.to(torch.float32)
            places = [float(k) for k in range(len(errors))]
            drift[name] = (places, errors.tolist())
            numbers[f"error of undone steps, {name}"] = f"{errors.max():.2g} of the largest state"
        plots.lines(axes[1], drift, x="steps undone", y="error / largest state", log="y")
        about += " Right: states rebuilt from the last one by (3.7), against the real ones."
    yield Section("Energy", numbers, drawn, about)


_ENERGIES = {
    True: "the energy is (γ|y|² + |z|²)/2",
    False: "the energy is the Hamiltonian, which the input changes",
}


def _weights(trained: Trained) -> Iterator[Section]:
    layer = layer_of(trained.model)
    logged = [e for e in trained.log if "norms" in e.get("weights", {})]
    epochs = [float(e["epoch"]) for e in logged]
    drawn = None
    if isinstance(layer, UnICORNN):
        norms = weights.weight_norms(layer)
        numbers = {f"largest |w| of layer {k + 1}": f"{n:.3g}" for k, n in enumerate(norms)}
        curves = {
            f"layer {k + 1}": (epochs, [e["weights"]["norms"][k] for e in logged])
            for k in range(len(norms))
        }
        y, about = "largest |w|", "Largest entry of the vector w, layer by layer."
    else:
        found = weights.weight_assumption(layer)
        numbers = {
            f"η of layer {k + 1}": f"{one.eta:.3g}, bound dt^½ = {one.weakest_bound:.3g}: "
            f"{'holds' if one.holds else 'fails'}"
            for k, one in enumerate(found)
        }
        bound = found[0].weakest_bound
        curves = {"dt^½": (epochs, [bound] * len(epochs))}
        for k in range(len(found)):
            curves[f"η, layer {k + 1}"] = (epochs, [e["weights"]["eta"][k] for e in logged])
        y, about = "η", "Condition (2.16), η ≤ dt^r for an r from ½ to 1."
    if len(logged) > 1:
        drawn, axes = plots.panels(1)
        plots.lines(axes[0], curves, x="epoch", y=y)
    else:
        about += " Over epochs it is shown of runs trained with --diagnose weights."
    yield Section("Weights", numbers, drawn, about)


def _lyapunov(trained: Trained) -> Iterator[Section]:
    x = trained.probe.inputs[0][:1, -LYAPUNOV_STEPS:].transpose(0, 1)
    discard = len(x) // 5
    found = lyapunov_exponent(trained.model, x, discard=discard)
    drawn, axes = plots.panels(1)
    places = [float(discard + n + 1) for n in range(len(found))]
    plots.lines(axes[0], {"": (places, found.tolist())}, x="step", y="exponent in 1/step")
    last = float(found[-1])
    growth = math.exp(min(last * len(found), 700.0))
    said = f"{last:.3g} per step: a small difference is {growth:.2g} times as large"
    about = (
        "Mean growth of a tangent along one validation sequence, up to each step; the first fifth "
        "does not count."
    )
    numbers = {"exponent": f"{said} after {len(found)} steps (the {discard} before do not count)"}
    yield Section("Largest Lyapunov exponent", numbers, drawn, about)


def _smoothing(trained: Trained) -> Iterator[Section]:
    x, graph, *others = trained.probe.inputs
    states = smoothing.layer_features(trained.model, x, graph, *others)
    measured = {
        "Dirichlet energy": [float(smoothing.dirichlet_energy(s, graph)) for s in states],
        "mean average distance": [float(smoothing.mean_average_distance(s, graph)) for s in states],
    }
    drawn, axes = plots.panels(2)
    numbers = {}
    places = [float(n) for n in range(len(states))]
    for axis, (name, values) in zip(axes, measured.items(), strict=True):
        plots.lines(axis, {"": (places, values)}, x="layer", y=name, log="y")
        numbers[name] = f"{values[0]:.3g} before the first layer, {values[-1]:.3g} after the last"
    about = "How much neighbours differ, layer by layer; what decays exponentially oversmooths."
    yield Section("Smoothing over depth", numbers, drawn, about)


def _adjoint(trained: Trained) -> Iterator[Section]:
    model, x, loss = trained.model, trained.probe.inputs[0], trained.probe.loss
    assert loss is not None
    norms = adjoint.network_adjoint_norms(model, x, loss)
    middle, curve = norms.median(1).values, trained.result.curve
    drawn, axes = plots.panels(3)
    times = torch.linspace(0, model.ode.end_time, len(middle)).tolist()
    plots.lines(axes[0], {"": (times, middle.tolist())}, x="time t", y="|dL / dz(t)|")
    epochs = [float(e) for e in curve["epoch"]]
    for axis, name, y in (
        (axes[1], "adjoint_score", "adjoint score"),
        (axes[2], "nfe", "function evaluations"),
    ):
        plots.lines(axis, {"": (epochs, curve[name])}, x="epoch", y=y)
    score = float(adjoint.adjoint_score(norms).mean())
    numbers = {
        "adjoint score": f"{score:.4g} (1 is best)",
        "norm of the adjoint": f"{middle[0]:.3g} at t = 0, {middle[-1]:.3g} at the end",
        "function evaluations": f"{model.ode.nfe} a solve",
    }
    about = (
        f"How large the gradient in the state is over time, median of {x.shape[0]} validation "
        "rows; the score is the ratio of its 95 % and 5 % quantiles. Right: over the epochs."
    )
    yield Section("Adjoint", numbers, drawn, about)


_SECTIONS: dict[str, Callable[[Trained], Iterator[Section]]] = {
    "gradients": _gradients,
    "timescales": _timescales,
    "energy": _energy,
    "weights": _weights,
    "lyapunov": _lyapunov,
    "smoothing": _smoothing,
    "adjoint": _adjoint,
}
