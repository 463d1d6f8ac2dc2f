"""Integer programs: calibration of their ranges, and their test scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic import _checks
from anharmonic.data.own import read_inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import file_digest
from anharmonic.data.sequences import Sequences
from anharmonic.export.fixed_model import FixedModel
from anharmonic.export.graph import evaluated
from anharmonic.export.plan import Plan, plan
from anharmonic.nn.heads import SequenceModel
from anharmonic.train import RunEnvironment, trained
from anharmonic.train.scoring import Scores, evaluate

Floats = NDArray[np.float32]
_CALIBRATION = 1024


class IntegerScores(NamedTuple):
    """Scores of a run's test part."""

    integers: Scores
    """Of the integer program."""
    trained: Scores
    """Of the trained model in PyTorch."""
    metric: str
    """The task's metric."""
    program: FixedModel
    """The integer program, calibrated on the file; `calibration` of `write_c` takes it."""


def integer_scores(run_folder: str | Path, data: str | Path, weights: str) -> IntegerScores:
    """Measure an integer program on the test part of a run, beside the trained model.

    Args:
        run_folder: Folder of a finished run on a file.
        data: The training file, which also sets the ranges of all variables.
        weights: "int16" or "int8".

    Raises:
        FileNotFoundError: If the folder has no finished run.
        ValueError: If it is another file, or the model has no form in integers.
    """
    run = trained(run_folder)
    wanted = run.run.task_options.get("sha256")
    advice = "leave --evaluate out, or give the file of training"
    fits, expected = wanted == file_digest(data), "the training file, whose test part is evaluated"
    _checks.require(fits, "--data (data)", str(data), expected, advice)
    task = run.run.make_task(RunEnvironment(file=Path(data).expanduser(), progress=False))
    found = plan(run.model, run.preparation, run.output_names, run.target)
    fixed = integer_model(run.model, found, weights, data, run.columns)
    device, batches = torch.device("cpu"), task.loaders(0, 256).test
    integers = evaluate(_Integers(fixed), batches, task, device)
    model = evaluate(run.model, batches, task, device)
    return IntegerScores(integers, model, task.metric, fixed)


class _Integers(torch.nn.Module):
    """An integer program in place of a network, for prepared sequences."""

    def __init__(self, fixed: FixedModel) -> None:
        super().__init__()
        self.fixed = fixed

    def forward(self, x: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        counts = np.full(len(x), x.shape[1]) if lengths is None else lengths.numpy()
        return torch.from_numpy(self.fixed.predictions(x.double().numpy(), counts)).float()


def integer_model(
    net: SequenceModel,
    found: Plan,
    weights: str,
    calibration: Sequence[NDArray[Any]] | str | Path | FixedModel | None,
    columns: Any,
) -> FixedModel:
    """Return a model in integers, whose ranges fit representative sequences."""
    if isinstance(calibration, FixedModel):
        return calibration
    for option, plain in (("horizon", 0), ("elapsed", "ignore")):
        came = getattr(found.preparation, option)
        wanted = f"{plain!r}, as forecasts and uneven times have no form in integers"
        advice = "leave --weights out" + ", or train with --elapsed ignore" * (option == "elapsed")
        _checks.require(came == plain, f"--{option} ({option}) of the run", came, wanted, advice)
    prepared = _calibration(calibration, found.preparation, columns)
    with evaluated(net):
        return FixedModel(found, prepared, net, int(weights.removeprefix("int")))


def _calibration(
    given: Sequence[NDArray[Any]] | str | Path | None, preparation: Preprocessing, columns: Any
) -> list[Floats]:
    """Return about a thousand prepared sequences at most."""
    if not isinstance(given, str | Path):
        assert given is not None
        sequences = checked_sequences("calibration", given, len(preparation.mean))
        return [prepare(preparation, x) for x in sequences]
    found: list[Floats] = []
    for batch in read_inputs(Path(given).expanduser(), preparation, columns).dataset.batches(256):
        x, lengths = batch.inputs[0], batch.lengths
        assert x is not None
        sizes = [x.shape[1]] * len(x) if lengths is None else lengths.tolist()
        found += [row[:size].numpy() for row, size in zip(x, sizes, strict=True)]
    # A file may be sorted by class, so take some from everywhere, and the largest of each channel.
    largest = np.argmax([np.abs(x).max(axis=0) for x in found], axis=0)
    chosen = {*range(0, len(found), -(-len(found) // _CALIBRATION)), *largest.tolist()}
    return [found[n] for n in sorted(chosen)]


def checked_sequences(
    name: str, given: Sequence[NDArray[Any]], channels: int
) -> Sequence[NDArray[Any]]:
    """Return the sequences, after a check of their shapes [T, C]."""
    expected, advice = f"arrays [T, {channels}]", "pass every sequence as steps by channels"
    for x in given:
        shape = np.shape(x)
        fits = len(shape) == 2 and shape[0] > 0 and shape[1] == channels
        _checks.require(fits, name, shape, expected, advice)
    return given


def prepare(preparation: Preprocessing, x: NDArray[Any]) -> Floats:
    """Return one sequence as the model reads it.

    Shape:
        x [T, C]; result [T, F].
    """
    return preparation.transform(one_sequence(preparation, x))


def one_sequence(preparation: Preprocessing, x: NDArray[Any]) -> Sequences:
    """Return one sequence; the last column is the time between samples, if known."""
    x, elapsed = np.asarray(x, np.float32), None
    if preparation.elapsed != "ignore":
        x, elapsed = x[:, :-1], x[:, -1]
    return Sequences("examples", x, np.array([0, len(x)]), elapsed=elapsed)
