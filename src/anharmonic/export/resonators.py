"""Resonators as arrays and numbers, for programs without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import listed, message, require
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export.plan import Array
from anharmonic.nn.resonators.draw import POOLS, Bank, num_features
from anharmonic.nn.resonators.model import Resonators
from anharmonic.nn.resonators.scaling import RunningScale
from anharmonic.ops.resonator import pool, propagator
from anharmonic.train import Trained


@dataclass(frozen=True)
class ResonatorPlan:
    """Resonators with their scaling, pools and linear model.

    Attributes:
        bank: The resonators, in float64.
        constants: Mean and deviation of the channels; None uses those of the samples so far.
        preparation: The same as a preprocessing, to draw samples for a check.
        pools: Names of the pools.
        weight: Weights of the linear model, [O, D].
        bias: Biases of the linear model, [O].
        target: "class" or "value".
        output_names: Name of every output; empty if unknown.
        readout: Unit of an answer, as of networks.
    """

    bank: Bank
    constants: tuple[Array, Array] | None
    preparation: Preprocessing
    pools: tuple[str, ...]
    weight: Array
    bias: Array
    target: str
    output_names: tuple[str, ...]
    readout = "last"

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes; empty for regression."""
        return self.output_names if self.target == "class" else ()

    @property
    def channels(self) -> int:
        """Channels of a sample."""
        return len(self.bank.weight) // 2

    @property
    def description(self) -> str:
        """The model in one line."""
        outputs = f"{len(self.bias)} {'classes' if self.class_names else 'outputs'}"
        size = len(self.bank.frequency)
        return f"{self.channels} channels; {size} resonators; {', '.join(self.pools)}; {outputs}"

    @property
    def coefficients(self) -> tuple[Array, Array, Array]:
        """Coefficients of a step; see ``ops.resonator.resonator_step``."""
        a, b, c = propagator(self.bank.frequency, self.bank.q)
        return a.numpy(), b.numpy(), c.numpy()

    @property
    def reads(self) -> tuple[Array, Array]:
        """Features that oscillators sum (-1 - n subtracts feature n), and where each list ends."""
        reads, ends = [], []
        for column in self.bank.weight.numpy().T:
            reads += [n if column[n] > 0 else -1 - n for n in np.flatnonzero(column).tolist()]
            ends.append(len(reads))
        return np.array(reads), np.array(ends)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each pool."""
        slow, lengths = len(self.bank.slow), self.bank.lengths.shape[1]
        _, B, K = self.bank.biases.shape
        return {name: num_features(name, K, B, slow, lengths) for name in self.pools}

    @property
    def weights_in_order(self) -> Array:
        """Weights [O, D] in the order of a program's features, which is that of POOLS."""
        K = len(self.bank.frequency)
        found, start = {}, 0
        for name, size in self.sizes.items():
            part = self.weight[:, start : start + size]
            if name in ("share", "excess", "stretches", "crossings", "competition"):
                part = part.reshape(len(part), 2, -1, K).transpose(0, 1, 3, 2)
            found[name] = part.reshape(len(part), -1)
            start += size
        return np.concatenate([found[name] for name in POOLS if name in found], axis=1)


def resonator_plan(source: Resonators | Trained | Any) -> ResonatorPlan:
    """Return the plan of a fitted model.

    Args:
        source: A model, the folder of a finished run, or an estimator with a model.
    """
    if isinstance(source, Trained):
        return _plan(source.model, source.output_names, source.preparation)
    if isinstance(source, Resonators):
        return _plan(source, (), None)
    advice = "call fit(X, y) first"
    require(hasattr(source, "model_"), "model", type(source).__name__, "fitted", advice)
    names = tuple(str(name) for name in getattr(source, "classes_", ()))
    return _plan(source.model_, names, None)


