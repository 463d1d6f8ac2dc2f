"""Reading of the estimators' argument X as sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from anharmonic._checks import message, require
from anharmonic.data import Columns, sequences_from
from anharmonic.data.arrays import is_dated, is_frame, without_mask
from anharmonic.data.columns import by_name
from anharmonic.data.sequences import Sequences
from anharmonic.estimators.shared import require_order


def read_sequences(
    estimator: Any, X: Any, y: Any = None, *, reset: bool, wanted: bool = False, least: int = 1
) -> tuple[Sequences, Any]:
    """Read a user's X and, if `wanted`, targets; return the sequences without them, and them.

    With `reset` X is training data: the estimator gets `n_channels_`, and for arrays `[n, T]`
    scikit-learn's attributes. Otherwise X must match the training data. `y` may be the name of a
    frame's column, or None to find it. The estimator's `missing` and `columns` apply if it has
    them. `least` is the smallest number of sequences. Sequences that were read pass unchanged.
    """
    if isinstance(X, Sequences):
        return X, y
    missing = getattr(estimator, "missing", "error")
    flat = False
    named = isinstance(y, str)
    # A frame is read as in fit, also where its form alone would not show the target's column.
    as_table = named or (not reset and hasattr(estimator, "columns_"))
    as_table = as_table or (hasattr(estimator, "horizon") and is_dated(X))
    table = _is_table(X, getattr(estimator, "columns", None), as_table)
    if table:
        fits, advice = reset or hasattr(estimator, "columns_"), "give it in the form of fit"
        require(fits, "X", type(X).__name__, "no table, as in fit", advice)
        targets = wanted and (y is None or named)
        part = _from_frame(estimator, X, reset, targets, y if named else None)
        y = part.y if targets else y
    elif named:
        advice = "pass one target per sequence"
        require(False, "X", type(X).__name__, f"a frame with the column y={y!r}", advice)
    elif _is_panel(X):
        part = sequences_from(list(X), channels_first=True)
    else:
        flat = True
        finite = True if missing == "error" else "allow-nan"
        # Keep the precision, so that a loss in float32 gives the warning of `in_float32`.
        real = [np.float64, np.float32, np.float16]
        kept: dict[str, Any] = {"dtype": real, "ensure_all_finite": finite}
        X = without_mask(X) if isinstance(X, np.ma.MaskedArray) else X
        try:
            X = validate_data(estimator, X, reset=reset, ensure_min_samples=least, **kept)
        except ValueError as error:
            if "NaN" in str(error).partition("\n")[0] and hasattr(estimator, "missing"):
                text = str(error).partition("\n")[0].rstrip(".")
                text += '. Fill them, or set missing="forward" (the last known value) or "mean".'
                raise ValueError(text) from error
            raise
        part = sequences_from(X)
    channels = part.x.shape[1]
    if reset:
        if not table:
            vars(estimator).pop("columns_", None)
        estimator.n_channels_ = channels
        if not flat:
            for name in ("n_features_in_", "feature_names_in_"):
                vars(estimator).pop(name, None)
    advice = "give the same channels in the same order"
    expected = f"{estimator.n_channels_}, as in fit"
    require(channels == estimator.n_channels_, "channels of X", channels, expected, advice)
    advice = "give more sequences"
    require(len(part) >= least, "sequences of X", len(part), f"at least {least}", advice)
    if reset and wanted and y is None:
        # scikit-learn's checks look for this wording.
        name = type(estimator).__name__
        text = f"{name} requires y to be passed, but the target y is None; pass fit(X, y)."
        raise ValueError(text)
    if y is not None:
        y = without_mask(y) if isinstance(y, np.ma.MaskedArray) else y
        if part.per_step if table and targets else _is_by_step(y, part.lengths):
            advice = "use anharmonic train, which learns a target per step, or cut the sequences "
            advice += "where the target changes"
            expected = "y must have one target per sequence"
            raise ValueError(message(expected, "a target for every step", advice))
        check_consistent_length(part.lengths, y)
        require_order("y", y, part)
    return replace(part.with_targets(None), where="X"), y


def _is_panel(X: Any) -> bool:
    """Whether X has channels, or sequences whose lengths may differ."""
    if not isinstance(X, list | tuple):
        ndim = getattr(X, "ndim", 2)
        return ndim > 2 or (ndim == 1 and X.dtype == object)
    if any(np.ndim(values) for values in X if hasattr(values, "shape")):
        return True  # also if all lengths are equal, as in a fold of cross-validation
    sizes = {_size(values) for values in X}
    return len(sizes) > 1 or any(len(size) > 1 for size in sizes)


def _size(values: Any) -> tuple[int, ...]:
    """Return the shape of a list of numbers, or of lists of numbers."""
    if not isinstance(values, list | tuple):
        return ()
    return (len(values), *(_size(values[0]) if values else ()))


def _is_by_step(y: Any, lengths: NDArray[np.int64]) -> bool:
    """Whether targets are arrays as long as their sequences, and not numbers `[n, O]`."""
    if not isinstance(y, list | tuple | np.ndarray) or len(y) != len(lengths) or lengths.max() < 2:
        return False
    if not np.ndim(y[0]):
        return False
    sizes = [np.shape(one) for one in y]
    if any(size[:1] != (length,) for size, length in zip(sizes, lengths, strict=True)):
        return False
    words = np.asarray(y[0]).dtype.kind in "USO"
    return words or len(set(sizes)) > 1 or len(sizes[0]) > 1


class FrameScorer:
    """Scores with the target column of a frame, as `fit` reads it."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R² of a regressor.

        Args:
            X: Sequences, as in `fit`.
            y: Targets, as in `fit`: one per sequence, or the name of a frame's column. None to use
                the column of `fit`.
            sample_weight: Factor on each sequence, `[n]`, >= 0. None for 1.

        Raises:
            ValueError: If X and y cannot be read or do not fit.
        """
        if y is None or isinstance(y, str):
            X, y = read_sequences(self, X, y, reset=False, wanted=True)
            advice = "pass score(X, y)"
            require(y is not None, "y", y, "passed, or a column of the frame X", advice)
        elif is_frame(X) and hasattr(y, "iloc"):
            X, y = read_sequences(self, X, y, reset=False)  # checks the order
        found: float = super().score(X, y, sample_weight)  # type: ignore[misc]  # of a mixin
        return found


def _is_table(X: Any, columns: Columns | None, as_table: bool) -> bool:
    """Whether X is a frame whose columns have roles, and not only numbers of one channel."""
    if not is_frame(X) or getattr(X, "ndim", 2) != 2:
        return False
    if as_table or columns is not None or hasattr(X, "column_names"):  # Arrow, Hugging Face
        return True
    names = [str(name) for name in X.columns]
    if {"id", "time"} & set(by_name(names, Columns(), "X", targets=False)):
        return True
    return len(X) > 0 and any(_has_lists(X[name]) or _has_words(X[name]) for name in X.columns)


def _first(column: Any) -> Any:
    return column.iloc[0] if hasattr(column, "iloc") else column[0]


def _has_words(column: Any) -> bool:
    """Whether cells are dates, or text that is not a number."""
    if str(getattr(column, "dtype", "")).lower().startswith(("date", "category", "enum")):
        return True
    first = _first(column)
    if not isinstance(first, str):
        return False
    try:
        float(first)
    except ValueError:
        return True
    return False


def _has_lists(column: Any) -> bool:
    kind = str(getattr(column, "dtype", "object"))
    return kind.startswith(("object", "List", "Array", "list")) and np.ndim(_first(column)) > 0


def _from_frame(
    estimator: Any, X: Any, reset: bool, targets: bool, target: str | None
) -> Sequences:
    if reset:
        columns = getattr(estimator, "columns", None) or Columns()
        if hasattr(estimator, "horizon"):
            known = tuple(str(name) for name in estimator._several("known"))
            fits, advice = columns.known in ((), known), "pass known=[...] to the forecaster"
            require(fits, "known of columns", columns.known, "left out", advice)
            columns = replace(columns, windows=True, forecast=True, known=known)
    else:
        columns = estimator.columns_
    if target is not None:
        columns = replace(columns, target=target)
    if hasattr(X, "map") and hasattr(X, "iloc") and len(X):
        # Cells that are pandas series, as in aeon and sktime.
        nested = [name for name in X.columns if hasattr(_first(X[name]), "to_numpy")]
        X = X.assign(**{name: X[name].map(np.asarray) for name in nested}) if nested else X
    try:
        part = sequences_from(X, columns=columns, targets=targets)
    except ValueError as error:
        if "-column" in str(error):
            error.add_note(
                "Flags such as --id-column are those of the command line. In Python, pass "
                "columns=Columns(id=..., time=..., target=..., group=...) to the estimator."
            )
        raise
    if reset:
        estimator.columns_ = part.columns
    return part
