"""Forecasts of series as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from anharmonic._checks import positive_int, require
from anharmonic.data.parts import VALID_SHARE
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import channel_numbers, known_channels, with_future
from anharmonic.estimators.inputs import read_sequences
from anharmonic.estimators.sequence import TrainedEstimator, with_weights

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceForecaster(TrainedEstimator):
    """Forecasts the next steps of series with a trained model.

    The model learns from windows of all series to predict what follows each window. Forecasts start
    from the last window and have the units of X.

    Args:
        model: Name of a sequence model; see `anharmonic.list_models`.
        horizon: Steps to forecast, at least 1.
        window: Past steps to forecast from, at least 1. None: four horizons, at least 16, if the
            series are long enough.
        forecast: Channels to forecast, by name or number from 0. None for all.
        known: Channels that are known in advance, such as a calendar or a price: columns of a frame
            by name, otherwise by number. X of `predict` must then include the steps to forecast,
            with NaN in all other channels.
        quantiles: Quantiles to forecast: increasing numbers in (0, 1) including 0.5, such as [0.1,
            0.5, 0.9]. None forecasts the mean.
        hidden_size: As in `SequenceClassifier`, like all following arguments except `valid_share`.
        lr: Largest learning rate.
        batch_size: Windows per optimiser step.
        max_steps: Most optimiser steps.
        model_options: Further options of the model.
        run_options: Further fields of `anharmonic.train.Run`.
        missing: How to treat NaN. Windows followed by unknown values are left out.
        valid_share: Share of each series' steps, taken from its end, that chooses the best epoch;
            in [0, 1).
        columns: Roles of a frame's columns.
        device: "cpu", "cuda" or "auto", to train on.
        random_state: Seed, `numpy.random.RandomState`, or None.
        n_jobs: Threads of PyTorch.
        verbose: Whether to show progress.

    Attributes:
        model_: The trained `anharmonic.SequenceModel`; `run_`, `result_`, `preprocessing_` and
            `n_channels_` are as in `SequenceClassifier`.
        n_features_in_: Steps of X, if X was an array [n, T]. X of `predict` must then have as many.
            With [n, C, T] or a list, series may have other lengths.

    Example:
        >>> t = np.arange(200)
        >>> X = np.sin(0.3 * t)[None, None]  # one series of one channel
        >>> model = SequenceForecaster("GRU", horizon=5, max_steps=60, random_state=0)
        >>> model.fit(X[:, :, :150]).predict(X[:, :, :170]).shape
        (1, 1, 5)
    """

    horizon: int = 1
    window: int | None = None
    forecast: Sequence[str | int] | None = None
    known: Sequence[str | int] | None = None
    quantiles: Sequence[float] | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the model.

        Args:
            X: Series: an array `[n, T]` or `[n, C, T]`, a list of n arrays `[T]` or `[C, T]` of
                unequal lengths, or a frame.
            y: Ignored; the targets are in X.
            sample_weight: Factor on each series in the loss, `[n]`, >= 0; 0 leaves it out. None for
                1.

        Raises:
            ValueError: If X cannot be read, is too short, or a parameter is out of range.
            anharmonic.train.DivergedError: If training diverges.
        """
        horizon = positive_int("horizon", self.horizon)
        part, _ = read_sequences(self, X, reset=True)
        part, _ = with_weights(part, None, sample_weight)
        longest = int(part.lengths.max())
        advice = "give longer series, or a smaller horizon"
        expected, came = f"more than horizon={horizon}", f"n_features={longest}"
        require(longest > horizon, "steps of X", came, expected, advice)
        options: dict[str, Any] = {"horizon": horizon, "window": self.window}
        for name in ("forecast", "known"):
            options[name] = [str(channel) for channel in self._several(name)]
        options["quantiles"] = self._several("quantiles")
        past = part
        if known := known_channels(part, tuple(options["known"])):
            aim = channel_numbers(part, tuple(options["forecast"]), known)
            past = with_future(part, known, aim, horizon, whole=False)
        if round(VALID_SHARE * int(past.lengths.min())) < horizon:
            options["valid_share"] = 0.0  # no forecast could be validated
        self._train(part, **options)
        return self

    def predict(self, X: Any) -> Floats:
        """Return the steps after the end of every series.

        Args:
            X: Series, as in `fit`.

        Returns:
            `[n, horizon]` if X of `fit` was an array `[n, T]`, else `[n, channels, horizon]`;
            quantiles add a last axis.

        Raises:
            ValueError: If X does not match that of `fit`, or lacks the channels known in advance.
        """
        check_is_fitted(self)
        part, _ = read_sequences(self, X, reset=False)
        found = self._forecast(part)
        found = found if self._several("quantiles") else found[..., 0]
        return found[:, 0] if hasattr(self, "n_features_in_") else found

    def score(self, X: Any, y: Any = None) -> float:
        """Return the skill of forecasts of the last steps of X, relative to the last known value.

        With quantiles the median counts.

        Args:
            X: Series, as in `fit`, longer than the horizon.
            y: Ignored.

        Returns:
            1 minus the ratio of squared errors: 1 for no error, 0 for errors as large as those of
            repeating the last known value. If repeating it has no error, 0 unless the forecasts
            have none either, like R² in scikit-learn.

        Raises:
            ValueError: If a series is too short, or no value of the last steps is known.
        """
        check_is_fitted(self)
        part, _ = read_sequences(self, X, reset=False)
        shortest = int(part.lengths.min())
        expected, advice = f"more than horizon={self.horizon}", "leave out shorter series"
        require(shortest > self.horizon, "steps of X", shortest, expected, advice)
        channels = self.preprocessing_.forecast
        if self._several("known"):  # known at the steps to forecast
            x, ends = part.x.copy(), part.offsets[1:, None] + np.arange(-self.horizon, 0)
            x[ends[:, :, None], channels] = np.nan
            before = replace(part, x=x)
        else:
            rows = np.arange(len(part))
            before = part.slices(rows, np.zeros_like(rows), part.lengths - self.horizon)
        past = self.preprocessing_.with_future(before)
        steps = (part.offsets[:-1] + past.lengths)[:, None] + np.arange(self.horizon)
        truth = part.x[:, channels][steps].transpose(0, 2, 1)
        last = self.preprocessing_.last_known(past, channels)[:, :, None]
        levels = self._several("quantiles") or [0.5]
        found = self._forecast(before)[..., levels.index(0.5)]
        errors, simple = truth - found, truth - last
        known = np.isfinite(simple)
        expected, advice = "known somewhere", "give series that end with known values"
        require(bool(known.any()), "last steps of X", "no known value", expected, advice)
        missed, baseline = (float(np.square(one[known]).sum()) for one in (errors, simple))
        return 1 - missed / baseline if baseline > 0 else float(missed == 0)

    def _several(self, name: str) -> list[Any]:
        """Return an argument with several values as a list."""
        value = getattr(self, name)
        if value is None:
            return []
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        fits = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        require(fits, name, value, "a list", f"pass {name}=[...]", TypeError)
        return list(value)

    def _forecast(self, part: Sequences) -> Floats:
        """Return forecasts, [N, C, horizon, Q]; Q is 1 without quantiles."""
        found = self._model_outputs(part).astype(np.float64)
        count = len(self._several("quantiles")) or 1
        found = found.reshape(len(part), count, self.horizon, -1)
        return found.transpose(0, 3, 2, 1)
