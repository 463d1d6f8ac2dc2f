"""A model in integers, calibrated on data and run exactly like the C program."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.export.fixed import (
    ARGUMENT,
    MISSING,
    MOST,
    Ints,
    bias,
    in_floats,
    matrix,
    quantised,
    shifted,
)
from anharmonic.export.fixed_cells import FixedLayer
from anharmonic.export.plan import Plan
from anharmonic.nn.heads import SequenceModel

_SPARE = 1.25
_NARROW = 0.5
"""Calibration data that vary less than this share of the training data give a warning."""
Floats = NDArray[np.float64]


def _warn_of_narrow(x: NDArray[Any], names: Sequence[str]) -> None:
    """Warn if standardised channels vary much less than in training, where they vary by 1."""
    spread = x.std(axis=0, dtype=np.float64)
    spread[spread == 0] = np.inf  # also constant in training
    least = int(spread.argmin())
    if spread[least] < _NARROW:
        name = repr(names[least]) if names else least
        warnings.warn(
            f"the calibration data vary {spread[least]:.2g} times as much as the training data in "
            f"channel {name}, and the program clips larger samples; calibrate on all training "
            "data",
            stacklevel=2,
        )


class FixedModel:
    """A model in integer arithmetic from samples to outputs.

    Args:
        plan: The model.
        prepared: Prepared sequences that determine the ranges of all variables.
        model: The model in PyTorch.
        bits: Bits of a matrix entry: 8 or 16.

    Shape:
        prepared [T, F] each.
    """

    def __init__(
        self, plan: Plan, prepared: Sequence[NDArray[Any]], model: SequenceModel, bits: int
    ) -> None:
        require(len(prepared) > 0, "calibration", 0, "at least one sequence", "give training data")
        self.plan, self.bits = plan, bits
        p, C = plan.preparation, plan.channels
        if p.standardise:
            _warn_of_narrow(np.concatenate([x[:, :C] for x in prepared]), p.channels)
        largest = np.max([np.abs(x).max(axis=0) for x in prepared], axis=0).astype(np.float64)
        self.input_scale = MOST / np.maximum(_SPARE * largest, 1e-6)
        self.input_scale[C : C + len(p.masked)] = 2**14
        std = np.array(p.std) if p.standardise else np.ones(C)
        mean = np.array(p.mean) if p.standardise else np.zeros(C)
        # In float32, as in the C program.
        self.gain = (self.input_scale[:C] / std).astype(np.float32)
        self.offset, self.offset_rest = (v.astype(np.float32) for v in in_floats(mean, std))
        middle = np.zeros(C) if p.standardise else np.array(p.mean) * self.input_scale[:C]
        self.middle = np.clip(np.rint(middle), -MOST, MOST).astype(np.int64)
        self.changes: list[tuple[int, int]] = []
        if p.difference:
            ratio = self.input_scale[C + len(p.masked) :] / (
                self.input_scale[:C] * np.array(p.difference)
            )
            for r in ratio:
                f = min(30, int(np.floor(np.log2(16383 / r))))
                self.changes.append((int(np.rint(r * 2.0**f)), f))
        sizes = _sizes(model, prepared)
        repeated = np.tile(self.input_scale, plan.patch)
        formats, self.layers = [0], []
        for k, layer in enumerate(plan.layers):
            matrices = {
                name: real / repeated
                if (name in ("ih", "ih_y") and k == 0) or (name == "skip" and layer.skip == 0)
                else real
                for name, real in layer.matrices.items()
            }
            own = [size[k] for size in sizes]
            scaled = type(layer)(**{**vars(layer), "matrices": matrices})
            self.layers.append(FixedLayer(scaled, formats, own, bits, f"layer {k}"))
            formats.append(self.layers[-1].formats[self.layers[-1].variables[0]])
        self.readout = matrix(plan.weight, formats[-1], bits, "the readout")
        self.readout_bias, self.readout_bias_shift = bias(plan.bias)

    def samples(self, x: NDArray[Any]) -> NDArray[np.int16]:
        """Round raw samples to integers; NaN becomes ``MISSING``.

        Shape:
            x [..., C]; result likewise.
        """
        centred = np.asarray(x, np.float32) - self.offset - self.offset_rest
        return quantised(centred, self.gain)

    def outputs(self, samples: NDArray[np.int16]) -> Ints:
        """Return the C program's final outputs, in the format of arguments.

        Shape:
            samples [N, T, C]; result [N, O].
        """
        u = self._prepared(samples.astype(np.int64))
        found = self._outputs(u, np.full(len(u), u.shape[1]))
        return found[:, -1] if self.plan.readout == "all" else found

    def predictions(self, x: NDArray[Any], lengths: Ints) -> Floats:
        """Return what the program gives in place of the network in PyTorch.

        Args:
            x: Prepared sequences, padded at the end.
            lengths: Their lengths.

        Shape:
            x [N, T, F]; lengths [N]; result [N, O], or [N, T, O] for readout "all".
        """
        C, marks = self.plan.channels, len(self.plan.preparation.masked)
        u = np.rint(np.clip(x * self.input_scale, -MOST, MOST)).astype(np.int64)
        if self.changes:  # of integers, as in C
            u[..., C + marks :] = _Whole(self).changes(u[..., :C])
        return self._outputs(u, lengths) / 2.0**ARGUMENT

    def _outputs(self, u: Ints, lengths: Ints) -> Ints:
        """Return the outputs for padded inputs of the first layer before patching: [N, T, F]."""
        patch, readout = self.plan.patch, self.plan.readout
        N, T, _ = u.shape
        counts = -(-lengths // patch)
        u = np.where(np.arange(T)[:, None] < lengths[:, None, None], u, 0)
        u = np.pad(u, ((0, 0), (0, -T % patch), (0, 0))).reshape(N, -1, patch * u.shape[2])
        states = [layer.start(N) for layer in self.layers]
        y = np.zeros((N, self.plan.layers[-1].width), np.int64)
        every = []
        for t in range(u.shape[1]):
            levels = [u[:, t]]
            for layer, state in zip(self.layers, states, strict=True):
                skip = None if layer.layer.skip is None else levels[layer.layer.skip]
                levels.append(layer.step(state, levels[-1], skip))
            now = levels[-1] + y * (readout == "mean")
            y = np.where((t < counts)[:, None], now, y)
            if readout == "all":
                every.append(self.readout_bias + self.readout(y))
        if readout == "all":
            return np.stack(every, axis=1)
        if readout == "mean":
            y = np.sign(y) * (np.abs(y) // counts[:, None])  # towards zero, as in C
        return self.readout_bias + self.readout(y)

    def values(self, outputs: Ints) -> Floats:
        """Convert outputs to numbers: class scores, or values in the units of the targets."""
        return np.asarray(self.plan.shift + self.plan.scale * (outputs / 2.0**ARGUMENT))

    def _prepared(self, x: Ints) -> Ints:
        """Return the first layer's input before patching: [N, T, C] to [N, T, F]."""
        columns = self.plan.preparation.columns(x, _Whole(self))
        return np.concatenate(columns, axis=2)


