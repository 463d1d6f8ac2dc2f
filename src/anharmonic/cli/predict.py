"""``anharmonic predict RUN DATA``: write a trained model's predictions for a file as CSV."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional

from anharmonic._checks import require
from anharmonic._files import write_atomically
from anharmonic.cli.flags import run_command
from anharmonic.data.base import counted
from anharmonic.data.metrics import accuracy_interval
from anharmonic.diagnostics.machine import torch_settings
from anharmonic.train.evaluation import Evaluation, evaluate_run
from anharmonic.train.predictions import Ahead, Predictions, predict
from anharmonic.train.run import RunEnvironment

# A larger confusion matrix would not fit into a terminal.
_MOST_CLASSES = 10


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic predict`` with these arguments and return the exit code."""
    return run_command(write_predictions, words, "anharmonic predict")


def write_predictions(
    run: Positional[Path],
    data: Positional[Path],
    output: Path = Path("predictions.csv"),
    batch_size: int = 256,
    evaluate: bool = False,
    threads: int | None = None,
) -> int:
    """Write a trained model's predictions for a file as CSV.

    Args:
        run: Folder of a finished run, such as runs/file-LEM-0123456789ab.
        data: File or folder as for training. Its targets are read only with --evaluate.
        output: CSV file to write, "-" for standard output. Its folder must exist; an existing file
            is replaced.
        batch_size: Sequences per batch. At least 1.
        evaluate: Compare the predictions with the targets in the file. Prints the scores beside
            those of the baseline, in total and per class.
        threads: CPU threads. Default: PyTorch's choice.

    Raises:
        ValueError: If the run or the data are damaged, or --evaluate finds no targets.
        FileNotFoundError: If the run, the data or the folder of the output are missing.
    """
    expected = "a file in an existing folder, or -"
    advice = f"make the folder {output.parent} first or choose another"
    require(output.parent.is_dir(), "--output", str(output), expected, advice, FileNotFoundError)
    fits, advice = not output.is_dir() or str(output) == "-", "name a file in that folder"
    require(fits, "--output", str(output), "a file, or -", advice)
    fits, advice = not _is_data(output, data), "choose another name: the data would be lost"
    require(fits, "--output", str(output), "another file than the data", advice)
    with torch_settings("cpu", RunEnvironment(threads=threads).threads):
        found = evaluate_run(run, data, batch_size) if evaluate else None
        predictions = predict(run, data, batch_size) if found is None else found.predictions
    rows = list(_rows(predictions))
    text = _as_csv(rows)
    said = None if found is None else evaluation_text(found)
    if str(output) == "-":
        if said is not None:
            print(said, file=sys.stderr)
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))  # for any encoding
        return 0
    done = "replaced" if output.is_file() else "wrote"
    write_atomically(output, text)  # first, because a pipe may be closed while we print
    if said is not None:
        print(said)
    print(f"{done} {output}: {counted(len(rows) - 1, 'row')}")
    return 0


def _is_data(output: Path, data: Path) -> bool:
    """Whether the output would replace the input."""
    if not (output.exists() and data.exists()):
        return False
    if data.is_dir():
        from anharmonic.data.recordings import is_input  # needed for folders only

        return is_input(data, output)
    return output.samefile(data)


def evaluation_text(found: Evaluation) -> str:
    """Return the metrics beside those of the baseline, then every class."""
    from anharmonic.pages import (
        CLASS_HEAD,
        OUTPUT_HEAD,
        class_rows,
        confusion_rows,
        grid,
        metric_rows,
        output_rows,
        text,
    )

    count = counted(found.scores.count, "answer")
    head = (count, "model", f"baseline ({found.trivial_answer})")
    rows = metric_rows(found.scores, found.trivial)
    parts: list[Any] = [grid(head, rows)]
    if found.scores.confusion:
        answers, alone = found.scores.count, ""
        targets = found.predictions.targets
        if isinstance(targets, list):  # answers of one sequence depend on each other
            answers = sum(any(one is not None for one in steps) for steps in targets)
            alone = f" from {counted(answers, 'sequence')}"
        low, high = accuracy_interval(found.scores.metrics["accuracy"], answers)
        parts.append(f"95 % interval of the accuracy{alone}: {low:.3g} to {high:.3g} %")
    if not found.is_better:
        by = found.judged_by.replace("_", " ")
        parts.append(f"The model is NOT clearly better than the baseline, judged by {by}.")
    if len(found.scores.outputs) > 1 or any(one.rmse_by_step for one in found.scores.outputs):
        heads = (*OUTPUT_HEAD[:2], "baseline", *OUTPUT_HEAD[2:])
        pairs = zip(output_rows(found.scores), output_rows(found.trivial), strict=True)
        errors = [(*mine[:2], other[1], *mine[2:]) for mine, other in pairs]
        parts += ["", grid(heads, errors, fixed=heads[:-1])]
    if found.scores.classes:
        parts += ["", grid(CLASS_HEAD, class_rows(found.scores), fixed=CLASS_HEAD[1:])]
    if 0 < len(found.scores.confusion) <= _MOST_CLASSES:
        parts += ["", grid(*confusion_rows(found.scores))]
    return text(*parts)


def csv_text(predictions: Predictions) -> str:
    """Return predictions as CSV.

    The columns are ``index``, ``id`` if the file names its sequences, ``target`` if it was read,
    and ``prediction``. Classes also have their probabilities ``p_NAME``. Several values have
    ``prediction_0``, ``prediction_1`` and so on, and targets likewise. Predictions per step have
    the columns ``step`` (from 0) and ``time``, if known, before them. A forecast has a row per step
    ahead, with ``step`` (from 1), ``time`` if known, and a column named after each channel, or
    ``NAME_q0.1`` and so on for quantiles.
    """
    return _as_csv(_rows(predictions))


