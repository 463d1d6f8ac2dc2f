"""Ridge regression for more features than sequences, with a leave-one-out penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from anharmonic._checks import require

if TYPE_CHECKING:
    from sklearn.linear_model import RidgeCV

Floats = np.ndarray[Any, np.dtype[np.float64]]


def fit_ridge(
    x: Floats,
    targets: Floats,
    alphas: Floats,
    weights: Floats | None = None,
    copies: Floats | None = None,
) -> tuple[RidgeCV, Floats]:
    """Fit a ridge regression and return leave-one-out predictions of each row.

    The result equals that of `RidgeCV`. `RidgeCV` computes coefficients [O, D] for every penalty,
    which dominates its time with few rows. This function computes them only for the best penalty.

    x [N, D] is overwritten; targets and predictions are [N, O]. ``alphas`` are penalties to choose
    from, > 0. ``weights`` [N] are factors on the error of each row, or of each of its copies.
    ``copies`` [N] are the numbers of equal rows that each row represents, > 0; leave-one-out omits
    one of them.

    Raises:
        ValueError: If a penalty is out of range.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(8, 50))
        >>> ridge, left_out = fit_ridge(x.copy(), x[:, :1], np.array([0.1, 1.0]))
        >>> from sklearn.linear_model import RidgeCV
        >>> known = RidgeCV([0.1, 1.0]).fit(x, x[:, 0])
        >>> ridge.alpha_ == known.alpha_, np.allclose(ridge.coef_, known.coef_), left_out.shape
        (True, True, (8, 1))
    """
    from sklearn.linear_model import RidgeCV

    fits = alphas.ndim == 1 and len(alphas) > 0 and bool((alphas > 0).all())
    advice = "pass None for the usual ones"
    require(fits, "alphas", alphas.tolist(), "one or more numbers > 0", advice)
    ridge = RidgeCV(alphas, scoring="neg_mean_squared_error", store_cv_results=True)
    many = len(x) > x.shape[1]
    if many and copies is None:
        ridge.fit(x, targets, weights)
        best = int(np.flatnonzero(alphas == ridge.alpha_)[0])
        left_out = ridge.cv_results_[..., best].reshape(targets.shape)
        del ridge.cv_results_  # N times O times alphas numbers, not worth keeping
        return ridge, np.asarray(left_out)
    if copies is not None:
        weights = copies if weights is None else weights * copies
    x_mean, y_mean = (np.average(v, axis=0, weights=weights) for v in (x, targets))
    x -= x_mean
    y = targets - y_mean
    root = np.ones(len(x)) if weights is None else np.sqrt(weights)
    if weights is not None:
        x *= root[:, None]
        y *= root[:, None]
    if many:  # the same result from a smaller matrix
        vectors, sizes, _ = np.linalg.svd(x, full_matrices=False)
        values = sizes**2
        rest = y - vectors @ (vectors.T @ y)
    else:
        values, vectors = np.linalg.eigh(x @ x.T)
        rest = np.zeros_like(y)
    turned, squares = vectors.T @ y, vectors**2
    constant = vectors.T @ root
    # The eigenvalue is 0 for directions without a feature.
    beyond, lone = 1 - squares.sum(1), root - vectors @ constant
    best_error, best_dual, left_out = np.inf, y, y
    for alpha in alphas:
        inverse = 1 / (values + alpha)
        dual = vectors @ (inverse[:, None] * turned)
        # Leaving a row out also changes the means: the second term.
        diagonal = squares @ inverse - vectors @ (inverse * constant) * root / (root @ root)
        if many:
            dual += rest / alpha
            diagonal += (beyond - lone * root / (root @ root)) / alpha
        if copies is not None:  # a whole row or one of its copies
            diagonal = (1 - (1 - alpha * diagonal) / np.maximum(copies, 1)) / alpha
        predicted = (y - dual / diagonal[:, None]) / root[:, None] + y_mean
        error = float(np.average((predicted - targets) ** 2, axis=0, weights=weights).mean())
        if error < best_error:
            best_error, best_dual, left_out, ridge.alpha_ = error, dual, predicted, float(alpha)
    coefficients = (x.T @ best_dual).T
    ridge.best_score_, ridge.n_features_in_ = -best_error, x.shape[1]
    # As in RidgeCV: flat for one target.
    ridge.coef_ = coefficients[0] if len(coefficients) == 1 else coefficients
    ridge.intercept_ = y_mean - coefficients @ x_mean
    return ridge, left_out
