"""Search spaces: ranges around the recipe's settings."""

from __future__ import annotations

from collections.abc import Collection

from anharmonic.nn.registry import model_kind
from anharmonic.train.options import frozen_defaults, model_option_parameters
from anharmonic.train.run import Run
from anharmonic.train.trials import Range

_DROPOUTS = ("dropout", "input_dropout", "output_dropout")


def space_around(run: Run, fixed: Collection[str] = ()) -> dict[str, Range]:
    """Return ranges for a model's settings, except the fixed ones.

    Learning rate and time step are sampled log-uniformly around the run's values.

    Example:
        >>> space = space_around(Run("digits", "LEM", lr=0.01, model_options={"dt": 0.5}))
        >>> list(space)
        ['lr', 'dt', 'hidden_size', 'num_layers', 'dropout', 'clip_norm']
        >>> space["lr"].low, space["dt"].high
        (0.001, 1.0)
    """
    if model_kind(run.model) == "fitted":
        space = {
            "num_oscillators": Range(choices=(250, 500, 1000, 2000)),
            "num_biases": Range(choices=(1, 2, 4)),
            "scaling": Range(choices=("train", "series", "running")),
        }
        return {name: within for name, within in space.items() if name not in fixed}
    known = model_option_parameters(run.model)
    options = frozen_defaults("model", run.model) | run.model_options
    space = {"lr": Range(run.lr / 10, min(10.0, 4 * run.lr), log=True)}
    dt = options.get("dt")
    if isinstance(dt, float | int) and not isinstance(dt, bool):
        # A step above 1 is unstable, or nearly so, in most models.
        space["dt"] = Range(dt / 5, max(dt, min(1.0, 3 * dt)), log=True)
    width = run.model_options["hidden_size"]
    space["hidden_size"] = Range(choices=tuple(sorted({32, 64, 128, width})))
    if model_kind(run.model) == "sequence":
        if "num_layers" in known:
            space["num_layers"] = Range(choices=(1, 2, 3))
        if "dropout" in known and ("num_layers" not in fixed or options["num_layers"] > 1):
            space["dropout"] = Range(0.0, 0.5)
    else:
        layers = options.get("num_layers")
        if isinstance(layers, int):
            few = max(1, layers // 2)
            space["num_layers"] = Range(choices=tuple(sorted({few, layers, 2 * layers})))
        space |= {name: Range(0.0, 0.7) for name in _DROPOUTS if name in known}
    space["clip_norm"] = Range(choices=(0.3, 1.0, 3.0))
    return {name: within for name, within in space.items() if name not in fixed}
