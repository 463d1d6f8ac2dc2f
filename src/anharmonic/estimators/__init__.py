"""Estimators for scikit-learn: pipelines, searches and cross-validation over sequences.

X is an array `[n, T]` or `[n, C, T]`, a list of n arrays `[T]` or `[C, T]` of unequal lengths, or a
frame. The extra "sklearn" brings scikit-learn.
"""

from anharmonic import _checks

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise _checks.missing_extra("scikit-learn", "sklearn", "anharmonic.estimators") from error

from anharmonic.estimators.forecaster import SequenceForecaster
from anharmonic.estimators.resonators import (
    ResonatorClassifier,
    ResonatorRegressor,
    ResonatorTransformer,
)
from anharmonic.estimators.sequence import SequenceClassifier, SequenceRegressor

__all__ = [
    "ResonatorClassifier",
    "ResonatorRegressor",
    "ResonatorTransformer",
    "SequenceClassifier",
    "SequenceForecaster",
    "SequenceRegressor",
]
