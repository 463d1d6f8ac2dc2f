"""Random resonators with a linear readout: a model fitted in one pass, without epochs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic._tensors import at_least_single, check_lengths
from anharmonic.nn.resonators.draw import DEFAULT_POOLS, Bank, num_features
from anharmonic.nn.resonators.features import ResonatorFeatures
from anharmonic.nn.resonators.ridge import fit_ridge
from anharmonic.nn.resonators.scaling import SCALINGS
from anharmonic.nn.resonators.stream import ResonatorStream
from anharmonic.nn.store import Stored
from anharmonic.ops.resonator import propagator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import StandardScaler

Floats = np.ndarray[Any, np.dtype[np.float64]]
# Largest factor on decisions; beyond it probabilities round to 0 and 1 in float64.
_SHARPEST = 50.0
# Number of sequences scaled together; small enough for the processor's cache.
_ROWS = 16
# Fewest sequences for weighting features by class; with fewer the weights are too noisy.
_LEAST_FOR_WEIGHTING = 50
# Score of a class without a training sequence; gives a probability of about 1e-30.
_SURELY_NOT = -69.0


def _penalty(alpha: Any) -> float:
    return _checks.number("an entry of alphas", alpha, low=0.0, low_open=True)


class Readout(NamedTuple):
    """A fitted linear model of features."""

    scaler: StandardScaler
    ridge: RidgeCV
    left_out: Floats
    """Leave-one-out predictions of the training sequences, `[N, O]`; see ``_fit_classes``."""


def _factors(name: str, values: Any, count: int) -> Floats | None:
    """Check factors on sequences, > 0 `[N]`; None stays."""
    if values is None:
        return None
    factors = np.asarray(values, np.float64)
    right = (factors > 0) & (factors < np.inf)
    if factors.shape != (count,) or not right.all():
        came = f"shape {list(factors.shape)}"
        if factors.shape == (count,):
            came = f"{factors[~right][0]:g}"
        expected = f"{name} must be {count} finite numbers > 0"
        advice = "leave out sequences that do not count"
        raise ValueError(_checks.message(expected, came, advice))
    return factors


class Resonators(Stored):
    """Linear model on the responses of random oscillators, for classification or regression.

    The oscillators are random; see `ResonatorFeatures`. The linear model is a ridge regression on
    their standardised features. Leave-one-out cross-validation chooses its penalty. `fit` makes
    both in one pass, without epochs or gradients. With 50 or more sequences of classes, each
    feature is multiplied by its η², the fraction of its variance that lies between the classes.

    Use `estimators.ResonatorClassifier` or `ResonatorRegressor` for the interface of scikit-learn,
    and `ResonatorBank` for a layer that is trained with gradients.

    Args:
        input_size: Channels, C >= 1.
        output_size: Number of classes or values, O >= 1.
        target: "class" (outputs are log-probabilities) or "value".
        num_oscillators: Number of oscillators, at least 1.
        num_biases: Number of biases of each oscillator, at least 1.
        scaling: "train" scales channels by the mean and deviation of the training set. "series"
            uses those of each sequence and cannot stream. "running" uses those of the steps so far.
        pools: Features of each response, from share, stretches, crossings, position, largest,
            smallest, competition, end, length, excess, rms and run; see `ResonatorFeatures`.
        alphas: Penalties to choose from, > 0. None: 20 from 1e-4 to 1e4.
        device: Device of the numbers; the model runs only while they are on the CPU.
        dtype: Has no effect, like `model.half()`; numbers keep the precision of the fit.

    Raises:
        ValueError: If an argument is outside its range.

    Shape:
        x `[B, T, C]`, lengths `[B]`; the result `[B, O]`, float32.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> speed = rng.choice([0.3, 1.0], size=(40, 1))
        >>> x = np.sin(speed * np.arange(50) + rng.uniform(0, 6, (40, 1)))[..., None]
        >>> y = (speed[:, 0] > 0.5).astype(int)
        >>> model = Resonators(1, 2, num_oscillators=50).fit(x[:20], y[:20], seed=0)
        >>> (model(torch.from_numpy(x[20:])).argmax(1).numpy() == y[20:]).mean()
        np.float64(1.0)
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        target: Literal["class", "value"] = "class",
        num_oscillators: int = 1000,
        num_biases: int = 2,
        scaling: Literal["train", "series", "running"] = "train",
        pools: Sequence[str] = DEFAULT_POOLS,
        alphas: Sequence[float] | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        del dtype
        super().__init__()
        self.input_size = _checks.positive_int("input_size", input_size)
        self.output_size = _checks.positive_int("output_size", output_size)
        self.target = _checks.choice("target", target, ("class", "value"))
        self.scaling = _checks.choice("scaling", scaling, SCALINGS)
        drawn = ResonatorFeatures(num_oscillators, num_biases, scaling, pools=pools)
        self.num_oscillators, self.num_biases = drawn.num_oscillators, drawn.num_biases
        self.pools = drawn.pools
        self.alphas = None if alphas is None else [_penalty(alpha) for alpha in alphas]
        K, B, C = self.num_oscillators, self.num_biases, self.input_size
        single, double = torch.float32, torch.float64
        D = sum(self._sizes())
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "oscillator_weight": ((2 * C, K), single),
            "frequency": ((K,), single),
            "quality": ((K,), single),
            "biases": ((2, B, K), single),
            "is_slow": ((K,), torch.bool),
            "channel_mean": ((C,), double),
            "channel_deviation": ((C,), double),
            "feature_mean": ((D,), double),
            "readout": ((output_size, D), double),
            "intercept": ((output_size,), double),
            "sharpness": ((), double),
        }
        if "competition" in self.pools:
            shapes["response_scale"] = ((2, K), single)
        if "length" in self.pools:
            shapes["lengths"] = ((2, K), single)
        for name, (shape, kind) in shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=kind, device=device))
        self.fitted: Readout | None = None

    if TYPE_CHECKING:
        oscillator_weight: Tensor
        frequency: Tensor
        quality: Tensor
        biases: Tensor
        is_slow: Tensor
        channel_mean: Tensor
        channel_deviation: Tensor
        feature_mean: Tensor
        readout: Tensor
        intercept: Tensor
        sharpness: Tensor
        response_scale: Tensor
        lengths: Tensor

    @property
    def num_fitted(self) -> int:
        """Number of fitted parameters of the linear model."""
        return (int(self._used().sum()) + 1) * self.output_size

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move the numbers to a device; their precision stays that of the fit."""

        def moved(value: Tensor) -> Tensor:
            made = fn(value)
            return made if made.dtype is value.dtype else value.to(made.device)

        super()._apply(moved, recurse)  # type: ignore[no-untyped-call]
        return self

    def new_features(self, seed: int = 0) -> ResonatorFeatures:
        """Return features with the settings of this model, whose oscillators are not yet drawn.

        Args:
            seed: Seed of all random draws.
        """
        return ResonatorFeatures(
            self.num_oscillators, self.num_biases, self.scaling, seed, self.pools
        )

    @property
    def features(self) -> ResonatorFeatures:
        """The random oscillators.

        Raises:
            ValueError: If the model is not fitted, or is not on the CPU.
        """
        where = str(self.quality.device)
        _checks.require(where == "cpu", "device", where, "the CPU", "call model.cpu()")
        fitted = bool(self.quality.any())
        _checks.require(fitted, "the model", "a new one", "fitted", "call fit or load it")
        made = self.new_features()
        made.num_channels = self.input_size
        made._mean = self.channel_mean.numpy()
        made._deviation = self.channel_deviation.numpy()
        made._bank = Bank(
            self.oscillator_weight,
            self.frequency,
            self.quality,
            self.biases,
            self.is_slow.nonzero()[:, 0],
            propagator(self.frequency, self.quality),
            self.response_scale if "competition" in self.pools else None,
            self.lengths[:, self._has_lengths()] if "length" in self.pools else torch.zeros(2, 0),
        )
        return made

    def fit(
        self,
        sequences: Sequence[NDArray[Any]] | NDArray[Any],
        targets: NDArray[Any],
        *,
        seed: int,
        weights: Floats | None = None,
        copies: Floats | None = None,
    ) -> Self:
        """Draw the oscillators and fit the linear model.

        Args:
            sequences: Arrays `[T, C]`, in a list or as one array `[N, T, C]`.
            targets: Classes from 0 `[N]`, or values `[N, O]`.
            seed: Seed of all random draws.
            weights: Factor on the error of each sequence `[N]`; None for 1.
            copies: How often each sequence counts in the linear model, > 0 `[N]`; 2 is the same as
                two equal sequences. It does not affect the oscillators. None for 1.

        Raises:
            ValueError: If an array is not finite or does not fit, or there is only one class.
            TypeError: If sequences are not numbers.
            ImportError: If scikit-learn is missing.
        """
        count = len(sequences)
        advice = "pass [N, T, C] or a list"
        _checks.require(count > 0, "sequences", count, "at least one series", advice)
        _standard_scaler()  # a missing package is an error before anything is drawn
        targets = self._targets(targets, count)
        weights = _factors("weights", weights, count)
        copies = _factors("copies", copies, count)
        drawn = self.new_features(seed).fit(sequences)
        bank = drawn._bank
        with torch.no_grad():
            self.oscillator_weight.copy_(bank.weight)
            self.frequency.copy_(bank.frequency)
            self.quality.copy_(bank.q)
            self.biases.copy_(bank.biases)
            self.is_slow.zero_()[bank.slow] = True
            if bank.scale is not None:
                self.response_scale.copy_(bank.scale)
            if "length" in self.pools:
                self.lengths.zero_()[:, : bank.lengths.shape[1]] = bank.lengths
            self.channel_mean.copy_(torch.from_numpy(drawn._mean))
            self.channel_deviation.copy_(torch.from_numpy(drawn._deviation))
        found = drawn.transform(sequences)
        if self.target == "class":
            self._fit_classes(found, targets, weights, copies)
        else:
            made = fit_readout(found, targets, self.alphas, weights, copies)
            self._keep(made, np.arange(self.output_size))
        return self

    def _targets(self, targets: Any, count: int) -> NDArray[Any]:
        """Check targets and return classes, int64 [N], or values, float64 [N, O]."""
        given, outputs = np.asarray(targets), self.output_size
        form = f"{given.dtype} of shape {list(given.shape)}"
        if self.target == "class":
            advice = "number the classes from 0"
            if given.shape != (count,) or given.dtype.kind not in "biu":
                raise ValueError(_checks.message(f"targets must be {count} integers", form, advice))
            if given.min() < 0 or given.max() >= outputs:
                expected = f"targets must be in [0, {outputs - 1}]"
                ends = f"{given.min()} to {given.max()}"
                raise ValueError(_checks.message(expected, ends, advice))
            known, advice = np.unique(given).tolist(), "add sequences of another class"
            _checks.require(len(known) > 1, "classes of training", known, "two or more", advice)
            return given.astype(np.int64)
        shapes = [(count, outputs), *[(count,)] * (outputs == 1)]
        if given.shape not in shapes or given.dtype.kind not in "biuf":
            expected = f"targets must be numbers of shape {[count, outputs]}"
            raise ValueError(_checks.message(expected, form, "pass a row for each sequence"))
        values = given.astype(np.float64).reshape(count, outputs)
        advice = "leave out sequences without a target"
        _checks.require(bool(np.isfinite(values).all()), "targets", math.nan, "finite", advice)
        return values

    def _fit_classes(
        self,
        found: NDArray[np.float32],
        y: NDArray[Any],
        weights: Floats | None,
        copies: Floats | None,
    ) -> None:
        present, codes = np.unique(y, return_inverse=True)
        against = np.where(codes[:, None] == np.arange(len(present)), 1.0, -1.0)
        if len(present) == 2:  # one class is the opposite of the other
            against = against[:, 1:]
        made = fit_readout(found, against, self.alphas, weights, copies)
        if (len(y) if copies is None else copies.sum()) >= _LEAST_FOR_WEIGHTING:
            # η² depends on the class of a sequence left out, so predictions with it are too good:
            # keep those without.
            weighted = fit_readout(found, against, self.alphas, weights, copies, codes)
            made = weighted._replace(left_out=made.left_out)
        self._keep(made, present)
        self.sharpness.fill_(sharpness(_by_class(made.left_out), codes, weights, copies))
        absent = np.setdiff1d(np.arange(self.output_size), present)
        self.intercept[torch.from_numpy(absent)] = _SURELY_NOT / float(self.sharpness)

    def _keep(self, made: Readout, outputs: NDArray[Any]) -> None:
        """Store a readout for some outputs; the others have none."""
        self.fitted = made
        weight = np.atleast_2d(made.ridge.coef_) / made.scaler.scale_
        intercept = np.atleast_1d(made.ridge.intercept_)
        if len(weight) < len(outputs):
            weight, intercept = np.vstack([-weight, weight]), np.hstack([-intercept, intercept])
        rows, used = torch.from_numpy(outputs), self._used()
        with torch.no_grad():
            self.feature_mean.zero_()[used] = torch.from_numpy(made.scaler.mean_)
            full = torch.zeros(len(rows), len(used), dtype=torch.float64)
            full[:, used] = torch.from_numpy(weight)
            self.readout.zero_()[rows] = full
            self.intercept.zero_()[rows] = torch.from_numpy(intercept)

    def _sizes(self) -> list[int]:
        """Return the number of features of each pool, at most."""
        K, B = self.num_oscillators, self.num_biases
        return [num_features(name, K, B, K, K) for name in self.pools]

    def _has_lengths(self) -> Tensor:
        """Return the features of the length: all, or none if all series have the same length."""
        return self.lengths[1] > 0

    def _used(self) -> Tensor:
        """Return which features are used; only slow oscillators give their last value."""
        some = {"end": lambda: self.is_slow.repeat(2), "length": self._has_lengths}
        parts = [
            some[name]() if name in some else torch.ones(size, dtype=torch.bool)
            for name, size in zip(self.pools, self._sizes(), strict=True)
        ]
        return torch.cat(parts)

    def linear(self) -> tuple[Floats, Floats, Floats]:
        """Return the linear model: means of the features [D], weights [O, D], intercepts [O]."""
        used = self._used()
        return (
            self.feature_mean[used].numpy(),
            self.readout[:, used].numpy(),
            self.intercept.numpy(),
        )

    def decisions(self, parts: Iterable[NDArray[np.float32]]) -> Floats:
        """Return the linear model's outputs, `[N, O]`.

        Each row is computed separately. In one matrix product, rounding would depend on the number
        of rows.

        Args:
            parts: Features `[n, D]` of successive groups of sequences.
        """
        mean, weight, intercept = self.linear()
        rows: list[Any] = []
        for found in parts:
            for first in range(0, len(found), _ROWS):
                rows += [weight @ row for row in found[first : first + _ROWS] - mean]
        return np.asarray(np.stack(rows) + intercept)

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, elapsed: Tensor | None = None
    ) -> Tensor:
        """Return log-probabilities or values.

        Args:
            x: Sequences, zero-padded, on the CPU.
            lengths: Their lengths; None without padding.
            elapsed: Must be None. Pass the time between samples as a channel instead.

        Raises:
            ValueError: If an argument does not fit, or the model is not fitted.
            TypeError: If the lengths are not int64.
        """
        advice = "give them as a channel"
        _checks.require(elapsed is None, "elapsed", "times", "None for resonators", advice)
        if not isinstance(x, Tensor) or x.dim() != 3 or not x.is_cpu:
            expected = f"x must be a tensor [B, T, {self.input_size}] on the CPU"
            advice = "use torch.from_numpy(x), x[None] or x.cpu()"
            raise ValueError(_checks.message(expected, _checks.described(x), advice))
        ends = [x.shape[1]] * len(x)
        if lengths is not None:
            check_lengths(lengths, x)
            ends = lengths.tolist()
        x = at_least_single(x.detach())
        sequences = [one[:end].numpy() for one, end in zip(x, ends, strict=True)]
        return self._outputs(self.features.transform_in_parts(sequences))

    def stream(self, num_streams: int = 1) -> ResonatorStream:
        """Start streams of sequences; `outputs` reads their features after any sample.

        Args:
            num_streams: Number of parallel sequences.

        Raises:
            ValueError: If the scaling is "series", which needs whole sequences.

        Example:
            >>> x = np.random.default_rng(0).normal(size=(20, 30, 1)).astype(np.float32)
            >>> model = Resonators(1, 2, num_oscillators=20).fit(x, np.arange(20) % 2, seed=0)
            >>> stream = model.stream(num_streams=20)
            >>> for t in range(30):
            ...     stream.update(x[:, t])
            >>> bool((model.outputs(stream.features()) == model(torch.from_numpy(x))).all())
            True
        """
        return self.features.stream(num_streams)

    def outputs(self, features: NDArray[np.float32]) -> Tensor:
        """Return the log-probabilities or values of features, as `forward` does of sequences.

        Args:
            features: Features of sequences, or those of a stream, `[N, D]`.
        """
        return self._outputs([features])

    def _outputs(self, parts: Iterable[NDArray[np.float32]]) -> Tensor:
        found = torch.from_numpy(self.decisions(parts))
        if self.target == "class":
            found = nn.functional.log_softmax(self.sharpness * found, dim=1)
        return found.float()


def _standard_scaler() -> type[StandardScaler]:
    try:
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise _checks.missing_extra("scikit-learn", "sklearn", "fitting resonators") from error
    return StandardScaler  # type: ignore[no-any-return]


def fit_readout(
    found: NDArray[np.float32],
    targets: Floats,
    alphas: Sequence[float] | NDArray[Any] | None = None,
    weights: Floats | None = None,
    copies: Floats | None = None,
    codes: NDArray[np.int64] | None = None,
) -> Readout:
    """Fit a ridge regression to standardised features [N, D] for targets [N, O].

    Arguments as in ``fit_ridge``; ``alphas`` None stands for 20 penalties from 1e-4 to 1e4. With
    classes ``codes`` [N], the scaler also multiplies each feature by its ``eta_squared``.

    Raises:
        ValueError: If a penalty is out of range.
        ImportError: If scikit-learn is missing.
    """
    wide = found.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # The weighted variance of a constant feature may round to less than 0: its scale is then 1.
        scaler = _standard_scaler()().fit(wide, sample_weight=copies)
    wide -= scaler.mean_  # as the scaler does, but without copies
    wide /= scaler.scale_
    if codes is not None:
        eta = eta_squared(wide, codes, copies)
        scaler.scale_ /= eta
        wide *= eta
    penalties = np.logspace(-4, 4, 20) if alphas is None else np.asarray(alphas)
    ridge, left_out = fit_ridge(wide, targets, penalties, weights, copies)
    return Readout(scaler, ridge, left_out)


def eta_squared(x: Floats, codes: NDArray[np.int64], copies: Floats | None = None) -> Floats:
    """Return η² of each feature, the fraction of its variance between classes, times a constant.

    x [N, D] is standardised. The constant makes the mean square 1; no η² is less than 1e-9.

    Example:
        >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> eta_squared(x, np.array([0, 0, 1, 1])).round(3)
        array([1.414, 0.   ])
    """
    members = (codes == np.arange(codes.max() + 1)[:, None]).astype(np.float64)
    if copies is not None:
        members *= copies
    between = ((members @ x) ** 2 / members.sum(1)[:, None]).sum(0) / members.sum()
    eta = np.maximum(between, 1e-9)
    return np.asarray(eta / np.sqrt((eta**2).mean()))


def sharpness(
    decisions: Floats,
    codes: NDArray[np.int64],
    weights: Floats | None = None,
    copies: Floats | None = None,
) -> float:
    """Return the factor on decisions [N, C] whose softmax fits the classes best.

    The decisions are for sequences not used for training, whose classes are ``codes``. Targets are
    slightly less than certain, as in Platt scaling. Otherwise perfectly separated classes would get
    a probability of 1.

    Example:
        >>> decisions = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
        >>> sharp = sharpness(decisions, np.array([0, 0, 1]))
        >>> round(1 / (1 + float(np.exp(-2 * sharp))), 3)  # 1 - 1 / (3 + 2)
        0.8
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    size, classes = decisions.shape
    count = size
    if copies is not None:
        count, weights = copies.sum(), copies if weights is None else weights * copies
    sure = 1 - 1 / (count + 2)
    targets = np.full((size, classes), (1 - sure) / (classes - 1))
    targets[np.arange(size), codes] = sure

    def loss(logarithm: float) -> float:
        shares = log_softmax(np.exp(logarithm) * decisions, axis=1)
        return -float(np.average((targets * shares).sum(axis=1), weights=weights))

    ends = (-np.log(_SHARPEST), np.log(_SHARPEST))
    return float(np.exp(minimize_scalar(loss, bounds=ends, method="bounded").x))


def _by_class(decisions: Floats) -> Floats:
    """Return decisions for each class; with two classes the single one belongs to the second."""
    return np.hstack([-decisions, decisions]) if decisions.shape[1] == 1 else decisions
