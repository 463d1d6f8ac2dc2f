import numpy as np
import pytest
import torch

from anharmonic.estimators.shared import encode, threads, weights_of


def test_class_weights_have_mean_one_over_the_data():
    classes, codes = np.array(["a", "b", "c"]), np.array([0, 0, 0, 1, 2, 2])
    for given in ("balanced", {"a": 5.0}, {"a": 1000, "b": 1e-4, "c": 1e-4}):
        weights = np.array(weights_of(given, classes, codes))
        assert weights[codes].mean() == pytest.approx(1)
    assert weights[0] / weights[1] == pytest.approx(1e7)
    with pytest.raises(ValueError, match="not in class_weight"):
        weights_of({"unknown": 1.0}, classes, codes)


def test_classes_are_sorted_and_numbered():
    classes, codes = encode(["b", "a", "b"])
    assert classes.tolist() == ["a", "b"] and codes.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"classes of y must be two or more; got \['a'\]"):
        encode(["a", "a"])


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with threads(None):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before
