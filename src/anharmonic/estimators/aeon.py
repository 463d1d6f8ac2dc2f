"""Resonators as estimators of aeon: for its pipelines, benchmarks and checks.

aeon is no dependency of the extras, as it wants older versions of packages: install it where you
want it, ``pip install aeon``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from anharmonic import _checks
from anharmonic.estimators import resonators

try:
    from aeon.classification.base import BaseClassifier
    from aeon.regression.base import BaseRegressor
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "aeon":
        raise
    raise _checks.missing_extra("aeon", "aeon", "anharmonic.estimators.aeon") from error

_TAGS = {
    "X_inner_type": ["np-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:multithreading": True,
    "algorithm_type": "convolution",
}
_SMALL = {"num_oscillators": 20, "num_biases": 1}


class ResonatorClassifier(BaseClassifier):
    """`anharmonic.estimators.ResonatorClassifier` as a classifier of aeon.

    Args:
        num_oscillators: How many oscillators, at least 1.
        num_biases: As of that class, as are all that follow.
        scaling: "train", "series" or "running".
        pools: What is pooled.
        alphas: Penalties to choose from.
        class_weight: "balanced", or a factor on each class.
        random_state: Seed, generator, or None.
        n_jobs: Threads of PyTorch; -1 for all cores.

    Attributes:
        resonators_: The fitted `anharmonic.estimators.ResonatorClassifier`, which also streams.
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    def __init__(
        self,
        num_oscillators: int = 1000,
        *,
        num_biases: int = 2,
        scaling: str = "train",
        pools: Sequence[str] | None = None,
        alphas: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.num_oscillators = num_oscillators
        self.num_biases = num_biases
        self.scaling = scaling
        self.pools = pools
        self.alphas = alphas
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: NDArray[Any]) -> Self:
        self.resonators_ = resonators.ResonatorClassifier(**self.get_params()).fit(_panel(X), y)
        return self

    def _predict(self, X: Any) -> NDArray[Any]:
        return self.resonators_.predict(_panel(X))

    def _predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.resonators_.predict_proba(_panel(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return dict(_SMALL)


class ResonatorRegressor(BaseRegressor):
    """`anharmonic.estimators.ResonatorRegressor` as a regressor of aeon.

    The parameters are those of `ResonatorClassifier` here, without `class_weight`.

    Attributes:
        resonators_: The fitted `anharmonic.estimators.ResonatorRegressor`.
    """

    _tags: ClassVar[dict[str, Any]] = _TAGS

    def __init__(
        self,
        num_oscillators: int = 1000,
        *,
        num_biases: int = 2,
        scaling: str = "train",
        pools: Sequence[str] | None = None,
        alphas: Any = None,
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.num_oscillators = num_oscillators
        self.num_biases = num_biases
        self.scaling = scaling
        self.pools = pools
        self.alphas = alphas
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X: Any, y: NDArray[Any]) -> Self:
        self.resonators_ = resonators.ResonatorRegressor(**self.get_params()).fit(_panel(X), y)
        return self

    def _predict(self, X: Any) -> NDArray[np.float64]:
        return self.resonators_.predict(_panel(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return dict(_SMALL)


def _panel(X: Any) -> list[NDArray[Any]]:
    """Arrays [C, T], of equal lengths or not."""
    return [np.asarray(one) for one in X]
