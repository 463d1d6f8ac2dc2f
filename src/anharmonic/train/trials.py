"""Search over settings: trials of a run with random values from ranges, ranked by validation.

Optuna stores the study in a SQLite file or another database. A restarted search continues with its
unfinished trials and draws the same values as an uninterrupted one. Many processes may share a
study.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from anharmonic import _checks
from anharmonic.data.base import Task
from anharmonic.diagnostics import machine
from anharmonic.nn.registry import model_kind
from anharmonic.train.fit import fit
from anharmonic.train.folder import RunLockedError, run_folder
from anharmonic.train.options import frozen_defaults, model_option_parameters
from anharmonic.train.recipe import folds_of
from anharmonic.train.results import Result
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.watching import OnEpochEnd
from anharmonic.train.watching import say as print_line

# Seconds between checks of a run that another process trains.
_WAIT = 1.0
_DROPOUTS = ("dropout", "input_dropout", "output_dropout")


@dataclass(frozen=True)
class Range:
    """The range of a setting: a list, or an interval with uniform or logarithmic sampling.

    Args:
        low: Lower end.
        high: Upper end, above ``low``.
        log: Whether the logarithm is uniform; then ``low`` > 0.
        choices: The values to choose from instead; ``low`` and ``high`` are then ignored.

    Raises:
        ValueError: If the interval is empty, or log with ``low`` <= 0.

    Example:
        >>> Range(1e-4, 1e-2, log=True).high
        0.01
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.choices:
            return
        if not self.low < self.high or (self.log and self.low <= 0):
            expected = "low must be below high, and above 0 if log"
            came = f"low={self.low}, high={self.high}, log={self.log}"
            raise ValueError(_checks.message(expected, came, "change the range"))


@dataclass(frozen=True)
class BestTrial:
    """The best trial of a search.

    Args:
        run: The run with the chosen values.
        values: The chosen values by name.
        valid: Its mean validation metric.
        trials: Number of finished trials.

    Example:
        >>> BestTrial(Run("adding", "LEM", lr=0.003), {"lr": 0.003}, valid=0.01, trials=20).values
        {'lr': 0.003}
    """

    run: Run
    values: dict[str, Any]
    valid: float
    trials: int


