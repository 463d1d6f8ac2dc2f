"""The ridge regression against scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from anharmonic.nn.resonators.ridge import fit_ridge

ALPHAS = np.logspace(-2, 3, 6)


@pytest.mark.covering(2)
@pytest.mark.parametrize("rows", [30, 90])  # fewer than features, and more
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_finds_what_scikit_learn_finds(rows, targets, weighted):
    rng = np.random.default_rng(0)
    x = rng.normal(2, 1, size=(rows, 60))
    y = x[:, :targets] + 3 + rng.normal(size=(rows, targets))
    weights = rng.uniform(0.2, 3, rows) if weighted else None
    known = RidgeCV(ALPHAS, scoring="neg_mean_squared_error", store_cv_results=True)
    known.fit(x, y, weights)
    found, left_out = fit_ridge(x.copy(), y, ALPHAS, weights)
    assert found.alpha_ == known.alpha_
    assert found.coef_.shape == known.coef_.shape
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.predict(x), known.predict(x), rtol=1e-8)
    np.testing.assert_allclose(found.best_score_, known.best_score_, rtol=1e-8)
    best = known.cv_results_[..., list(ALPHAS).index(known.alpha_)]
    np.testing.assert_allclose(left_out, best.reshape(rows, targets), rtol=1e-8)


@pytest.mark.parametrize("alphas", [[], [1.0, 0.0], [[1.0]]])
def test_penalties_out_of_range_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas"):
        fit_ridge(np.eye(3), np.ones((3, 1)), np.array(alphas))
