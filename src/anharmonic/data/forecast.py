"""Options of windows and forecasts, and what they make of the parts of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anharmonic._checks import positive_int, require
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import (
    Pieces,
    channel_numbers,
    covering_windows,
    cut_windows,
    forecast_windows,
)


@dataclass(frozen=True)
class Windows:
    """How recordings are cut into windows.

    Attributes:
        window: Steps per window; None for whole sequences, with `horizon` for a default.
        stride: Steps from one window to the next; None for `window`, with `horizon` 1.
        horizon: Steps to forecast after a window; None for no forecast.
        forecast: Channels to forecast, by name or number; empty for all.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If a number is below 1, or an option lacks the one it belongs to.
    """

    window: int | None = None
    stride: int | None = None
    horizon: int | None = None
    forecast: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("window", "stride", "horizon"):
            if (value := getattr(self, name)) is not None:
                positive_int(name, value)
        cut, none = self.window is not None or self.horizon is not None, "None without window"
        require(cut or self.stride is None, "stride", self.stride, none, "pass window too")
        fits, advice = self.horizon is not None or not self.forecast, "pass horizon too"
        require(fits, "forecast", list(self.forecast), "empty without horizon", advice)

    def length(self, parts: Mapping[str, Sequences]) -> int:
        """Steps of the past to forecast from: as given, else 4 horizons or what the series allow.

        Args:
            parts: The series.
        """
        if self.window is not None:
            return self.window
        horizon = self.horizon or 1
        shortest = min(int(part.lengths.min()) for part in parts.values())
        return max(1, min(max(4 * horizon, 16), (7 * shortest // 10 - horizon) // 2))

    def cut(
        self, preprocessing: Preprocessing, parts: Mapping[str, Sequences], window: int
    ) -> tuple[Preprocessing, dict[str, Sequences], dict[str, Pieces]]:
        """The windows of every part, their preprocessing, and whose windows are tested.

        Training learns from windows every `stride` steps; the other parts are predicted for as new
        data are, from windows side by side.

        Args:
            preprocessing: That of the training part.
            parts: The parts, which share no step to predict.
            window: Steps per window.
        """
        if self.horizon is None:
            stride = self.stride or window
            tested = {
                n: covering_windows(part, window) for n, part in parts.items() if n != "train"
            }
            made = {name: pieces.part for name, pieces in tested.items()}
            made = {"train": cut_windows(parts["train"], window, stride), **made}
            return replace(preprocessing, window=window), made, tested
        channels = channel_numbers(parts["train"], self.forecast)
        ahead = (window, self.stride or 1, self.horizon, channels)
        made = {name: forecast_windows(part, *ahead) for name, part in parts.items()}
        return preprocessing.forecasting(made["train"], window, self.horizon, channels), made, {}