def search(
    run: Run,
    space: Mapping[str, Range],
    trials: int,
    environment: RunEnvironment,
    study: Path | str,
    *,
    seeds: Sequence[int] = (0,),
    split: str = "",
    folds: int | None = None,
    sampler: Literal["random", "tpe"] = "random",
    task_of: Callable[[Run], Task | None] = lambda run: None,
    on_trial_end: Callable[[int, float | None, float], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> BestTrial:
    """Search for the values with the best mean validation metric over seeds.

    A trial with a non-finite loss ranks last. The sampler "tpe" stops a trial whose best validation
    value is worse than the median of the other trials at the same epoch.

    Args:
        run: The run; its own values apply to everything not in ``space``.
        space: Ranges by name of a field ("lr") or of a model option ("dropout").
        trials: Total number of trials, >= 1, including those already in the study from any process.
            Processes that start the last one simultaneously run one more.
        environment: Where to train the runs; results go to its results file.
        study: The path of a SQLite file, for any number of processes on one machine, or the URL of
            another database, such as ``postgresql://USER@HOST/NAME``.
        seeds: The seeds to train every trial with.
        split: The task's option that numbers its splits: seed 3 then trains on split 3.
        folds: For your own file, the number of cross-validation folds; every seed is trained once
            per fold.
        sampler: "random", as in the papers, with every trial run to its end; or "tpe" of Optuna.
        task_of: Returns the task of a run with data in memory, or None.
        on_trial_end: Called after every trial of this process with the number of finished trials,
            its validation metric (None if stopped) and the best so far.
        say: Called with a line when this process waits for another one. Default: print to standard
            error, if the environment shows progress.

    Returns:
        The best trial.

    Raises:
        ValueError: If the space is empty, a name is not a setting of the run, the study cannot be
            opened, or every trial diverged.
        OSError: If the study cannot be written any more.
        RuntimeError: On Windows.
        ImportError: If Optuna is missing.

    Example:
        >>> import tempfile
        >>> task = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
        >>> run = Run("adding", "LEM", task, {"hidden_size": 4}, epochs=1)
        >>> folder = Path(tempfile.mkdtemp())
        >>> environment = RunEnvironment(out=folder, progress=False)
        >>> space = {"lr": Range(1e-3, 1e-1, log=True)}
        >>> best = search(run, space, 2, environment, folder / "lr.db")
        >>> best.trials, best.run.lr == best.values["lr"]
        (2, True)
    """
    machine.check_system()
    _checks.positive_int("trials", trials)
    _checks.choice("sampler", sampler, ("random", "tpe"))
    advice = "start the search in several processes instead: each trains a trial"
    size = environment.world_size
    _checks.require(size == 1, "devices times num_nodes of a search", size, "1", advice)
    if not space or not seeds:
        expected = "space and seeds must hold something"
        raise ValueError(_checks.message(expected, f"{dict(space)}, {seeds}", "name ranges"))
    try:
        import optuna

        from anharmonic.train.study import VALUES, open_study
    except ImportError as error:
        raise _checks.missing_extra("optuna", "sweep", "a search") from error
    from anharmonic.data.metrics import TaskMetric
    from anharmonic.train.losses import DivergedError

    for name in space.keys() - Run.__dataclass_fields__.keys():
        _checks.choice("a key of model_options", name, model_option_parameters(run.model))
    metric = (task_of(run) or run.make_task(environment)).metric
    higher = TaskMetric(metric).higher_is_better
    worst = -math.inf if higher else math.inf
    if say is None:
        say = print_line if environment.progress else lambda text: None
    # On an interruption its warnings contain a harmless trace.
    level = optuna.logging.INFO if environment.progress else optuna.logging.ERROR
    optuna.logging.set_verbosity(level)

    def objective(trial: Any) -> float:
        values = _all_drawn(trial, space, model_kind(run.model) == "sequence")
        trial.set_user_attr(VALUES, values)
        one = with_settings(run, values)

        def seen(epoch: int, values: dict[str, float]) -> None:
            trial.report(values.get("valid", math.nan), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        runs = [with_seed(one, seed, split) for seed in seeds]
        if folds is not None:
            runs = [fold for run in runs for fold in folds_of(run, folds)]
        try:
            # Report the first run only, since the others may use other splits.
            watched = [seen if sampler == "tpe" else None, *[None] * (len(runs) - 1)]
            results = [
                _fit_or_wait(run, environment, watch, task_of, say)
                for run, watch in zip(runs, watched, strict=True)
            ]
        except DivergedError:
            return worst
        valid = [result.valid for result in results if result.valid is not None]
        advice = "keep a validation set: trials are judged by it"
        _checks.require(len(valid) > 0, "validation set", None, "there for a search", advice)
        mean = statistics.fmean(valid)
        return worst if math.isnan(mean) else mean

    def sampler_of(number: int) -> Any:
        # Seeded by the run too, so that searches of different runs try different points.
        kind = optuna.samplers.RandomSampler if sampler == "random" else optuna.samplers.TPESampler
        return kind(seed=(int(run.hash, 16) + number) % 2**32)

    def said(done: int, trial: Any, best: float) -> None:
        if on_trial_end is not None:
            on_trial_end(done, None if trial.state.name == "PRUNED" else trial.value, best)

    with open_study(
        study,
        say,
        study_name=_name(run, space, seeds, folds, sampler),
        direction="maximize" if higher else "minimize",
        # In the first third the learning rate still rises, and slow learners may win later.
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=run.epochs // 3)
        if sampler == "tpe"
        else optuna.pruners.NopPruner(),
    ) as shared:
        best = shared.work(objective, trials, sampler_of, said).best_trial
        done = len(shared.done())
    if not math.isfinite(float(best.value)):
        expected = "a trial of the search must end with a finite loss"
        advice = "narrow the ranges, above all that of lr"
        raise ValueError(_checks.message(expected, f"{trials} trials that all diverged", advice))
    values = dict(best.user_attrs[VALUES])
    valid = float(best.value)
    return BestTrial(with_settings(run, values), values, valid, done)


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
    dt = options.get("dt", known["dt"].default if "dt" in known else None)
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


def with_seed(run: Run, seed: int, split: str = "") -> Run:
    """Return the run with another seed and, for numbered splits, the split of that number.

    Args:
        run: The run.
        seed: The seed.
        split: The task's option that numbers its splits; empty for none.

    Example:
        >>> run = with_seed(Run("texas", "PlainGNN"), 3, "split")
        >>> run.seed, run.task_options
        (3, {'split': 3})
    """
    options = {**run.task_options, split: seed} if split else run.task_options
    return dataclasses.replace(run, seed=seed, task_options=options)


def with_settings(run: Run, values: Mapping[str, Any]) -> Run:
    """Return the run with changed fields or model options.

    Args:
        run: The run.
        values: Values by name.

    Raises:
        ValueError: If a name is neither a field nor a model option.

    Example:
        >>> with_settings(Run("adding", "LEM"), {"lr": 0.1, "dt": 0.5}).model_options["dt"]
        0.5
    """
    fields, options = fields_and_options(values)
    return dataclasses.replace(run, model_options={**run.model_options, **options}, **fields)


def fields_and_options(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split values by name into fields of a run and options of its model.

    Example:
        >>> fields_and_options({"lr": 0.01, "dt": 0.5})
        ({'lr': 0.01}, {'dt': 0.5})
    """
    fields = {name: value for name, value in values.items() if name in Run.__dataclass_fields__}
    return fields, {name: value for name, value in values.items() if name not in fields}


def _fit_or_wait(
    run: Run,
    environment: RunEnvironment,
    on_epoch_end: OnEpochEnd | None,
    task_of: Callable[[Run], Task | None],
    say: Callable[[str], None],
) -> Result:
    """Train a run, or wait for the result of another process that drew the same values."""
    waits = False
    while True:
        try:
            return fit(run, environment, task_of(run), on_epoch_end)
        except RunLockedError:
            if not waits:
                say(f"waits for the process that trains in {run_folder(run, environment)}")
            waits = True
            time.sleep(_WAIT)


def _all_drawn(trial: Any, space: Mapping[str, Range], sequences: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, within in space.items():
        if within.choices:
            values[name] = trial.suggest_categorical(name, list(within.choices))
        else:
            value = trial.suggest_float(name, within.low, within.high, log=within.log)
            values[name] = float(f"{value:.4g}")
    if sequences and values.get("num_layers") == 1 and "dropout" in values:
        values["dropout"] = 0.0  # dropout acts between layers
    return values


def _name(
    run: Run, space: Mapping[str, Range], seeds: Sequence[int], folds: int | None, sampler: str
) -> str:
    """Return the name of a study, a hash of everything its trials depend on."""
    ranges = {name: dataclasses.asdict(within) for name, within in space.items()}
    facts = [run.hash, ranges, list(seeds), sampler, *([] if folds is None else [folds])]
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
