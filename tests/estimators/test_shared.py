import numpy as np
import pytest
import torch

from anharmonic.estimators.shared import encode, indicators, threads, weights_of


def test_class_weights_have_mean_one_over_the_data():
    classes, codes = np.array(["a", "b", "c"]), np.array([0, 0, 0, 1, 2, 2])
    for given in ("balanced", {"a": 5.0}, {"a": 1000, "b": 1e-4, "c": 1e-4}):
        weights = np.array(weights_of(given, classes, codes))
        assert weights[codes].mean() == pytest.approx(1)
    assert weights[0] / weights[1] == pytest.approx(1e7)
    for wrong in ({"a": 0.0}, {"a": -1.0}, {"a": np.nan}):
        with pytest.raises(ValueError, match="class_weight must be numbers > 0"):
            weights_of(wrong, classes, codes)


@pytest.mark.parametrize("given", ["balanced", {"1": 4.0, "3": 0.5, "absent": 1.0, "2": 1.0}])
def test_class_weights_count_copies(given):
    classes, codes = np.array(["1", "2", "3"]), np.array([0, 0, 0, 1, 2, 2])
    copies = np.array([3, 1, 1, 2, 5, 1])
    found = weights_of(given, classes, codes, copies.astype(float))
    assert found == pytest.approx(weights_of(given, classes, np.repeat(codes, copies)))


@pytest.mark.parametrize("y", [["a", None, "b"], ["a", float("nan")]])
def test_a_sequence_without_a_class_is_refused(y):
    with pytest.raises(ValueError, match=r"classes of y must be of one type; got .*; leave out"):
        encode(np.array(y, object))
    with pytest.raises(ValueError, match=r"classes of y must be of one type; got .*; leave out"):
        indicators(np.array(y, object))


def test_without_scikit_learn_the_import_says_so(run_python):
    program = """
import sys
sys.modules["sklearn"] = None
try:
    import anharmonic.estimators
except ImportError as error:
    print(error)
"""
    done = run_python(program)
    assert "needs the package scikit-learn" in done.stdout
    assert 'pip install "anharmonic[sklearn]"' in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_scikit_learn_is_enough_for_resonators(run_python):
    program = """
import sys
for name in ("jinja2", "matplotlib", "pooch", "rich", "tqdm", "tyro"):
    sys.modules[name] = None
import numpy as np
from anharmonic.estimators import ResonatorClassifier
X = np.random.default_rng(0).normal(size=(20, 2, 30))
print(ResonatorClassifier(20, random_state=0).fit(X, np.arange(20) % 2).predict(X).shape)
"""
    done = run_python(program)
    assert done.stdout == "(20,)\n", done.stderr


@pytest.mark.parametrize("number", [None, torch.get_num_threads() + 1])
def test_threads_are_put_back(number):
    before = torch.get_num_threads()
    with threads(number):
        assert torch.get_num_threads() == (number or before)
    assert torch.get_num_threads() == before