class _Whole:
    """The ``Layout`` of a batch of integer sequences, which are scaled when rounded."""

    def __init__(self, model: FixedModel) -> None:
        self.mean, self.where, self._changes = model.middle, np.where, model.changes

    def missing(self, x: Ints) -> NDArray[np.bool_]:
        return np.asarray(x == MISSING)

    def carried_forward(self, x: Ints) -> Ints:
        x = x.copy()
        for t in range(1, x.shape[1]):
            x[:, t] = np.where(self.missing(x[:, t]), x[:, t - 1], x[:, t])
        return x

    def standardised(self, x: Ints) -> Ints:
        return x

    def scaled_each(self, x: Ints) -> tuple[Ints, Ints]:
        raise NotImplementedError  # the plan excludes it

    def marks(self, gaps: NDArray[np.bool_]) -> Ints:
        return np.where(gaps, 2**14, 0).astype(np.int64)

    def changes(self, x: Ints) -> Ints:
        m, f = np.array(self._changes).T
        change = np.diff(x, axis=1, prepend=x[:, :1])
        return np.asarray(np.clip(shifted(change * m, f), -MOST, MOST))


def _sizes(model: SequenceModel, prepared: Sequence[NDArray[Any]]) -> list[list[float]]:
    """Return the largest magnitude of every layer's variables over prepared sequences."""
    longest = max(len(x) for x in prepared)
    batch = np.zeros((len(prepared), longest, prepared[0].shape[1]), np.float32)
    lengths = torch.tensor([len(x) for x in prepared])
    for n, x in enumerate(prepared):
        batch[n, : len(x)] = x
    example = next(model.parameters())
    rows = torch.from_numpy(batch).to(example.dtype)
    counts: torch.Tensor | None = lengths
    if model.patch > 1:
        rows, counts, _ = model.patches(rows, lengths)
    assert counts is not None
    state, found = None, None
    with torch.no_grad():
        for t in range(rows.shape[1]):
            _, state = model.layer.step(rows[:, t], state)
            running = (t < counts).to(rows.dtype)[:, None]
            now = torch.stack([(part.abs() * running).amax(dim=(1, 2)) for part in state])
            found = now if found is None else torch.maximum(found, now)
    assert found is not None
    return [[float(v) for v in row] for row in found]