def _plan(
    model: Resonators, names: tuple[str, ...], preparation: Preprocessing | None
) -> ResonatorPlan:
    expected = "'train' or 'running', as a series' own scale is known at its end"
    advice = "train with --streaming (scaling='train')"
    require(model.scaling != "series", "scaling", model.scaling, expected, advice)
    feature_mean, weight, intercept = model.linear()
    bias = intercept - weight @ feature_mean
    if model.target == "class":
        # Scores whose softmax gives the probabilities.
        weight, bias = float(model.sharpness) * weight, float(model.sharpness) * bias
    mean, std = model.channel_mean.numpy().copy(), model.channel_deviation.numpy().copy()
    channels = () if preparation is None else preparation.channels
    window = 0 if preparation is None else preparation.window
    if preparation is not None:
        _check_scales_only(preparation)
        if preparation.standardise:
            mean = np.array(preparation.mean) + np.array(preparation.std) * mean
            std = np.array(preparation.std) * std
        if preparation.target_scale:
            scale = np.array(preparation.target_scale)
            weight, bias = (
                scale[:, None] * weight,
                scale * bias + np.array(preparation.target_shift),
            )
    bank = model.features._bank
    return ResonatorPlan(
        _in(torch.float64, bank),
        (mean, std) if model.scaling == "train" else None,
        Preprocessing(
            tuple(mean.tolist()),
            tuple(std.tolist()),
            False,
            "error",
            window=window,
            channels=channels,
        ),
        model.pools,
        weight,
        bias,
        model.target,
        names,
    )


_REMEDIES = {
    "missing": ("missing values", "a file without missing values"),
    "masked": ("missing values", "a file without missing values"),
    "elapsed": ("the time between samples", "--elapsed ignore"),
    "nominal": ("the time between samples", "--elapsed ignore"),
    "difference": ("differences", "--difference False"),
    "level_shift": ("series scaled separately", "--scale-each False"),
    "level_scale": ("series scaled separately", "--scale-each False"),
}


def _check_scales_only(preparation: Preprocessing) -> None:
    """Refuse preparations that the C program of resonators lacks, with the remedy for each."""
    plain = Preprocessing(
        preparation.mean,
        preparation.std,
        preparation.standardise,
        "error",
        channels=preparation.channels,
        target_shift=preparation.target_shift,
        target_scale=preparation.target_scale,
        window=preparation.window,
        # Predictions compare new data with these; the program does not.
        interval=preparation.interval,
        longest=preparation.longest,
        shortest=preparation.shortest,
    ).to_dict()
    other = [name for name, value in preparation.to_dict().items() if plain.get(name) != value]
    came = dict(_REMEDIES.get(name, (name, f"the default {name}")) for name in other)
    if came:
        expected = "resonators for C must be trained on channels that are only scaled"
        advice = f"train again with {listed([*came.values()])}"
        raise ValueError(message(expected, listed([*came]), advice))


def _in(dtype: torch.dtype, bank: Bank) -> Bank:
    weight, frequency, q, biases = (value.to(dtype) for value in bank[:4])
    scale = None if bank.scale is None else bank.scale.to(dtype)
    step = propagator(frequency, q)
    return Bank(weight, frequency, q, biases, bank.slow, step, scale, bank.lengths.to(dtype))


def resonator_outputs(
    plan: ResonatorPlan, x: NDArray[Any], dtype: torch.dtype = torch.float64
) -> Array:
    """Return the outputs for a series, computed in one precision.

    Shape:
        x [T, C]; result [O].
    """
    require(
        x.ndim == 2 and len(x) > 0 and x.shape[1] == plan.channels and bool(np.isfinite(x).all()),
        "examples",
        x.shape,
        f"finite arrays [T, {plan.channels}]",
        "pass every sequence as steps by channels",
    )
    x = np.asarray(x, np.float64)
    if plan.constants is None:
        scale = RunningScale((plan.channels,))
        now = np.stack([scale.exact(row) for row in x])
    else:
        mean, deviation = plan.constants
        now = (x - mean) / deviation
    samples = torch.from_numpy(now).to(dtype)
    changes = torch.cat([torch.zeros_like(samples[:1]), samples.diff(dim=0)])
    bank = _in(dtype, plan.bank)
    driven = bank.driven(torch.cat([samples, changes], dim=1), torch.tensor([0, len(x)]))
    found = pool(driven, bank.biases, scale=bank.scale)
    made = bank.features(*found, torch.tensor([len(x)]), plan.pools)
    return np.asarray(plan.bias + plan.weight @ made[0].astype(np.float64))
