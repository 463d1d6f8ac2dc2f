"""Log-mel features of speech, as librosa 0.8 computes them in the LEM paper's published code."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

RATE, FFT, HOP, BANDS, FRAMES = 16_000, 1024, 128, 80, 126
LOWEST, HIGHEST = 40.0, 8000.0
_TINY, _RANGE = 1e-10, 80.0  # smallest value and range of the decibels


def log_mel(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standardised mel bands of an utterance in decibels, features `[126, 80]`.

    The utterance has 16 kHz and at least 513 samples in [-1, 1). Fourier transforms of 1024 samples
    are taken every 128 samples. Their magnitudes are summed in 80 bands from 40 Hz to 8 kHz. The
    bands are converted to decibels of power relative to the largest, with a minimum of -80. They
    are cut to 126 frames, or padded with 0, the largest value. The result has mean 0 and deviation
    1 over all bands and frames.
    """
    padded = np.pad(samples, FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::HOP]
    spectrum = np.abs(np.fft.rfft(frames * _window(), axis=1))
    bands = np.maximum(spectrum @ mel_filters().T, _TINY)
    decibels = np.maximum(10 * np.log10(bands / bands.max()), -_RANGE)
    features = np.zeros((FRAMES, BANDS))
    count = min(FRAMES, len(decibels))
    features[:count] = decibels[:count]
    deviation = features.std()
    standard: NDArray[np.float64] = (features - features.mean()) / (deviation or 1.0)
    return standard


def _window() -> NDArray[np.float64]:
    """Return the periodic Hann window."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)


@functools.cache
def mel_filters() -> NDArray[np.float64]:
    """Return triangular filters on the mel scale with unit area over frequency, `[80, 513]`."""
    edges = _hertz(np.linspace(_mels(LOWEST), _mels(HIGHEST), BANDS + 2))
    frequencies = np.linspace(0, RATE / 2, FFT // 2 + 1)
    rise = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    heights = 2 / (edges[2:] - edges[:-2])
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rise, fall)) * heights[:, None]
    return filters


# The scale of Slaney's Auditory Toolbox: linear below 1000 Hz, logarithmic above.
_LINEAR, _BREAK, _LOG = 200 / 3, 1000.0, np.log(6.4) / 27


def _mels(hertz: float) -> float:
    if hertz < _BREAK:
        return hertz / _LINEAR
    return float(_BREAK / _LINEAR + np.log(hertz / _BREAK) / _LOG)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    above = _BREAK * np.exp(_LOG * (mels - _BREAK / _LINEAR))
    return np.where(mels < _BREAK / _LINEAR, mels * _LINEAR, above)
