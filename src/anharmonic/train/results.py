"""Results: one line of JSON per finished run, only ever added to."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from anharmonic import _checks
from anharmonic._files import append_line
from anharmonic.train.run import Run
from anharmonic.train.serialization import structure_json


@dataclass(frozen=True)
class Result:
    """What a finished run gave, and where and how it was computed."""

    run: Run
    """The run itself."""
    hash: str
    """The run's hash: its name."""
    test: float
    """Metric on the test set, of the weights chosen by `run.select`."""
    valid: float | None
    """Metric on the validation set, of the same weights; None without a validation set."""
    metric: str
    """Name of the metric; "accuracy" is in percent."""
    higher_is_better: bool
    """Whether larger values of the metric are better."""
    parameters: int
    """Number of trained numbers in the model."""
    seconds: float
    """Time spent on training and validation, over all sittings; work lost to a kill not counted."""
    memory_mb: float
    """Peak memory in MB (10**6 bytes): resident memory of the process, or allocated on the GPU. Of
    this run's sittings on Linux and on the GPU; elsewhere since the process began."""
    epochs_run: int
    """Epochs trained."""
    best_epoch: int
    """Epoch (from 1) of the chosen weights."""
    stopped: Literal["finished", "early"]
    """Whether all epochs ran or `run.patience` ended the run."""
    device: str
    """"cpu" or "cuda"."""
    devices: int
    """Number of devices, on all machines together."""
    threads: int
    """CPU threads of PyTorch."""
    hardware: str
    """Name of the processor or GPU."""
    versions: dict[str, str]
    """Versions of anharmonic, torch, lightning, numpy and python when the run first started."""
    commit: str | None
    """Git commit of the package when the run first started, "-dirty" if its files differed; None
    if installed otherwise."""
    started: str
    """When the run first started: ISO 8601, UTC."""
    curve: dict[str, list[float]]
    """"epoch", "train_loss", "valid" (metric), "valid_loss", "grad_norm" (median of the epoch's
    gradient norms before clipping) and "grad_norm_max", to 6 digits (also "nfe" and "adjoint_score"
    of a neural ODE): every epoch up to 100, of longer runs about 100, the best and the last
    included."""
    nondeterministic: list[str] = field(default_factory=list)
    """Operations without a deterministic form on this device: with any, resuming is not exact."""
    trivial: float | None = None
    """Metric on the test set of the best constant answer: the most frequent class of the training
    data, their mean, or for "mae" their median. None in results of older versions."""
    trivial_loss: float | None = None
    """Training loss of the best answer without a look at the inputs. None in results of older
    versions."""
    tested: int | None = None
    """Targets that the test metric is of: sequences, real steps, nodes, graphs or rows (of values
    or labels each counts). None in results of older versions."""
    by_channel: dict[str, float] | None = None
    """Of a forecast of several channels, the test metric of each by its name; else None."""

    def to_json(self, indent: int | None = None) -> str:
        """Returns the result as JSON with sorted keys."""
        separators = (",", ":") if indent is None else (",", ": ")
        values = dataclasses.asdict(self)
        for name in ("trivial", "trivial_loss", "tested", "by_channel"):
            if values[name] is None:  # a line of an older version stays as it is
                del values[name]
        return json.dumps(
            values, sort_keys=True, separators=separators, indent=indent, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Reads a result from JSON. The hash is computed from the run, whatever the text says.

        Raises:
            ValueError: If the text is no JSON object, has unknown keys, lacks keys or has wrong
                types.
        """
        result = structure_json(cls, text, "a result's JSON")
        return dataclasses.replace(result, hash=result.run.hash)


def append(path: str | Path, result: Result) -> None:
    """Adds a result's line to a file, in one write; makes file and folder if needed.

    Several processes may add to one file. A line that a kill or full disk cut short is left as it
    is, and the new one starts on a line of its own.

    Args:
        path: The results file.
        result: The result.

    Raises:
        OSError: If the line cannot be written.
    """
    append_line(Path(path), result.to_json())


def tell_curve(curve: dict[str, list[float]], told: Callable[[int, float], None]) -> None:
    """Tells of the epochs of a curve.

    Args:
        curve: As in a result.
        told: As of `fit`.
    """
    epochs = curve["epoch"]
    for epoch, valid in zip(epochs, curve.get("valid", [math.nan] * len(epochs)), strict=True):
        told(int(epoch), valid)


LONGEST = 64 << 20
"""Bytes of the longest line that is read: a file without line ends takes no memory."""


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(LONGEST + 1):
            yield line
            while len(line) > LONGEST and not line.endswith(b"\n"):
                line = file.readline(LONGEST + 1)


def read_results(path: str | Path) -> list[Result]:
    """Reads all results of a file, in order; none if there is no such file.

    A line that cannot be read (cut short by a kill, or edited) is left out with a warning.

    Args:
        path: The results file.

    Raises:
        ValueError: If the path is a folder, a device or a pipe.

    Example:
        >>> read_results("no-such-file.jsonl")
        []
    """
    path = Path(path)
    if not path.exists():
        return []
    expected = "a file of results (.jsonl), or none yet"
    _checks.require(path.is_file(), "--results", str(path), expected, "choose another path")
    results = []
    # Bytes, because a line cut short may end inside a character.
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            _checks.require(
                len(line) <= LONGEST, "a line", f"{LONGEST} bytes or more", "shorter", "delete it"
            )
            results.append(Result.from_json(line.decode()))
        except (ValueError, TypeError) as error:
            warnings.warn(
                f"{path}, line {number} is left out, because it is no whole result: {error}",
                stacklevel=2,
            )
    return results
