"""Files with one recording that are not tables: sounds and arrays."""

from __future__ import annotations

import importlib
import struct
import warnings
import wave
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import message
from anharmonic.data.sequences import Floats

_STREAMED = 2**31 - 2**16
"""Declared sizes that mean an unknown number of samples."""
_SCIPY = "install scipy, which reads it (pip install scipy), or write whole numbers of 16 bits"


@dataclass(frozen=True)
class Signal:
    """One recording: samples `[T, F]`, samples per second if known, names of channels if known.

    Annotations in the file give a label for every step `[T]`.
    """

    x: Floats
    rate: float | None = None
    channels: tuple[str, ...] = ()
    labels: NDArray[Any] | None = None


def read_sound(path: Path, where: str) -> Signal:
    """Read a `.wav` file: integers of 8 to 32 bits, scaled to [-1, 1), or floats.

    Warns if it has fewer samples than declared. Messages call the file `where`.
    """
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            frames = file.getnframes()
            raw = file.readframes(frames)
    except wave.Error as error:
        if "unknown format" not in str(error):
            raise bad_file(where, "a sound .wav file", error) from error
        return _float_sound(path, where)
    except (EOFError, OSError, ValueError, OverflowError, MemoryError) as error:
        raise bad_file(where, "a sound .wav file", error) from error
    usable = len(raw) - len(raw) % (width * channels)
    samples = _whole(raw[:usable], width).reshape(-1, channels)
    if len(samples) < frames < _STREAMED / (width * channels):
        came = f"{len(samples)} of {frames} samples"
        warnings.warn(message(f"{where} should be whole", came, "copy it again"), stacklevel=2)
    return checked_signal(where, samples, rate)


def _whole(raw: bytes, width: int) -> Floats:
    """Convert integers of a given size in bytes to samples in [-1, 1)."""
    if width == 1:  # unsigned, unlike the others
        return np.asarray((np.frombuffer(raw, np.uint8) - 128.0) / 128, np.float32)
    if width == 3:
        parts = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        filled = np.zeros((len(parts), 4), np.uint8)
        filled[:, 1:] = parts
        return (filled.reshape(-1).view("<i4") / 2**31).astype(np.float32)
    whole = np.frombuffer(raw, f"<i{width}")
    return (whole / 2.0 ** (8 * width - 1)).astype(np.float32)


def _float_sound(path: Path, where: str) -> Signal:
    try:
        wavfile = importlib.import_module("scipy.io.wavfile")
    except ModuleNotFoundError as error:
        expected = f"{where} must hold whole numbers (PCM)"
        came = "another kind of samples, such as floats"
        raise ImportError(message(expected, came, _SCIPY)) from error
    try:
        rate, samples = wavfile.read(path)
    except (ValueError, OSError, EOFError, TypeError, struct.error) as error:
        raise bad_file(where, "a .wav file of numbers that are not compressed", error) from error
    values = np.asarray(samples)
    if values.dtype.kind in "iu":
        half = 2.0 ** (8 * values.dtype.itemsize - 1)
        values = (values - (half if values.dtype.kind == "u" else 0)) / half
    return checked_signal(where, values.astype(np.float32), int(rate))


def read_array(path: Path, where: str) -> Signal:
    """Read a `.npy` file, `where` in messages: `[T]` or `[T, F]`."""
    values = load_array(path, where)
    if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
        came = f"{values.dtype} {list(values.shape)}"
        expected = f"{where} must hold the numbers of one recording, [T] or [T, F]"
        raise ValueError(message(expected, came, "reshape or convert it"))
    with np.errstate(over="ignore"):  # too large numbers become infinite and are refused later
        return checked_signal(where, values.astype(np.float32))


def load_array(path: Path, where: str) -> NDArray[Any]:
    """Return the array of a `.npy` file, which must not hold Python objects."""
    try:
        # Memory-mapped, so that a header cannot request more memory than the file has.
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError, SyntaxError, TypeError, MemoryError) as error:
        raise bad_file(where, "a .npy file of one array, without Python objects", error) from error


