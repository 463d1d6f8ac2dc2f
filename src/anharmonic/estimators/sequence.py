"""Trained models as scikit-learn estimators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from anharmonic._checks import positive_int, require
from anharmonic.data import Columns, SequencesTask
from anharmonic.data.own import inputs_of
from anharmonic.data.sequences import Sequences, check_finite
from anharmonic.estimators.inputs import FrameScorer, read_sequences
from anharmonic.estimators.shared import (
    encode,
    indicators,
    numbers,
    threads,
    weighted,
    weights_of,
)
from anharmonic.train import RunEnvironment, fit_in_memory, recipe
from anharmonic.train.options import check_task_options

Floats = NDArray[np.float64]
# Batch size of predictions, always padded to this size and one length. Otherwise rounding would
# depend on the batch's shape, and a prediction on the other sequences.
_TOGETHER = 16
# Learning rate of further epochs, as a share of a schedule's largest.
_FURTHER = 0.1
# Enough sequences to end a run with a test score that nobody reads.
_SCORED = 64


@dataclass(eq=False, repr=False)
class TrainedEstimator(BaseEstimator):
    """Base of the trained estimators: parameters, training and the model's outputs."""

    model: str = "LEM"
    _: KW_ONLY
    hidden_size: int | None = None
    lr: float | None = None
    batch_size: int | None = None
    max_steps: int | None = None
    model_options: Mapping[str, Any] | None = None
    run_options: Mapping[str, Any] | None = None
    missing: str = "error"
    valid_share: float | None = None
    columns: Columns | None = None
    device: str = "cpu"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.three_d_array = True
        return tags

    def _train(self, part: Sequences, **options: Any) -> None:
        """Train a model on sequences with numeric targets, with options of `SequencesTask`."""
        weights = options.pop("class_weights", None)
        further = (self.run_options or {}).get("task_options", {})
        twice = sorted({*options, "missing", "window", "horizon"} & {*further})
        advice = "pass arguments of the estimator, or cut sequences before"
        require(not twice, "task_options", twice, "left to the estimator", advice)
        options = check_task_options("file", further) | options
        if self.valid_share is not None:
            options["valid_share"] = self.valid_share
        options["missing"] = self.missing
        rows = np.unique(np.linspace(0, len(part) - 1, min(len(part), _SCORED)).astype(np.int64))
        parts = {"train": part, "test": part.select(rows)}

        with warnings.catch_warnings():  # about a split that the recipe makes again
            warnings.simplefilter("ignore")
            probe = SequencesTask(parts, source="X", class_weights=weights, **options)
        made = recipe(self.model, probe, self._given(part, options))
        run, prepared = made.run, made.task
        assert isinstance(prepared, SequencesTask)
        if self.max_steps is not None:
            per_epoch = math.ceil(prepared.sizes["train"] / run.batch_size)
            epochs = max(1, positive_int("max_steps", self.max_steps) // per_epoch)
            run = replace(run, epochs=min(run.epochs, epochs))
        self.model_, self.result_ = fit_in_memory(run, self._environment(), prepared)
        self.run_, self._class_weights = run, weights
        self.preprocessing_ = prepared.preprocessing

    def _environment(self) -> RunEnvironment:
        return RunEnvironment(
            device=self.device,  # type: ignore[arg-type]  # checked there
            threads=None if self.n_jobs is None else effective_n_jobs(self.n_jobs),
            progress=bool(self.verbose),
        )

    def _train_on(self, part: Sequences, class_names: Sequence[str] = ()) -> None:
        """Train the existing model for one more epoch on sequences with numeric targets."""
        options = self.run_.task_options | {"valid_share": 0.0, "sha256": part.digest}
        run = replace(
            self.run_,
            task_options=options,
            seed=(self.run_.seed + 1) % 2**32,  # new noise and a new order
            epochs=1,
            lr=self.run_.lr * (1.0 if self.run_.schedule == "constant" else _FURTHER),
            schedule="constant",
            warmup=None,
            select="last",
            patience=None,
        )
        del options["sha256"]
        rows = np.arange(min(len(part), _SCORED))
        task = SequencesTask(
            {"train": part, "test": part.select(rows)},
            source="X",
            class_weights=self._class_weights,
            preprocessing=self.preprocessing_,
            class_names=class_names,
            **options,
        )
        trained = fit_in_memory(run, self._environment(), task, start=self.model_)
        self.model_, self.result_ = trained
        self.run_ = run

    def _given(self, part: Sequences, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that the recipe must not change."""
        further, advice = dict(self.run_options or {}), "leave one of them out"
        for name, key in (("lr", "lr"), ("batch_size", "batch_size"), ("random_state", "seed")):
            fits = getattr(self, name) is None or key not in further
            what, expected = f"{key!r} in run_options", f"absent with {name}"
            require(fits, what, further.get(key), expected, advice)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        given = {"seed": seed, **further}
        model_options = {**given.get("model_options", {}), **(self.model_options or {})}
        for name, settings in (
            ("lr", given),
            ("batch_size", given),
            ("hidden_size", model_options),
        ):
            if (value := getattr(self, name)) is not None:
                settings[name] = value
        task_options = {**options, "sha256": part.digest}
        return given | {"model_options": model_options, "task_options": task_options}

    def _outputs(self, X: Any) -> NDArray[np.float32]:
        """Return the model's outputs in units of the targets, [N, O]."""
        check_is_fitted(self)
        part, _ = read_sequences(self, X, reset=False)
        return self._model_outputs(part)

    def _model_outputs(self, part: Sequences) -> NDArray[np.float32]:
        past = self.preprocessing_.with_future(part)
        check_finite(past, past.x, self.missing != "error")
        with threads(self.n_jobs), torch.no_grad():
            return outputs_of(self.model_, part, self.preprocessing_)


def with_weights(part: Sequences, y: Any, sample_weight: Any) -> tuple[Sequences, Any]:
    """Return sequences and targets without those of weight 0; the factors on losses have mean 1."""
    part, y, weights = weighted(part, y, sample_weight)
    if weights is not None:
        part = replace(part, weights=(weights / weights.mean()).astype(np.float32))
    return part, y


def outputs_of(model: Any, part: Sequences, preprocessing: Any) -> NDArray[np.float32]:
    """Return outputs [N, O] in units of the targets, each independent of the other sequences."""
    data = inputs_of(part, preprocessing).dataset
    lengths = np.full(len(data), data.x.shape[1]) if data.lengths is None else data.lengths.numpy()
    found: NDArray[np.float32] | None = None
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        for first in range(0, len(rows), _TOGETHER):
            chosen = rows[first : first + _TOGETHER]
            filled = torch.from_numpy(np.resize(chosen, _TOGETHER))
            batch = data.take(filled)
            output = batch.select(model(batch.x, None, batch.elapsed)).numpy()
            if found is None:
                found = np.empty((len(data), output.shape[1]), np.float32)
            found[chosen] = output[: len(chosen)]
    assert found is not None
    return found


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceClassifier(FrameScorer, ClassifierMixin, TrainedEstimator):
    """Classifies sequences with a trained model: one class or several labels each.

    The recipe chooses open settings from the data (`anharmonic.train.recipe`). Predictions for a
    sequence do not depend on the other sequences, to the last bit.

    Args:
        model: Name of a sequence model; see `anharmonic.list_models`.
        hidden_size: Width of the model, at least 1. For this and the following arguments, None
            means chosen from the data.
        lr: Largest learning rate, in (0, 10].
        batch_size: Sequences per optimiser step, at least 1.
        max_steps: Largest number of optimiser steps, at least 1, rounded to whole epochs with a
            minimum of one. None: chosen by the recipe.
        model_options: Further options of the model, e.g. {"dt": 0.1}.
        run_options: Further fields of `anharmonic.train.Run`, e.g. {"weight_decay": 0.1}.
        missing: "error" raises an error for NaN; "mean", "forward" and "mask" fill it, see
            `anharmonic.data.FileTask`.
        valid_share: Share of the sequences, in [0, 1), that chooses the best epoch.
        columns: Roles of a frame's columns; None to infer them from the names.
        device: Training device: "cpu", "cuda" or "auto". Predictions run on the CPU.
        class_weight: "balanced", or a dict of factors > 0 on the loss by class. Not for several
            labels.
        random_state: Seed, `numpy.random.RandomState`, or None for a new seed at every `fit`.
        n_jobs: Threads of PyTorch; -1 for all cores, None for PyTorch's number.
        verbose: Whether to show progress.

    Attributes:
        classes_: The sorted classes; with several labels, their columns in y.
        model_: The trained `anharmonic.SequenceModel`.
        run_: The settings, an `anharmonic.train.Run`.
        result_: The training result: losses, seconds.
        preprocessing_: The preprocessing of the inputs.
        n_channels_: Channels of X.
        n_features_in_: Steps of X, if X was an array [n, T].

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(40, 1, 30)).cumsum(axis=2)
        >>> y = np.where(X[:, 0, -1] > 0, "up", "down")
        >>> model = SequenceClassifier("CoRNN", max_steps=30, random_state=0).fit(X, y)
        >>> model.predict_proba(X[:3]).shape, model.classes_.tolist()
        ((3, 2), ['down', 'up'])
    """

    class_weight: str | Mapping[Any, float] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the model.

        Args:
            X: Sequences: an array `[n, T]` or `[n, C, T]`, a list of n arrays `[T]` or `[C, T]` of
                unequal lengths, or a frame.
            y: Class of every sequence, of any sortable type, or zeros and ones `[n, K]` for K
                labels. The name of a frame's column also works; None to find the column.
            sample_weight: Factor on each sequence in the loss, `[n]`, >= 0; 0 leaves it out. None
                for 1.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
            anharmonic.train.DivergedError: If training diverges.
        """
        return self._fit(
            *read_sequences(self, X, y, reset=True, wanted=True, least=2), sample_weight
        )

    def _fit(self, part: Sequences, y: Any, sample_weight: Any) -> Self:
        """Train the model on sequences that were read."""
        part, y = with_weights(part, y, sample_weight)
        labels = indicators(y)
        if labels is not None:
            fits, advice = self.class_weight is None, "weigh sequences with sample_weight"
            expected = "None for several labels"
            require(fits, "class_weight", self.class_weight, expected, advice)
            self._train(part.with_targets(labels), target="labels")
            self.classes_, self._has_labels = np.arange(labels.shape[1]), True
            return self
        classes, codes = encode(y)
        weights = None
        if self.class_weight is not None:
            again = (self.run_options or {}).get("class_weights", "none")
            fits, advice = again == "none", "leave one of them out"
            expected = "'none' with class_weight"
            require(fits, "class_weights of run_options", again, expected, advice)
            weights = weights_of(self.class_weight, classes, codes)
        self._train(part.with_targets(codes), target="class", class_weights=weights)
        # Only now: after an interrupted fit the earlier model still has its own classes.
        self.classes_, self._has_labels = classes, False
        return self

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train the model for one more epoch; the first call is `fit`.

        Inputs are prepared as in the first call. The learning rate is a tenth of the first call's
        largest one, or the same for a constant schedule.

        Args:
            X: Sequences, as in `fit`.
            y: Class of every sequence; later calls need not contain every class.
            classes: All classes, required in the first call unless y contains them all; None for
                those of y.
            sample_weight: As in `fit`.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a class is new or has no
                sequence in the first call.
            anharmonic.train.DivergedError: If training diverges.
        """
        if not hasattr(self, "model_"):
            part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
            if classes is not None:
                absent = np.setdiff1d(classes, np.asarray(y)).tolist()
                advice = "give the first call a sequence of every class"
                require(not absent, "classes without a sequence", absent[:5], "none", advice)
                new = np.setdiff1d(y, classes).tolist()
                expected = f"of the given {np.unique(classes).tolist()}"
                require(not new, "classes of y", new[:5], expected, "name them in classes")
            return self._fit(part, y, sample_weight)
        part, y = read_sequences(self, X, y, reset=False, wanted=True)
        part, y = with_weights(part, y, sample_weight)
        if self._has_labels:
            labels, shape = indicators(y), f"zeros and ones [n, {len(self.classes_)}], as in fit"
            fits = labels is not None and labels.shape[1] == len(self.classes_)
            require(fits, "y", np.shape(y), shape, "give every label a column")
            self._train_on(part.with_targets(labels))
            return self
        y = column_or_1d(y, warn=True)
        new = np.setdiff1d(y, self.classes_).tolist()
        require(not new, "classes of y", new[:5], f"of {self.classes_.tolist()}", "call fit")
        codes = np.searchsorted(self.classes_, y).astype(np.int64)
        names = [str(code) for code in range(len(self.classes_))]
        self._train_on(part.with_targets(codes), names)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, `[n, number of classes]`, or of every label."""
        logits = self._outputs(X).astype(np.float64)
        return np.asarray(expit(logits) if self._has_labels else softmax(logits, axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of every sequence, `[n]`, or labels as 0 and 1, `[n, K]`."""
        shares = self.predict_proba(X)
        if self._has_labels:
            return np.asarray(shares > 0.5, np.int64)
        return np.asarray(self.classes_[shares.argmax(axis=1)])


class SequenceRegressor(FrameScorer, RegressorMixin, TrainedEstimator):
    """Predicts one or several values of a sequence with a trained model.

    The parameters are those of `SequenceClassifier` without `class_weight`.

    Attributes:
        model_: The trained `anharmonic.SequenceModel`; `run_`, `result_`, `preprocessing_`,
            `n_channels_` and `n_features_in_` are as in `SequenceClassifier`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = [rng.normal(size=(2, steps)) for steps in rng.integers(20, 30, 40)]
        >>> y = np.array([x.mean() for x in X])
        >>> SequenceRegressor("CoRNN", max_steps=30, random_state=0).fit(X, y).predict(X).shape
        (40,)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the model.

        Args:
            X: Sequences, as in `SequenceClassifier.fit`.
            y: Numbers `[n]` or `[n, O]`, or the name of a frame's column; None to find the column.
            sample_weight: Factor on each sequence in the loss, `[n]`, >= 0; 0 leaves it out. None
                for 1.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
            anharmonic.train.DivergedError: If training diverges.
        """
        part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
        part, y = with_weights(part, y, sample_weight)
        values, self._is_flat = numbers(y)
        self._train(part.with_targets(values), target="value")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the model for one more epoch, like `SequenceClassifier.partial_fit`.

        Args:
            X: Sequences, as in `fit`.
            y: Numbers, as in `fit`.
            sample_weight: As in `fit`.

        Raises:
            ValueError: If X and y cannot be read or do not fit.
            anharmonic.train.DivergedError: If training diverges.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight)
        part, y = read_sequences(self, X, y, reset=False, wanted=True)
        part, y = with_weights(part, y, sample_weight)
        values, _ = numbers(y)
        width = len(self.preprocessing_.target_scale) or self.model_.output_size
        require(values.shape[1] == width, "numbers of y", values.shape[1], f"{width}", "as in fit")
        self._train_on(part.with_targets(values))
        return self

    def predict(self, X: Any) -> Floats:
        """Return the values of every sequence, `[n]` or `[n, O]` like y."""
        values = self._outputs(X).astype(np.float64)
        return values[:, 0] if self._is_flat else values
