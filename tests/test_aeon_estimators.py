"""aeon's own checks; they run where aeon is installed, which is an environment of its own."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("aeon", reason="pip install aeon, in an environment of its own")

from aeon.testing.estimator_checking import parametrize_with_checks

from anharmonic import estimators

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from aeon_estimators import ResonatorClassifier, ResonatorRegressor

pytestmark = pytest.mark.filterwarnings("ignore")  # of aeon and what it imports


@parametrize_with_checks([ResonatorClassifier, ResonatorRegressor])
def test_check_of_aeon(check):
    check()


def test_they_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(2, n)) for n in rng.integers(20, 40, 30)], np.arange(30) % 3
    options = {"num_oscillators": 20, "random_state": 0}
    ours = estimators.ResonatorClassifier(**options).fit(X, y)
    theirs = ResonatorClassifier(**options).fit(X, y)
    assert (theirs.predict_proba(X) == ours.predict_proba(X)).all()
    assert (theirs.predict(X) == ours.predict(X)).all()
    values = rng.normal(size=30)
    ours = estimators.ResonatorRegressor(**options).fit(X, values)
    assert (ResonatorRegressor(**options).fit(X, values).predict(X) == ours.predict(X)).all()