def checked_signal(
    where: str,
    samples: NDArray[Any],
    rate: float | None = None,
    channels: tuple[str, ...] = (),
    labels: NDArray[Any] | None = None,
) -> Signal:
    """Make a recording from samples `[T]` or `[T, F]`, at least one, and more than 0 per second."""
    x = samples[:, None] if samples.ndim == 1 else samples
    if x.size == 0:
        raise ValueError(message(f"{where} must hold samples", "none", "remove it"))
    if rate is not None and rate <= 0:
        expected = f"{where} must have more than 0 samples per second"
        raise ValueError(message(expected, str(rate), "write it again, or remove it"))
    return Signal(np.ascontiguousarray(x, np.float32), rate, channels, labels)


def bad_file(where: str, kind: str, error: Exception) -> ValueError:
    """Return the error for a file that its library cannot read."""
    said = str(error).rstrip(".")[:200] or "it ends too early"
    came = f"{type(error).__name__}: {said}"
    return ValueError(message(f"{where} must be {kind}", came, "write it again, or remove it"))


def resampled(signal: Signal, rate: float) -> Signal:
    """Resample a sound, removing frequencies above the new Nyquist limit.

    Example:
        >>> second = np.sin(2 * np.pi * 5 * np.arange(100) / 100)[:, None].astype(np.float32)
        >>> half = resampled(Signal(second, 100), 50).x
        >>> half.shape, bool(np.allclose(half, second[::2], atol=1e-6))
        ((50, 1), True)
    """
    if signal.rate in (rate, None):
        return signal
    before = len(signal.x)
    after = max(1, round(before * rate / signal.rate))
    places = np.arange(after) * before // after
    labels = None if signal.labels is None else signal.labels[places]
    gaps = np.isnan(signal.x)
    x = of_length(np.apply_along_axis(_bridged, 0, signal.x) if gaps.any() else signal.x, after)
    x = np.where(gaps[places], np.float32(np.nan), x)
    return replace(signal, x=x, rate=rate, labels=labels)


def _bridged(values: Floats) -> Floats:
    """Return values with straight lines in place of NaN, which would spread to all of them."""
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return np.zeros_like(values)
    return np.interp(np.arange(len(values)), known, values[known]).astype(values.dtype)


def of_length(x: Floats, count: int) -> Floats:
    """Resample samples `[T, F]` to `count` samples of the same time."""
    if len(x) == count:
        return x
    spectrum = np.fft.rfft(x.astype(np.float64), axis=0)
    shared = min(count, len(x))
    if shared % 2 == 0:  # the highest frequency both hold counts once in even lengths, else twice
        spectrum[shared // 2] *= 0.5 if count > len(x) else 2
    made = np.fft.irfft(spectrum[: count // 2 + 1], n=count, axis=0) * (count / len(x))
    return made.astype(np.float32)


def labels_of_spans(
    starts: NDArray[Any],
    ends: NDArray[Any] | None,
    found: NDArray[Any],
    clock: NDArray[Any],
    where: str,
) -> NDArray[Any]:
    """Return a label for every step, "none" outside all intervals.

    Without ends, or if they equal the starts, each label holds until the next one.

    Example:
        >>> start, end, label = (np.array([value]) for value in (1, 3, "a"))
        >>> labels_of_spans(start, end, label, np.arange(4), "here").tolist()
        ['none', 'a', 'a', 'none']
    """
    order = np.argsort(starts, kind="stable")
    starts, found = starts[order], found[order]
    places = np.searchsorted(starts, clock, side="right") - 1
    if ends is not None and (ends[order] != starts).any():
        # An interval may lie within another of its label.
        ends = np.maximum.accumulate(ends[order])
        # 0.1 + 0.2 must not reach beyond 0.3, where the next may begin.
        last = ends - 4 * np.spacing(np.abs(ends)) if ends.dtype.kind == "f" else ends
        clash = np.flatnonzero((starts[1:] < last[:-1]) & (found[1:] != found[:-1]))
        if len(clash):
            row = int(clash[0])
            came = f"{found[row]} until {ends[row]} and {found[row + 1]} from {starts[row + 1]} on"
            expected = f"intervals of {where} must not overlap"
            raise ValueError(message(expected, came, "keep one of them"))
        places = np.where((places >= 0) & (clock < last[np.maximum(places, 0)]), places, -1)
    if (places >= 0).all():
        return found[places]
    return np.where(places < 0, "none", found.astype(np.str_)[np.maximum(places, 0)])
