r"""Integrate many trajectories at once by the Runge-Kutta pair 5(4) of Dormand and Prince.

Each trajectory has its own adaptive step, chosen by the rules of SciPy's `solve_ivp(...,
method="RK45")`. The same fourth-order interpolation gives the values at the requested times. Up to
rounding, the results equal those of SciPy, including its errors at loose tolerances. A thousand
trajectories take about as long as one.

References:
    J. R. Dormand, P. J. Prince: A family of embedded Runge-Kutta formulae, 1980.
    L. W. Shampine: Some practical Runge-Kutta formulas, 1986 (interpolation).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require

Array = NDArray[np.float64]

STAGES: tuple[tuple[float, ...], ...] = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR: Array = np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40])
INTERPOLATION: Array = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)


def integrate(
    field: Callable[[Array], Array],
    start: Array,
    times: Array,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-6,
) -> Array:
    """Solve `u' = field(u)` from `[N, D]` at `times[0]`: float64 `[N, K, D]` at all `[K]` times.

    The field maps `[M, D]` to `[M, D]`, row by row. The tolerances of a step are SciPy's by
    default. A step that becomes too small for float64 is refused: the solution grows without bound.
    """
    count, size = start.shape
    end = float(times[-1])
    result = np.empty((count, len(times), size))
    result[:, 0] = start
    t = np.full(count, float(times[0]))
    y = start.astype(np.float64)
    f = field(y)
    h = _first_step(field, y, f, end - t, rtol, atol)
    was_rejected = np.zeros(count, dtype=bool)
    live = np.arange(count)  # trajectories not yet at the end
    while live.size:
        t0, y0 = t[live], y[live]
        least = 10 * np.abs(np.nextafter(t0, np.inf) - t0)
        fresh = ~was_rejected[live]
        h[live] = np.where(fresh, np.maximum(h[live], least), h[live])
        # The comparison is written so that a NaN step is caught too.
        came = f"a step below {least.min():.1e} at time {t0.min():.4g}"
        advice = "check the constants of the equation"
        require(bool((h[live] >= least).all()), "the solution", came, "finite", advice)
        t1 = np.minimum(t0 + h[live], end)
        step = t1 - t0
        slopes = np.empty((7, live.size, size))
        slopes[0] = f[live]
        for i, weights in enumerate(STAGES, start=1):
            y1 = y0 + step[:, None] * np.tensordot(weights, slopes[:i], 1)
            slopes[i] = field(y1)
        scale = atol + np.maximum(np.abs(y0), np.abs(y1)) * rtol
        error = _norm(np.tensordot(ERROR, slopes, 1) * step[:, None] / scale)
        good = error < 1
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.clip(0.9 * error**-0.2, np.where(good, 0.0, 0.2), np.where(good, 10.0, 1.0))
        h[live] = step * np.where(good & ~fresh, np.minimum(1.0, factor), factor)
        was_rejected[live] = ~good
        _read_off(result, times, live[good], t0[good], t1[good], y0[good], slopes[:, good])
        done = live[good]
        t[done], y[done], f[done] = t1[good], y1[good], slopes[6, good]
        live = live[t[live] < end]
    return result


def _read_off(
    result: Array,
    times: Array,
    rows: NDArray[np.int64],
    t0: Array,
    t1: Array,
    y0: Array,
    slopes: Array,
) -> None:
    """Write the solution of the trajectories `rows` at all requested times in (t0, t1]."""
    low = np.searchsorted(times, t0, side="right")
    counts = np.searchsorted(times, t1, side="right") - low
    which = np.repeat(np.arange(len(rows)), counts)
    if not which.size:
        return
    column = np.arange(len(which)) - np.repeat(counts.cumsum() - counts, counts) + low[which]
    step = (t1 - t0)[which]
    x = (times[column] - t0[which]) / step
    powers = x[:, None] ** np.arange(1, 5)
    coefficients = np.einsum("smd,sp->mpd", slopes, INTERPOLATION)
    moved = np.einsum("kp,kpd->kd", powers, coefficients[which])
    result[rows[which], column] = y0[which] + step[:, None] * moved


def _first_step(
    field: Callable[[Array], Array], y: Array, f: Array, span: Array, rtol: float, atol: float
) -> Array:
    """Return the initial step of Hairer, Nørsett and Wanner, section II.4, as in SciPy."""
    scale = atol + np.abs(y) * rtol
    d0, d1 = _norm(y / scale), _norm(f / scale)
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1)), span)
    d2 = _norm((field(y + h0[:, None] * f) - f) / scale) / h0
    steepest = np.maximum(d1, d2)
    flat = steepest <= 1e-15
    h1 = np.where(flat, np.maximum(1e-6, h0 * 1e-3), (0.01 / np.where(flat, 1.0, steepest)) ** 0.2)
    first: Array = np.minimum(np.minimum(100 * h0, h1), span)
    return first


def _norm(x: Array) -> Array:
    norm: Array = np.sqrt(np.mean(np.square(x), axis=1))
    return norm
