"""Training that starts from the weights of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.data.base import Task
from anharmonic.data.own import FileTask
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import file_digest
from anharmonic.nn.registry import model_kind
from anharmonic.nn.store import WEIGHTS, from_pretrained
from anharmonic.train.folder import BEST
from anharmonic.train.options import frozen_defaults
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.trained import trained

# Preprocessing options that determine the number of input channels.
_PREPARED = ("difference", "elapsed", "scale_each", "standardise")


def given_like(folder: str | Path, model: str, task: str, given: Mapping[str, Any]) -> Any:
    """Return fields of a run that starts from the weights of a finished one.

    Settings that determine the shapes of weights are copied, unless given.
    """
    before = trained(folder).run
    kind, advice = model_kind(model), "leave --from out"
    expected = f"left out for {model}, which is fitted in one pass"
    _checks.require(kind != "fitted", "--from", str(folder), expected, advice)
    came, expected = f"{folder}, a run of {before.model}", f"the folder of a run of {model}"
    _checks.require(before.model == model, "--from", came, expected, f"train {before.model}")
    made = dict(given)
    known = frozen_defaults("model", model) | before.model_options
    made["model_options"] = known | dict(made.get("model_options", {}))
    if task == before.task == FileTask.name:
        known = frozen_defaults("task", task) | before.task_options
        kept = {name: known[name] for name in _PREPARED}
        if known["missing"] != "error":  # "mask" adds channels; the recipe judges new gaps
            kept["missing"] = known["missing"]
        made["task_options"] = kept | dict(made.get("task_options", {}))
    for name in ("readout", "patch"):
        made.setdefault(name, getattr(before, name))
    made["initial"] = file_digest(Path(folder) / BEST / WEIGHTS)
    return made


def load_initial(model: nn.Module, run: Run, environment: RunEnvironment, task: Task) -> None:
    """Load the initial weights that a run names."""
    assert run.initial is not None
    folder = environment.start_from
    advice = "pass RunEnvironment(start_from=...), or --from, the folder of the run"
    if folder is None:
        expected = f"the weights {run.initial[:12]} that the run begins with must be named"
        raise ValueError(_checks.message(expected, "no folder", advice))
    before = trained(folder)
    digest = file_digest(folder / BEST / WEIGHTS)
    same, expected = digest == run.initial, f"{run.initial}, as the run says"
    _checks.require(same, f"digest of the weights in {folder}", digest, expected, advice)
    prepared = getattr(task, "preprocessing", None)
    if isinstance(prepared, Preprocessing):
        _check_order("channels", prepared.channels, before.preparation.channels, folder)
        if not run.new_head:
            there, here = before.preparation.forecast_names, prepared.forecast_names
            _check_order("forecast channels", here, there, folder)
    if not run.new_head:
        there, here = (before.target, *before.class_names), (task.target, *task.class_names)
        if task.target == "class" and not task.class_names:
            here = there if len(there) == 1 + task.output_size else here
        came, expected = f"{listed_targets(here)}", f"{listed_targets(there)}, as in {folder}"
        advice = "pass --new-head to begin with a new output layer"
        _checks.require(there == here, "targets", came, expected, advice)
    weights = from_pretrained(folder / BEST).state_dict()
    take_weights(model, weights, run.new_head, str(folder))


def _check_order(name: str, here: tuple[str, ...], there: tuple[str, ...], folder: Path) -> None:
    """Refuse the same channels in another order; other channels may replace those before."""
    fits, advice = here == there or sorted(here) != sorted(there), "give them in that order"
    expected = f"in the order of {folder}, {list(there)}"
    _checks.require(fits, name, list(here), expected, advice)


def listed_targets(targets: tuple[str, ...]) -> str:
    """Describe the kind of targets and their first names."""
    kind, *names = targets
    if not names:
        return f"{kind}s"
    return f"{kind} {', '.join(names[:8])}{' ...' * (len(names) > 8)}"


def take_weights(
    model: nn.Module, weights: Mapping[str, Tensor], new_head: bool, where: str
) -> None:
    """Copy weights of equal names and shapes into a model, or all except those of a new head."""
    own = model.state_dict()
    layer = getattr(model, "output_layer", None)
    head = {
        f"{name}.{weight}"
        for name, module in model.named_modules()
        if layer is not None and module is layer
        for weight in layer.state_dict()
    }
    left_out = head if new_head else set()
    shapes = [
        {name: list(value.shape) for name, value in of.items() if name not in left_out}
        for of in (weights, own)
    ]
    there, here = shapes
    other = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
    if other:
        name = other[0]
        advice = "leave out the options that change its size, or train without --from"
        if set(other) <= head:
            advice = "pass --new-head to begin with a new output layer"
        expected = f"the model must have the weights of {where}, {name} {there.get(name, 'none')}"
        raise ValueError(
            _checks.message(expected, f"{here.get(name, 'none')} ({len(other)} differ)", advice)
        )
    kept = {name: value for name, value in weights.items() if name not in left_out}
    model.load_state_dict(kept, strict=False)
