"""Models that run sample by sample: what they need in training, and who cannot."""

from __future__ import annotations

from typing import Any

from anharmonic._checks import require
from anharmonic.nn.registry import model_kind
from anharmonic.train.options import model_option_parameters, task_option_parameters
from anharmonic.train.run import Run

# A stream has no end to read from, no later samples, and even times.
_MODEL = {"bidirectional": False}
_FITTED = {"scaling": "train"}
_TASK = {"scale_each": False, "elapsed": "ignore"}


def streaming_options(model: str, task: str, given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a run with what a model needs that takes samples as they come.

    Args:
        model: Canonical name of the model.
        task: Name of the task.
        given: Fields of the run that were typed.

    Raises:
        ValueError: If the model is none for sequences, or another value was typed.
    """
    kind = model_kind(model)
    advice = "leave --streaming out"
    fits = kind in ("sequence", "fitted")
    require(fits, "--streaming", model, "for a model of sequences", advice)
    made = dict(given)
    for field, wanted, known in (
        ("model_options", _FITTED if kind == "fitted" else _MODEL, model_option_parameters(model)),
        ("task_options", _TASK, task_option_parameters(task)),
    ):
        options = made[field] = dict(made.get(field, {}))
        for name in wanted.keys() & known.keys():
            value = options.setdefault(name, wanted[name])
            flag, expected = f"--{name.replace('_', '-')}", f"{wanted[name]} with --streaming"
            require(value == wanted[name], flag, value, expected, f"leave {flag} out")
    return made


def no_stream(run: Run) -> str:
    """Why a trained model cannot run sample by sample, and what to do; "" where it can."""
    if run.model_options.get("bidirectional") is not True:
        return ""
    return "reads in both directions, so it cannot run sample by sample: train with --streaming"