def _as_csv(rows: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rows(predictions: Predictions) -> Iterator[list[Any]]:
    """Return the rows of ``csv_text``, the names of the columns first."""
    if predictions.ahead is not None:
        yield from _forecast_rows(predictions, predictions.ahead)
        return
    labels, values, names = predictions.labels, predictions.values, predictions.class_names
    width = values[0].shape[-1] if len(values) else 1
    if labels is not None:
        columns = ["prediction", *(_inert(f"p_{name}") for name in names)]
        aimed = ["target"]
    else:
        columns, aimed = (
            [name] if width == 1 else [f"{name}_{k}" for k in range(width)]
            for name in ("prediction", "target")
        )
    per_step = isinstance(values, list)
    ids, targets = predictions.ids, predictions.targets
    times = predictions.times
    place: list[Any] = ["index", *["id"] * (ids is not None), *["step"] * per_step]
    written = _writer(times or [], predictions.utc)
    yield [*place, *["time"] * (times is not None), *aimed * (targets is not None), *columns]
    for index, found in enumerate(values):
        for step, row in enumerate(found if per_step else [found]):
            named = [] if ids is None else [_inert(ids[index])]
            place = [index, *named, *([step] if per_step else [])]
            if times is not None:
                place.append(written(times[index][step]))
            if targets is not None:
                true = targets[index][step] if per_step else targets[index]
                place += [_target(one, labels is None) for one in np.ravel(true)]
            if labels is None:
                yield [*place, *(f"{value:.9g}" for value in row)]
            else:
                label = labels[index][step] if per_step else labels[index]
                yield [*place, _inert(str(label)), *(f"{p:.6g}" for p in row)]


def _target(true: Any, is_number: bool) -> str:
    """Format a target; one that is not known is an empty cell."""
    if true is None:
        return ""
    return f"{true:.9g}" if is_number else _inert(str(true))


def _forecast_rows(predictions: Predictions, ahead: Ahead) -> Iterator[list[Any]]:
    """Return a forecast as rows, one per step of every series."""
    ids, times = predictions.ids, ahead.times
    columns = [_inert(name) for name in ahead.channels]
    if ahead.quantiles:
        columns = [f"{name}_q{q:g}" for name in columns for q in ahead.quantiles]
    named, dated = ["id"] * (ids is not None), ["time"] * (times is not None)
    yield ["index", *named, "step", *dated, *columns]
    written = _writer([] if times is None else list(times), predictions.utc)
    shape = (max(1, len(ahead.quantiles)), ahead.horizon, len(ahead.channels))
    for index, row in enumerate(predictions.values):
        for step, values in enumerate(np.moveaxis(row.reshape(shape), 0, -1)):
            place: list[Any] = [index, *([] if ids is None else [_inert(ids[index])]), step + 1]
            if times is not None:
                place.append(written(times[index, step]))
            yield [*place, *(f"{value:.9g}" for value in values.ravel())]


def _writer(times: Sequence[NDArray[Any]], utc: bool) -> Callable[[Any], str]:
    """Return a function that formats each of these times with the digits that all need."""
    dates = [one for one in times if one.dtype.kind == "M"]
    decimals = _decimals([one.astype(np.float64) for one in times if one.dtype.kind != "M"])
    units = ("D", "s", "ms", "us", "ns")[utc:]
    whole = (u for u in units if all(_are_whole(one, u) for one in dates))
    unit = next(whole, units[-1])

    def written(time: Any) -> str:
        if isinstance(time, np.datetime64):
            return f"{time.astype(f'M8[{unit}]')}{'Z' * utc}"
        return _written(float(time), decimals)

    return written


def _are_whole(dates: NDArray[Any], unit: str) -> bool:
    """Return whether dates lose nothing in a unit; dates that are not known do not count."""
    return bool(((dates == dates.astype(f"M8[{unit}]")) | np.isnat(dates)).all())


def _decimals(times: Sequence[NDArray[np.float64]]) -> int:
    """Return three decimals more than the smallest step within a series, if floats have so many."""
    known = [one[np.isfinite(one)] for one in times]
    largest = max((float(np.abs(one).max()) for one in known if len(one)), default=0.0)
    steps = [step for one in known for step in np.abs(np.diff(one)).tolist() if step > 0]
    wanted = max(3, math.ceil(3 - math.log10(min(steps)))) if steps else 9
    # A float has no more digits: 1.7e9 is exact to 2e-7.
    return max(0, min(wanted, math.floor(-math.log10(np.spacing(largest)))))


def _written(time: float, decimals: int) -> str:
    """Format a number with these decimals, or with nine digits if these are more."""
    if not math.isfinite(time) or 0 < abs(time) < 1e-9:
        return f"{time:.9g}"
    digits = 8 - math.floor(math.log10(abs(time) or 1.0))
    return np.format_float_positional(time, max(decimals, digits), trim="-")


def _inert(word: str) -> str:
    """Return a cell that a spreadsheet reads as text, with an apostrophe before formulas."""
    word = word.replace("\0", " ").replace("\r", " ")  # neither is allowed in a table
    if word[:1] not in ("=", "+", "-", "@", "\t"):
        return word
    try:
        float(word)
    except ValueError:
        return f"'{word}"
    return word
