"""Resonators: features of random oscillators, and linear models of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from anharmonic._checks import require
from anharmonic.data import Columns
from anharmonic.data.sequences import Sequences
from anharmonic.estimators.inputs import read_sequences
from anharmonic.estimators.ridge import fit_ridge
from anharmonic.estimators.shared import encode, threads, weights_of
from anharmonic.nn import ResonatorFeatures, ResonatorStream

Floats = NDArray[np.float64]
# The largest factor on decisions: beyond it, probabilities are 0 and 1 to float64.
_SHARPEST = 50.0
# Sequences whose features are scaled together: few enough to stay in the processor's cache.
_ROWS = 16


class ResonatorEstimator(BaseEstimator):
    """What estimators on resonators share: parameters and features."""

    def __init__(
        self,
        num_oscillators: int = 1000,
        *,
        num_biases: int = 2,
        scaling: str = "train",
        pools: Sequence[str] | None = None,
        columns: Columns | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.num_oscillators = num_oscillators
        self.num_biases = num_biases
        self.scaling = scaling
        self.pools = pools
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _fit_features(self, part: Sequences) -> NDArray[np.float32]:
        """Draws the oscillators; the features of the sequences, [N, D]."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        pooled: dict[str, Any] = {} if self.pools is None else {"pools": self.pools}
        made = ResonatorFeatures(
            self.num_oscillators,
            num_biases=self.num_biases,
            scaling=self.scaling,
            seed=seed,
            **pooled,
        )
        with threads(self.n_jobs):
            self.features_ = made.fit(_steps(part))
            return np.asarray(made.transform(_steps(part)))

    def _features(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """The features of X, of some sequences after the other, [n, D]."""
        check_is_fitted(self)
        part, _ = read_sequences(self, X, reset=False)
        return self._parts(_steps(part))

    def _parts(self, steps: list[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        with threads(self.n_jobs):
            yield from self.features_.transform_in_parts(steps)


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
    return [part.x[start:end] for start, end in pairwise(part.offsets.tolist())]


class ResonatorTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ResonatorEstimator):
    """Features of sequences: random oscillators are driven by them, and pooled.

    See `anharmonic.nn.ResonatorFeatures`. A linear model of the standardised features learns small
    data sets well without anything to tune: `ResonatorClassifier` and `ResonatorRegressor`.

    Args:
        num_oscillators: How many oscillators, at least 1.
        num_biases: Biases of each, at least 1.
        scaling: "train" scales channels by mean and deviation of the training set; "series" scales
            every sequence by its own, and does not stream; "running" by those of its steps so far.
        pools: What is pooled, see `anharmonic.nn.ResonatorFeatures`; None for its default.
        columns: Of frames, which column is what; None to find it by its name.
        random_state: Seed, generator, or None for other oscillators with every `fit`.
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
        """Draws the oscillators, and their biases from what X does to them.

        Args:
            X: Sequences: an array `[n, T]` or `[n, C, T]`, a list of n arrays `[T]` or `[C, T]` of
                unequal lengths, or a frame.
            y: Not looked at.

        Raises:
            ValueError: If X cannot be read, or a parameter is out of range.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """`fit`, then the features of the same sequences, `[n, D]`."""
        part, _ = read_sequences(self, X, reset=True)
        found = self._fit_features(part)
        self._n_features_out = found.shape[1]
        return found

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features of sequences, `[n, D]`; what else is in X has no effect."""
        return np.concatenate(list(self._features(X)))


class _Linear(ResonatorEstimator):
    """A ridge regression on standardised features; its penalty is found by leaving one out."""

    def _fit_linear(
        self, found: NDArray[np.float32], targets: Floats, weights: Floats | None = None
    ) -> Floats:
        """Fits; predictions for every sequence by what was learnt from all others, [N, O]."""
        wide = found.astype(np.float64)
        self.scaler_ = StandardScaler().fit(wide)
        wide -= self.scaler_.mean_  # as the scaler does, without copies
        wide /= self.scaler_.scale_
        alphas = np.logspace(-4, 4, 20) if self.alphas is None else np.asarray(self.alphas)
        self.ridge_, left_out = fit_ridge(wide, targets, alphas, weights)
        return left_out

    def _linear(self, parts: Iterable[NDArray[np.float32]]) -> Floats:
        """What the linear model says to features, [N, O].

        Every row is a product of its own: as one product of matrices, rounding would depend on how
        many there are.
        """
        weight, rows = np.atleast_2d(self.ridge_.coef_) / self.scaler_.scale_, []
        for found in parts:
            for first in range(0, len(found), _ROWS):
                rows += [weight @ row for row in found[first : first + _ROWS] - self.scaler_.mean_]
        return np.asarray(np.stack(rows) + self.ridge_.intercept_)


class ResonatorClassifier(ClassifierMixin, _Linear):
    """Classifies sequences by a linear model of what random oscillators do.

    The model is a ridge regression of each class against the others on the standardised features of
    `ResonatorTransformer`. Probabilities are the softmax of its decisions times one factor,
    fitted to decisions for every sequence by what was learnt from all others.

    Args:
        num_oscillators: How many oscillators, at least 1.
        num_biases: Biases of each, at least 1.
        scaling: As of `ResonatorTransformer`.
        pools: As of `ResonatorTransformer`.
        alphas: Penalties to choose from, > 0. None: 20 from 1e-4 to 1e4.
        class_weight: "balanced", or a factor on each class, as a dict by class.
        columns: Of frames, which column is what; None to find it by its name.
        random_state: Seed, generator, or None for other oscillators with every `fit`.
        n_jobs: Threads of PyTorch; -1 for all cores, None for PyTorch's number.

    Attributes:
        classes_: The classes, sorted.
        features_: The fitted `anharmonic.nn.ResonatorFeatures`.
        scaler_: The `StandardScaler` of the features.
        ridge_: The `RidgeCV` of the scaled features.
        sharpness_: The factor on decisions in probabilities.
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

    def __init__(
        self,
        num_oscillators: int = 1000,
        *,
        num_biases: int = 2,
        scaling: str = "train",
        pools: Sequence[str] | None = None,
        alphas: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        columns: Columns | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            num_oscillators,
            num_biases=num_biases,
            scaling=scaling,
            pools=pools,
            columns=columns,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.alphas = alphas
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draws the oscillators and fits the linear model.

        Args:
            X: Sequences, as of `ResonatorTransformer.fit`.
            y: Class of every sequence, of any type that sorts; None to take a frame's column.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
        """
        part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
        self.classes_, codes = encode(y)
        weights = None
        if self.class_weight is not None:
            weights = np.array(weights_of(self.class_weight, self.classes_, codes))[codes]
        against = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        if len(self.classes_) == 2:
            against = against[:, 1:]
        left_out = self._fit_linear(self._fit_features(part), against, weights)
        self.sharpness_ = sharpness(_by_class(left_out), codes, weights)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Decisions, `[n, number of classes]`; of two classes `[n]`, above 0 for the second."""
        found = self._linear(self._features(X))
        return found[:, 0] if len(self.classes_) == 2 else found

    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class, `[n, number of classes]`."""
        return self._shares(self._features(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every sequence, `[n]`."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def stream(self, num_streams: int = 1) -> ClassifierStream:
        """Begins sequences whose steps come one by one, to be classified at any time.

        Args:
            num_streams: How many run side by side, at least 1.

        Raises:
            ValueError: If the scaling is "series", which needs the end of a sequence.
        """
        check_is_fitted(self)
        return ClassifierStream(self, self.features_.stream(num_streams))

    def _shares(self, parts: Iterable[NDArray[np.float32]]) -> Floats:
        decisions = _by_class(self._linear(parts))
        return np.asarray(softmax(self.sharpness_ * decisions, axis=1))


class ClassifierStream:
    """Sequences whose steps come one by one; `ResonatorClassifier.stream` makes it.

    Probabilities are those that the classifier has for the steps so far, to the last bit.

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
        """Begins anew: forgets all steps."""
        self._stream.reset()

    def update(self, x_t: Any) -> None:
        """Takes the next step of every sequence, `[num_streams, C]`, or `[C]` if there is one.

        Raises:
            ValueError: If it has another shape or a number that is not finite.
        """
        # Whole sequences are kept in float32, too.
        self._stream.update(np.asarray(x_t, np.float32))

    def predict_proba(self) -> Floats:
        """Probability of every class now, `[num_streams, number of classes]`.

        Raises:
            ValueError: If no step has come.
        """
        return self._model._shares([self._stream.features()])

    def predict(self) -> NDArray[Any]:
        """The likeliest class of every sequence now, `[num_streams]`."""
        return np.asarray(self._model.classes_[self.predict_proba().argmax(axis=1)])


class ResonatorRegressor(RegressorMixin, _Linear):
    """Predicts one or several numbers of a sequence by a linear model of what oscillators do.

    The parameters are those of `ResonatorClassifier` without `class_weight`.

    Attributes:
        features_: The fitted `anharmonic.nn.ResonatorFeatures`; `scaler_`, `ridge_`, `n_channels_`
            and `n_features_in_` are as of `ResonatorClassifier`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> speed = rng.uniform(0.3, 1, 60)
        >>> X = np.sin(speed[:, None] * np.arange(50) + rng.uniform(0, 6, (60, 1)))
        >>> model = ResonatorRegressor(50, random_state=0).fit(X[:40], speed[:40])
        >>> model.score(X[40:], speed[40:]) > 0.95
        True
    """

    def __init__(
        self,
        num_oscillators: int = 1000,
        *,
        num_biases: int = 2,
        scaling: str = "train",
        pools: Sequence[str] | None = None,
        alphas: Any = None,
        columns: Columns | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            num_oscillators,
            num_biases=num_biases,
            scaling=scaling,
            pools=pools,
            columns=columns,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.alphas = alphas

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draws the oscillators and fits the linear model.

        Args:
            X: Sequences, as of `ResonatorTransformer.fit`.
            y: Numbers `[n]` or `[n, O]`; None to take a frame's column.

        Raises:
            ValueError: If X and y cannot be read or do not fit, or a parameter is out of range.
        """
        part, y = read_sequences(self, X, y, reset=True, wanted=True, least=2)
        values = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        self._is_flat = values.ndim == 1
        self._fit_linear(self._fit_features(part), values.reshape(len(part), -1))
        return self

    def predict(self, X: Any) -> Floats:
        """The numbers of every sequence, `[n]` or `[n, O]` as y was."""
        values = self._linear(self._features(X))
        return values[:, 0] if self._is_flat else values


def sharpness(decisions: Floats, codes: NDArray[np.int64], weights: Floats | None = None) -> float:
    """The factor on decisions whose softmax fits the classes best.

    Targets are a little less than certain, as in Platt's scaling, so that classes which decisions
    part without an error do not get a probability of 1.

    Args:
        decisions: For sequences that were not learnt from, `[N, C]`.
        codes: The number of the class of each.
        weights: A factor on each; None for 1.

    Example:
        >>> decisions = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
        >>> sharp = sharpness(decisions, np.array([0, 0, 1]))
        >>> float(softmax(sharp * decisions, axis=1)[0, 0].round(3))  # 1 - 1 / (3 + 2)
        0.8
    """
    count, classes = decisions.shape
    sure = 1 - 1 / (count + 2)
    targets = np.full((count, classes), (1 - sure) / (classes - 1))
    targets[np.arange(count), codes] = sure

    def loss(logarithm: float) -> float:
        shares = log_softmax(np.exp(logarithm) * decisions, axis=1)
        return -float(np.average((targets * shares).sum(axis=1), weights=weights))

    ends = (-np.log(_SHARPEST), np.log(_SHARPEST))
    return float(np.exp(minimize_scalar(loss, bounds=ends, method="bounded").x))


def _by_class(decisions: Floats) -> Floats:
    """Decisions for each class; one for two classes is that for the second."""
    return np.hstack([-decisions, decisions]) if decisions.shape[1] == 1 else decisions
