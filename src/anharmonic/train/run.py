"""``Run`` holds all settings that change a result, ``RunEnvironment`` the others.

The first 12 hexadecimal digits of the SHA-256 of a run's JSON name the run: its folder, its line in
the results and its entry in a table. Therefore fields are never renamed and their defaults never
change. A field added later is left out of the hashed JSON while it has its default
(``_ADDED_LATER``), so old hashes stay valid.

Options of the task and the model with default values are left out of the hashed JSON too (except
``hidden_size``). So ``{"length": 500}`` and ``{}`` are the same run of the adding problem. These
defaults are frozen (see ``options``). The default of a new option is the previous behaviour.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from torch import nn

from anharmonic import _checks
from anharmonic._processes import rank
from anharmonic.data.base import Task
from anharmonic.data.readers import FILE_SUFFIXES
from anharmonic.data.registry import list_tasks, make_task, task_class
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import canonical_name, model_class, model_kind, source_digest
from anharmonic.train.options import (
    check_digest,
    check_fitted_task,
    check_kinds,
    check_model_options,
    check_readout,
    check_task_options,
    frozen_defaults,
    without_defaults,
)

LoggerName = Literal["none", "csv", "tensorboard"]
_ADDED_LATER: tuple[str, ...] = (
    "readout",
    "patch",
    "optimizer",
    "betas",
    "schedule",
    "warmup",
    "ema_decay",
    "label_smoothing",
    "class_weights",
    "input_noise",
    "amplitude_noise",
    "decay_output",
    "precision",
    "initial",
    "new_head",
    "code",
)
FITTED_FIELDS = (
    "task",
    "model",
    "task_options",
    "model_options",
    "seed",
    "class_weights",
    "reduced",
)
"""The fields that affect a model fitted in one pass; it ignores the others."""

MOST_THREADS = 1024
"""Largest number of threads; more fail in PyTorch or in the system."""


@dataclass(frozen=True)
class Run:
    """One training: a task, a model and every setting that changes the result.

    Raises:
        TypeError: If a field has the wrong type.
        ValueError: If a name is unknown, a number is out of range, or options exclude each other.

    Example:
        >>> run = Run(task="adding", model="lem", epochs=2)
        >>> run.model, run.model_options
        ('LEM', {'hidden_size': 128})
        >>> Run.from_json(run.to_json()) == run
        True
    """

    task: str
    """Name of the task, e.g. "adding"; `anharmonic list` shows all."""
    model: str
    """Name of the model in any case, e.g. "LEM", or "GraphCON" for a graph task."""
    task_options: dict[str, Any] = field(default_factory=dict)
    """Options of the task's constructor as JSON values, e.g. {"length": 500}. Default: none."""
    model_options: dict[str, Any] = field(default_factory=dict)
    """Options of the model's constructor as JSON values, e.g. {"hidden_size": 64, "dt": 0.1}.
    Set the width: a run without hidden_size always means 128 (graph models: 64), so that names of
    results stay valid. `recipe` chooses a width from the data."""
    seed: int = 0
    """Seed of weights, data order and dropout, 0 to 2**32 - 1."""
    epochs: int = 20
    """Passes over the training data, at least 1. `patience` may end the run earlier."""
    batch_size: int = 64
    """Sequences or graphs per optimiser step, at least 1, summed over all devices. A task of one
    graph uses the whole graph in every step."""
    lr: float = 1e-3
    """Peak learning rate, in (0, 10]."""
    lr_drop_epoch: int | None = None
    """Number of epochs at the full learning rate, at least 1; the rest run at a tenth of it. Only
    with the schedule "constant". Default: no drop."""
    clip_norm: float | None = None
    """Largest norm of the gradient of all weights, > 0; larger gradients are scaled down. Default:
    no limit."""
    weight_decay: float = 0.0
    """L2 penalty of Adam, or decoupled weight decay of AdamW (times lr), >= 0."""
    patience: int | None = None
    """Number of epochs without a better validation value after which the run stops, at least 1.
    Default: no early stopping."""
    select: Literal["best", "last", "loss"] = "best"
    """Which weights to test and keep: "best" validation value, smallest validation "loss", or the
    "last" epoch. Equal values of "best" are ranked by validation loss, then the later epoch
    wins."""
    readout: Literal["last", "mean"] = "last"
    """Which output predicts a sequence's target: that of the last valid step, or the mean over all
    valid steps. Tasks with a target at every step read out every step."""
    patch: int = 1
    """Number of successive steps to join into one, at least 1. This shortens long signals. Only for
    tasks with one target per sequence."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam, or AdamW with decoupled weight decay."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's two averaging factors, in [0, 1). The schedule "one_cycle" ignores the first."""
    schedule: Literal["constant", "cosine", "one_cycle"] = "constant"
    """Learning rate over the optimiser steps: constant, falling to 0 as half a cosine, or one
    cycle. One cycle rises from lr / 25 to lr and falls to lr / 250000, while Adam's first beta goes
    from 0.95 to 0.85 and back (PyTorch's OneCycleLR)."""
    warmup: float | None = None
    """Share of the steps, in [0, 1), in which the rate rises to lr: linearly, or as half a cosine
    with "one_cycle". Default: 0.3 for one cycle, otherwise 0."""
    ema_decay: float | None = None
    """Decay per step, in (0, 1), of an exponential moving average of the weights. The averaged
    weights are validated, tested and kept. Default: no averaging."""
    label_smoothing: float = 0.0
    """Label smoothing: share of each training target, in [0, 1), spread over all classes."""
    class_weights: Literal["none", "balanced"] = "none"
    """"balanced" weights each class by the inverse of its share of the training data."""
    input_noise: float = 0.0
    """Standard deviation, >= 0, of the normal noise added to every input value in training."""
    amplitude_noise: float = 0.0
    """Standard deviation, >= 0, of normal noise n; training multiplies each channel of a sequence
    by 1 + n."""
    decay_output: bool = True
    """Whether weight decay also applies to the output layer. The authors of GCN exclude it."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of the matrix products of a recurrent model while it is trained and tested. On a
    GPU, CoRNN and LEM with 65 to 128 neurons need "bfloat16" to be fast. Models without kernels
    of this package ignore it, see `use_precision`."""
    initial: str | None = None
    """SHA-256 of the initial weights, which come from the run in `RunEnvironment.start_from`.
    Default: random weights."""
    new_head: bool = False
    """Whether to initialise the output layer randomly nevertheless; only with `initial`."""
    code: str | None = None
    """First digits of a SHA-256 of the files that define a model of your own, so that a training
    with edited code is another run. Found when the run is made. None for models of this project, ""
    for a stored run whose code is not known."""
    reduced: bool = False
    """Whether the run trains for less than the paper's experiment; marks the result."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        if isinstance(self.task, str | Path) and Path(self.task).suffix.lower() in FILE_SUFFIXES:
            raise ValueError(
                _checks.message(
                    "task must be the name of a task",
                    f"a file, {str(self.task)!r}",
                    'pass task="file" with task_options={"sha256": file_digest(path)} (from '
                    "anharmonic.data) and the path as RunEnvironment(file=path)",
                )
            )
        put(self, "task", _checks.choice("task", self.task, list_tasks()))
        if not isinstance(self.model, str):
            raise _checks.wrong_type("model", "a model's name", self.model)
        put(self, "model", canonical_name(self.model))
        check_kinds(self.task, self.model)
        if self.code is not None and not isinstance(self.code, str):
            raise _checks.wrong_type("code", "a digest", self.code)
        # Of a stored run without a digest "" stays, but only where there would be one.
        if not self.code and (self.code is None or source_digest(self.model) is None):
            put(self, "code", source_digest(self.model))
        put(self, "task_options", check_task_options(self.task, self.task_options))
        check_digest(self.task, self.task_options)
        put(self, "model_options", check_model_options(self.model, self.model_options))
        _check_fields(self)
        kind = task_class(self.task)
        check_readout(self.task, getattr(kind, "readout", None), self.readout)
        sequences, advice = kind.kind == "sequence", "leave --patch out"
        expected = "1 if the inputs are not sequences"
        _checks.require(sequences or self.patch == 1, "patch", self.patch, expected, advice)
        for name in ("input_noise", "amplitude_noise"):
            value = getattr(self, name)
            fits = value == 0 or (sequences and not kind.tokens)
            expected = f"0 on task {self.task!r}, whose inputs are not sequences of numbers"
            _checks.require(fits, name, value, expected, "leave it out")
        fits, advice = self.lr_drop_epoch is None or self.schedule == "constant", "leave one out"
        expected = '"constant" with lr_drop_epoch'
        _checks.require(fits, "schedule", self.schedule, expected, advice)
        fits, advice = self.initial is not None or not self.new_head, "pass --from RUN_FOLDER too"
        _checks.require(fits, "new_head", True, "left out without initial weights", advice)
        if model_kind(self.model) == "fitted":
            self._check_fitted()

    def _check_fitted(self) -> None:
        """Refuse training settings for a model that is not trained."""
        for entry in dataclasses.fields(self):
            if entry.name not in FITTED_FIELDS:
                value = getattr(self, entry.name)
                expected = f"left out for {self.model}, which is fitted in one pass"
                fits, advice = value == entry.default, "leave it out"
                _checks.require(fits, entry.name, value, expected, advice)

    def to_json(self, indent: int | None = None) -> str:
        """Return the run as JSON with sorted keys.

        Args:
            indent: Spaces per level for readable JSON; None for one line.

        Example:
            >>> '"batch_size":64,' in Run("adding", "LEM").to_json()
            True
        """
        return dump(dataclasses.asdict(self), indent)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Read a run from JSON; missing fields get their defaults.

        Raises:
            ValueError: If the text is not a JSON object, has unknown keys or wrong types.

        Example:
            >>> Run.from_json('{"task": "adding", "model": "LEM", "lr": 0.01}').lr
            0.01
        """
        return cls.from_fields(read_fields(cls, text, "a run's JSON"))

    @classmethod
    def from_fields(cls, values: Any) -> Run:
        """Make a run from the fields of its JSON.

        Args:
            values: The fields by name.

        Raises:
            ValueError: If a key is unknown or missing, or a value is invalid.
        """
        check_keys(cls, values, "a run's JSON")
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def make_task(self, environment: RunEnvironment) -> Task:
        """Make the run's task with exactly the run's options.

        Options left out have their frozen defaults.

        Args:
            environment: Locates the data.

        Raises:
            ValueError: If the task refuses an option, or the user's file is missing or has changed.
        """
        return make_task(
            self.task,
            frozen_defaults("task", self.task) | self.task_options,
            environment.data_dir,
            environment.file,
            progress=environment.progress,
        )

    def build_model(self, task: Task) -> nn.Module:
        """Build the run's model; options left out have their frozen defaults.

        Args:
            task: The run's task, which defines the sizes.

        Raises:
            TypeError: If a value has the wrong type for the model.
            ValueError: If the model refuses a value.
        """
        options = frozen_defaults("model", self.model) | self.model_options
        kind = model_kind(self.model)
        if kind == "sequence":
            readout = "all" if task.readout == "all" else self.readout
            options = {**task.reading, **options, "readout": readout, "patch": self.patch}
            model = SequenceModel(self.model, task.input_size, task.output_size, **options)
            if (vectors := task.vectors()) is not None:
                model.embedding.load(vectors)
            return model
        if kind == "graph":
            options["level"] = task.readout
        if kind == "fitted":
            check_fitted_task(self.model, task)
            options["target"] = task.target
        return model_class(self.model)(task.input_size, task.output_size, **options)

    @property
    def hash(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of the canonical JSON.

        Options with their frozen default are left out of that JSON.

        Example:
            >>> Run("adding", "LEM", {"length": 500}).hash == Run("adding", "LEM").hash
            True
        """
        fields = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        values = without_defaults(self.task, self.model, fields)
        for name in _ADDED_LATER:
            if values[name] == type(self).__dataclass_fields__[name].default:
                del values[name]
        if values.get("code") == "":
            del values["code"]
        return hashlib.sha256(dump(values).encode()).hexdigest()[:12]

    def __hash__(self) -> int:
        return int(self.hash, 16)

    @property
    def folder_name(self) -> str:
        """Name of the run's folder: task, model and hash."""
        return f"{self.task}-{self.model}-{self.hash}"


@dataclass(frozen=True)
class RunEnvironment:
    """Where and how a run is computed; affects the result only by rounding.

    Raises:
        TypeError: If a field has the wrong type.
        ValueError: If a value is outside its range.

    Example:
        >>> RunEnvironment(out="runs").results_path.as_posix()
        'runs/results.jsonl'
    """

    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """CPU or GPU. "auto" uses a GPU if there is one."""
    devices: int = 1
    """Number of devices (or CPU processes) per machine. Its product with `num_nodes` must divide
    batch_size. Under torchrun or SLURM: the processes that they start per machine."""
    num_nodes: int = 1
    """Number of machines; torchrun or SLURM starts `devices` processes on each."""
    threads: int | None = None
    """CPU threads. Default: PyTorch's choice. Resuming is bit-exact only with the same number."""
    workers: int = 0
    """Processes per device that load training batches ahead (PyTorch's DataLoader). Useful if data
    are read from disk. Does not change the result."""
    data_dir: Path | None = None
    """Folder of the data sets. Default: ANHARMONIC_DATA, or a per-user cache."""
    file: Path | None = None
    """Data file of the task "file"; the run stores its SHA-256."""
    start_from: Path | None = None
    """Finished run to take the initial weights from. It must have the same model. The new run
    stores the SHA-256 of the weights. Default: random weights."""
    out: Path = Path("runs")
    """Parent folder of the run folders."""
    results: Path | None = None
    """File to which each finished run appends a line. Default: results.jsonl in `out`."""
    progress: bool = True
    """Show progress on standard error (in the first of several processes)."""
    diagnose: tuple[str, ...] = ()
    """Diagnostics to measure after every epoch on a few validation samples (training samples if
    there are none). Each adds a line to diagnostics.jsonl in the run folder. Does not change the
    result."""
    diagnose_every: int = 1
    """Epochs between measurements, at least 1. The first and last measurement always take place
    before the first and after the last epoch."""
    logger: LoggerName = "none"
    """Additional log of the curves after every epoch: TensorBoard or a CSV file, in `out` / "logs".
    Does not change the result. For another logger pass a function to `fit(on_epoch_end=...)`; see
    examples/log_elsewhere.py."""

    def __post_init__(self) -> None:
        if isinstance(self.device, str) and self.device.lower() == "gpu":
            expected = "device must be one of 'cpu', 'cuda', 'auto'"
            advice = "choose 'cuda' for an NVIDIA or AMD GPU; 'auto' takes one where there is one"
            raise ValueError(_checks.message(expected, repr(self.device), advice))
        _check_fields(self)
        if rank() > 0:
            object.__setattr__(self, "progress", False)

    @property
    def world_size(self) -> int:
        """Number of processes in a distributed training."""
        return self.devices * self.num_nodes

    @property
    def results_path(self) -> Path:
        """The file to which each finished run appends a line."""
        return self.results if self.results is not None else self.out / "results.jsonl"


def _check_fields(run: Run | RunEnvironment) -> None:
    """Check every field by its rule or its annotation, and store the value that this returns."""
    kind: Any = type(run)
    for name, hint in _checks.hints(kind).items():
        value, kinds = getattr(run, name), get_args(hint) or (hint,)
        rule: Any = _RULES.get(name) or _RULES_BY_TYPE.get(kinds[0])
        if get_origin(hint) is Literal:
            rule = partial(_checks.choice, allowed=kinds)
        if rule and not (value is None and NoneType in kinds):
            object.__setattr__(run, name, rule(name, value))


def _betas(name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise _checks.wrong_type(name, "a pair of numbers", value)
    return tuple(_checks.probability("a beta", beta) for beta in value)


def _digest(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _checks.wrong_type(name, "the SHA-256 of weights", value)
    return value


def _threads(name: str, value: Any) -> int:
    threads = _checks.positive_int(name, value)
    few = threads <= MOST_THREADS
    _checks.require(few, name, threads, f"<= {MOST_THREADS}", "pass one per core")
    return threads


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise _checks.wrong_type(name, "a path", value)
    return Path(value)


def _diagnostics(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise _checks.wrong_type(name, "a list of names of diagnostics", value)
    if value:
        from anharmonic.diagnostics.registry import DIAGNOSTICS  # loads every diagnostic

        for one in value:
            _checks.choice(f"a name in {name}", one, DIAGNOSTICS)
    return tuple(dict.fromkeys(value))


_NUMBER = partial(_checks.number, low=0.0)
# What the annotation of a field does not say.
_RULES: dict[str, Callable[[str, Any], Any]] = {
    "seed": _checks.natural,
    "lr": partial(_NUMBER, low_open=True, high=10.0),
    "clip_norm": partial(_NUMBER, low_open=True),
    "weight_decay": _NUMBER,
    "betas": _betas,
    "warmup": _checks.probability,
    "ema_decay": partial(_NUMBER, low_open=True, high=1.0, high_open=True),
    "label_smoothing": _checks.probability,
    "input_noise": _NUMBER,
    "amplitude_noise": _NUMBER,
    "initial": _digest,
    "threads": _threads,
    "workers": _checks.natural,
    "diagnose": _diagnostics,
}
_RULES_BY_TYPE = {int: _checks.positive_int, bool: _checks.boolean, Path: _path}


def read_fields(cls: type, text: str, what: str) -> dict[str, Any]:
    """Read the fields of a dataclass from the text of a JSON object."""
    try:
        values: dict[str, Any] = _checks.json_of(text)
    except (ValueError, RecursionError) as error:
        advice = "correct the text at that place"
        raise ValueError(_checks.message(f"{what} must be JSON", str(error), advice)) from error
    check_keys(cls, values, what)
    return values


def check_keys(cls: type, values: Any, what: str) -> None:
    """Check that a JSON object has the keys of a dataclass."""
    if not isinstance(values, dict):
        came = type(values).__name__
        raise ValueError(_checks.message(f"{what} must be a JSON object", came, "put it in braces"))
    known = [entry.name for entry in dataclasses.fields(cls)]
    needed = [
        entry.name
        for entry in dataclasses.fields(cls)
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
    ]
    wrong = [f"no key {name!r}" for name in needed if name not in values]
    for key in values.keys() - set(known):
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        wrong.append(f"unknown key {key!r} ({hint})")
    if wrong:
        expected = f"{what} must hold the fields of {cls.__name__}"
        raise ValueError(_checks.message(expected, "; ".join(wrong), "correct these keys"))


def dump(values: Any, indent: int | None = None) -> str:
    """Return JSON with sorted keys, on one line or indented."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(values, sort_keys=True, separators=separators, indent=indent, allow_nan=False)
