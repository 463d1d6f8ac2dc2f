"""Resonators: features of random oscillators, and linear models on them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from anharmonic._checks import levels_to_caller, require
from anharmonic.data import Columns
from anharmonic.data.arrays import without_mask
from anharmonic.data.sequences import Sequences
from anharmonic.estimators.inputs import FrameScorer, read_sequences
from anharmonic.estimators.shared import encode, numbers, threads, weighted, weights_of
from anharmonic.nn import ResonatorFeatures, Resonators, ResonatorStream

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class ResonatorEstimator(BaseEstimator):
    """Base of the estimators on resonators: parameters and features."""

    num_oscillators: int = 1000
    _: KW_ONLY
    num_biases: int = 2
    scaling: str = "train"
    pools: Sequence[str] | None = None
    columns: Columns | None = None
    random_state: Any = None
    n_jobs: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _drawn(self) -> dict[str, Any]:
        """Return the arguments of the oscillators."""
        given = {"num_biases": self.num_biases, "scaling": self.scaling}
        return given if self.pools is None else {**given, "pools": self.pools}

    def _features(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """Yield the features of successive groups of sequences, [n, D]."""
        check_is_fitted(self)
        part, _ = read_sequences(self, X, reset=False)
        with threads(self.n_jobs):
            yield from self.features_.transform_in_parts(_steps(part))


def _steps(part: Sequences) -> list[NDArray[np.float32]]:
    bad = np.flatnonzero(~np.isfinite(part.x).all(axis=1))
    if len(bad):
        sequence, step = part.place(int(bad[0]))
        name = f"X[{sequence}] at step {step}"
        advice = (
            "fill gaps before, for example with the last known value, or train "
            "SequenceClassifier or SequenceRegressor with missing='forward'"
        )
        require(False, name, "NaN or infinity", "finite numbers", advice)
    if part.elapsed is not None:
        warnings.warn(
            "the times of X are uneven, but resonators read its steps as evenly spaced; add the "
            "time since the previous step as a column, or call SequenceClassifier or "
            "SequenceRegressor, which read the times",
            stacklevel=levels_to_caller("anharmonic.", "sklearn."),
        )
    return [part.x[start:end] for start, end in pairwise(part.offsets.tolist())]


class ResonatorTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ResonatorEstimator):
    """Compute features of sequences: pooled responses of random oscillators.

    See `anharmonic.nn.ResonatorFeatures`. `ResonatorClassifier` and `ResonatorRegressor` fit a
    linear model to the standardised features. They learn small data sets well without tuning.

    Args:
        num_oscillators: Number of oscillators, at least 1.
        num_biases: Number of biases of each oscillator, at least 1.
        scaling: "train" scales channels by the mean and deviation of the training set; "series"
            scales every sequence by its own, and does not stream; "running" by those of its steps
            so far.
        pools: Names of the pools; see `anharmonic.nn.ResonatorFeatures`. None for its default.
        columns: Roles of a frame's columns; None to infer them from the names.
        random_state: Seed, `numpy.random.RandomState`, or None for new oscillators at every `fit`.
        n_jobs: Threads of PyTorch; -1 for all cores, None for PyTorch's number.

    Attributes:
        features_: The fitted `anharmonic.nn.ResonatorFeatures`.
        n_channels_: Channels of X.
        n_features_in_: Steps of X, if X was an array [n, T].

    Example:
        >>> X = np.random.default_rng(0).normal(size=(5, 2, 30))
        >>> found = ResonatorTransformer(20, random_state=0).fit_transform(X)
        >>> len(found), found.dtype
        (5, dtype('float32'))
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the oscillators, and their biases from responses to X.

        Args:
            X: Sequences: an array `[n, T]` or `[n, C, T]`, a list of n arrays `[T]` or `[C, T]` of
                unequal lengths, or a frame.
            y: Ignored.

        Raises:
            ValueError: If X cannot be read, or a parameter is out of range.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """Call `fit`, then return the features of the same sequences, `[n, D]`."""
        part, _ = read_sequences(self, X, reset=True)
        made = ResonatorFeatures(self.num_oscillators, seed=self._seed(), **self._drawn())
        with threads(self.n_jobs):
            sequences = _steps(part)
            self.features_ = made.fit(sequences)
            found = np.asarray(made.transform(sequences))
        self._n_features_out = found.shape[1]
        return self._framed(found, X)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of each sequence, `[n, D]`, independent of the rest of X."""
        return self._framed(np.concatenate(list(self._features(X))), X)

    def _framed(self, found: NDArray[np.float32], X: Any) -> NDArray[np.float32]:
        """Return a frame where scikit-learn would give it the index of X, which has more rows."""
        framed = _get_output_config("transform", self)["dense"] == "pandas"
        if not framed or len(found) == len(X):
            return found
        import pandas as pd

        frame: NDArray[np.float32] = pd.DataFrame(found)
        return frame


@dataclass(eq=False, repr=False, kw_only=True)
class _Linear(ResonatorEstimator):
    """A ridge regression on standardised features, with a leave-one-out penalty."""

    alphas: Any = None

    def _fit_model(
        self,
        part: Sequences,
        target: Literal["class", "value"],
        targets: NDArray[Any],
        weights: Floats | None = None,
        copies: Floats | None = None,
    ) -> None:
        """Fit and store the model."""
        outputs = int(targets.max()) + 1 if target == "class" else targets.shape[1]
        model = Resonators(
            part.x.shape[1],
            outputs,
            target=target,
            num_oscillators=self.num_oscillators,
            alphas=self.alphas,
            **self._drawn(),
        )
        with threads(self.n_jobs):
            model.fit(_steps(part), targets, seed=self._seed(), weights=weights, copies=copies)
        fitted = model.fitted
        assert fitted is not None
        self.model_, self.features_ = model, model.features
        self.scaler_, self.ridge_ = fitted.scaler, fitted.ridge
        model.fitted = None

    def _decisions(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self.model_.decisions(self._features(X))


@dataclass(eq=False, repr=False, kw_only=True)
class ResonatorClassifier(FrameScorer, ClassifierMixin, _Linear):
    """Classifies sequences by a linear model on the responses of random oscillators.

    The model is a one-against-rest ridge regression on the standardised features of
    `ResonatorTransformer`. With 50 or more sequences, each feature is multiplied by the share of
    its variance that lies between the classes. Probabilities are the softmax of its decisions times
    a factor, which is fitted to leave-one-out decisions without these shares.

    It wraps `anharmonic.nn.Resonators`, the module that `anharmonic train resonators` fits.
    `anharmonic.ResonatorBank` is a layer that is trained with gradients.

    Args:
        num_oscillators: Number of oscillators, at least 1.
        num_biases: Number of biases of each oscillator, at least 1.
        scaling: As in `ResonatorTransformer`.
        pools: As in `ResonatorTransformer`.
        alphas: Penalties to choose from, > 0. None: 20 from 1e-4 to 1e4.
        class_weight: "balanced", or a dict of factors > 0 by class.
        columns: Roles of a frame's columns; None to infer them from the names.
        random_state: Seed, `numpy.random.RandomState`, or None for new oscillators at every `fit`.
        n_jobs: Threads of PyTorch; -1 for all cores, None for PyTorch's number.

    Attributes:
        classes_: The classes, sorted.
        model_: The fitted `anharmonic.nn.Resonators`.
        features_: The fitted `anharmonic.nn.ResonatorFeatures`.
        scaler_: The `StandardScaler` of the features; its `scale_` includes their shares.
        ridge_: The `RidgeCV` of the scaled features.
        sharpness_: The factor on decisions for probabilities.
        n_channels_: Channels of X.
        n_features_in_: Steps of X, if X was an array [n, T].

    Example:
        >>> rng = np.random.default_rng(0)
        >>> speed = rng.choice([0.3, 1.0], size=(40, 1))
        >>> X = np.sin(speed * np.arange(50) + rng.uniform(0, 6, (40, 1)))
        >>> y = np.where(speed[:, 0] == 0.3, "slow", "fast")
        >>> model = ResonatorClassifier(50, random_state=0).fit(X[:20], y[:20])
        >>> model.score(X[20:], y[20:])
        1.0
    """

    class_weight: str | Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the oscillators and fit the linear model.

        Args:
            X: Sequences, as in `ResonatorTransformer.fit`.
            y: Class of every sequence, of any sortable type, or the name of a frame's column;
                None to find the column.
            sample_weight: How often each sequence counts in the linear model, `[n]`, >= 0. A value
                of 2 equals two copies, 0 leaves the sequence out. None for 1.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
        """
        part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
        part, y, copies = weighted(part, y, sample_weight)
        classes, codes = encode(y)
        weights = None
        if self.class_weight is not None:
            weights = np.array(weights_of(self.class_weight, classes, codes, copies))[codes]
        self._fit_model(part, "class", codes, weights, copies)
        self.classes_ = classes
        self.sharpness_ = float(self.model_.sharpness)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return decisions, `[n, classes]`; with two classes `[n]`, > 0 for the second."""
        found = self._decisions(X)
        return found[:, 1] if len(self.classes_) == 2 else found

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, `[n, number of classes]`."""
        check_is_fitted(self)
        return self._shares(self._features(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of every sequence, `[n]`."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def stream(self, num_streams: int = 1) -> ClassifierStream:
        """Start streams of sequences that can be classified after any step.

        Args:
            num_streams: Number of parallel streams, at least 1.

        Raises:
            ValueError: If the scaling is "series", which needs whole sequences.
        """
        check_is_fitted(self)
        return ClassifierStream(self, self.features_.stream(num_streams))

    def _shares(self, parts: Iterable[NDArray[np.float32]]) -> Floats:
        return np.asarray(softmax(self.sharpness_ * self.model_.decisions(parts), axis=1))


class ClassifierStream:
    """Streams of sequences, updated step by step; made by `ResonatorClassifier.stream`.

    Probabilities equal those of the classifier for the steps so far, to the last bit.

    Example:
        >>> X = np.random.default_rng(0).normal(size=(10, 2, 30))
        >>> model = ResonatorClassifier(20, random_state=0).fit(X, np.arange(10) % 2)
        >>> stream = model.stream(num_streams=3)
        >>> for t in range(30):
        ...     stream.update(X[:3, :, t])
        >>> bool((stream.predict_proba() == model.predict_proba(X[:3])).all())
        True
    """

    def __init__(self, model: ResonatorClassifier, stream: ResonatorStream) -> None:
        self._model, self._stream = model, stream

    def reset(self) -> None:
        """Restart and forget all steps."""
        self._stream.reset()

    def update(self, x_t: Any) -> None:
        """Take the next step of every sequence, `[num_streams, C]`, or `[C]` if there is one.

        Raises:
            ValueError: If its shape is wrong or a number is not finite.
        """
        # Whole sequences are stored in float32, too.
        self._stream.update(np.asarray(without_mask(x_t), np.float32))

    def predict_proba(self) -> Floats:
        """Return the current probability of every class, `[num_streams, number of classes]`.

        Raises:
            ValueError: If there was no step yet.
        """
        return self._model._shares([self._stream.features()])

    def predict(self) -> NDArray[Any]:
        """Return the currently most likely class of every sequence, `[num_streams]`."""
        return np.asarray(self._model.classes_[self.predict_proba().argmax(axis=1)])


@dataclass(eq=False, repr=False, kw_only=True)
class ResonatorRegressor(FrameScorer, RegressorMixin, _Linear):
    """Predicts values of a sequence by a linear model on the responses of random oscillators.

    The parameters are those of `ResonatorClassifier` without `class_weight`.

    Attributes:
        model_: The fitted `anharmonic.nn.Resonators`; `features_`, `scaler_`, `ridge_`,
            `n_channels_` and `n_features_in_` are as in `ResonatorClassifier`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> speed = rng.uniform(0.3, 1, 60)
        >>> X = np.sin(speed[:, None] * np.arange(50) + rng.uniform(0, 6, (60, 1)))
        >>> model = ResonatorRegressor(50, random_state=0).fit(X[:40], speed[:40])
        >>> model.score(X[40:], speed[40:]) > 0.95
        True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the oscillators and fit the linear model.

        Args:
            X: Sequences, as in `ResonatorTransformer.fit`.
            y: Numbers `[n]` or `[n, O]`, or the name of a frame's column; None to find the column.
            sample_weight: How often each sequence counts in the linear model, `[n]`, >= 0. A value
                of 2 equals two copies, 0 leaves the sequence out. None for 1.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
        """
        part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
        part, y, copies = weighted(part, y, sample_weight)
        values, self._is_flat = numbers(y)
        self._fit_model(part, "value", values, copies=copies)
        return self

    def predict(self, X: Any) -> Floats:
        """Return the values of every sequence, `[n]` or `[n, O]` like y."""
        values = self._decisions(X)
        return values[:, 0] if self._is_flat else values
