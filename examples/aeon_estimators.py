"""Resonators as estimators of aeon, for its pipelines, benchmarks and checks.

aeon wants older versions of packages than constraints.txt has, so it has an environment of its own:

python3 -m venv aeonv
aeonv/bin/pip install '.[sklearn]' 'aeon>=1.5' pytest
aeonv/bin/python examples/aeon_estimators.py
aeonv/bin/python -m pytest --noconftest tests/test_aeon_estimators.py  # aeon's own checks
"""

import numpy as np
from aeon.classification.base import BaseClassifier
from aeon.regression.base import BaseRegressor

from anharmonic import estimators


class _Resonators:
    """What classifier and regressor share. Parameters are those of `anharmonic.estimators`."""

    _tags = {  # noqa: RUF012 - the form that aeon reads
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:multithreading": True,
        "algorithm_type": "convolution",
    }

    def __init__(
        self,
        num_oscillators=1000,
        *,
        num_biases=2,
        scaling="train",
        pools=None,
        alphas=None,
        random_state=None,
        n_jobs=1,
    ):
        self.num_oscillators = num_oscillators
        self.num_biases = num_biases
        self.scaling = scaling
        self.pools = pools
        self.alphas = alphas
        self.random_state = random_state
        self.n_jobs = n_jobs
        super().__init__()

    def _fit(self, X, y):
        self.resonators_ = self._kind(**self.get_params()).fit(_panel(X), y)
        return self

    def _predict(self, X):
        return self.resonators_.predict(_panel(X))

    @classmethod
    def _get_test_params(cls, parameter_set="default"):
        return {"num_oscillators": 20, "num_biases": 1}


class ResonatorClassifier(_Resonators, BaseClassifier):
    """`anharmonic.estimators.ResonatorClassifier`; the fitted one is `resonators_`, and streams."""

    _kind = estimators.ResonatorClassifier

    def _predict_proba(self, X):
        return self.resonators_.predict_proba(_panel(X))


class ResonatorRegressor(_Resonators, BaseRegressor):
    """`anharmonic.estimators.ResonatorRegressor`; the fitted one is `resonators_`."""

    _kind = estimators.ResonatorRegressor


def _panel(X):
    """Arrays [C, T], of equal lengths or not."""
    return [np.asarray(one) for one in X]


def main():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, n)) for n in rng.integers(20, 40, 60)]  # unequal lengths
    y = np.array([one[0].mean() > 0 for one in X])
    model = ResonatorClassifier(100, random_state=0).fit(X[:40], y[:40])
    print(f"accuracy {model.score(X[40:], y[40:]):.2f}")


if __name__ == "__main__":
    main()
