"""The checks that scikit-learn has for estimators; arrays [n, T] are sequences of one channel."""

import os
import warnings

import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from anharmonic.estimators import (
    ResonatorClassifier,
    ResonatorRegressor,
    ResonatorTransformer,
    SequenceClassifier,
    SequenceForecaster,
    SequenceRegressor,
)

ESTIMATORS = [
    SequenceClassifier("CoRNN", hidden_size=2, max_steps=2),
    SequenceRegressor("CoRNN", hidden_size=2, max_steps=2),
    SequenceForecaster("CoRNN", hidden_size=2, max_steps=2),
    ResonatorTransformer(10, num_biases=1),
    ResonatorClassifier(50, num_biases=1),
    ResonatorRegressor(50, num_biases=1),
]
# Checks that ask for a score, and as few steps as reach it.
CLASSES = {"hidden_size": 8, "max_steps": 60}
VALUES = {"hidden_size": 16, "max_steps": 200, "batch_size": 16, "lr": 0.03, "valid_share": 0.0}
LEARNS = {
    "check_classifiers_train": CLASSES,
    "check_classifiers_classes": CLASSES,
    "check_class_weight_classifiers": CLASSES,
    "check_regressors_train": {"model": "GRU", **VALUES},
}
# Other oscillators are drawn for repeated sequences, and other batches: see the tests of
# sample_weight for what is equal.
NOT_REPEATED = "check_sample_weight_equivalence_on_dense_data"
# It needs SCIPY_ARRAY_API in the environment before scipy is imported: a process of its own.
APART = "check_array_api_input"


def checks(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkipTestWarning)  # none is left out
        return [(check, name_of(check)) for _, check in estimator_checks_generator(estimator)]


def name_of(check):
    return getattr(check, "func", check).__name__


CASES = [
    pytest.param(hasattr(estimator, "max_steps"), estimator, name, check,
                 id=f"{type(estimator).__name__}-{name}")
    for estimator in ESTIMATORS
    for check, name in checks(estimator)
    if name not in (APART, NOT_REPEATED)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.covering("is_network name", "estimator")
@pytest.mark.parametrize("is_network, estimator, name, check", CASES)
def test_check_of_scikit_learn(is_network, estimator, name, check):
    more = LEARNS.get(name, {}) if is_network else {}
    check(clone(estimator).set_params(**more))


def test_no_check_is_left_out():
    for estimator in ESTIMATORS:
        names = [name for _, name in checks(estimator)]
        assert len(names) >= 40 and names.count(APART) == 1


@pytest.mark.slow
def test_checks_that_need_an_environment(run_python):
    program = f"""
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_checks import APART, ESTIMATORS, checks
for estimator in ESTIMATORS:
    for check, name in checks(estimator):
        if name == APART:
            check(estimator)
            print(type(estimator).__name__)
"""
    done = run_python(program, SCIPY_ARRAY_API="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [type(estimator).__name__ for estimator in ESTIMATORS]
