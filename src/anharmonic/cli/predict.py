"""``anharmonic predict RUN DATA``: a trained model's predictions for a file, as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from tyro.conf import Positional

from anharmonic._checks import require
from anharmonic.cli.flags import run_command
from anharmonic.train.files import write_atomically
from anharmonic.train.predict import Predictions, predict


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic predict``.

    Returns:
        The exit code.
    """
    return run_command(write_predictions, words, "anharmonic predict")


def write_predictions(
    run: Positional[Path],
    data: Positional[Path],
    output: Path = Path("predictions.csv"),
    batch_size: int = 256,
) -> int:
    """Writes a trained model's predictions for a file of sequences as CSV.

    Args:
        run: The folder of a finished run, e.g. runs/file-LEM-0123456789ab.
        data: The sequences, or the graph, in a file as for training; targets in it are not looked
            at.
        output: The CSV to write, in a folder that exists; it replaces a file that is there. -
            writes to standard output.
        batch_size: Sequences computed together, at least 1.

    Raises:
        ValueError: If the run or the data are damaged.
        FileNotFoundError: If the run, the data or the folder of the output are not there.
    """
    require(
        output.parent.is_dir(),
        "--output",
        str(output),
        "a file in an existing folder, or -",
        f"make the folder {output.parent} first or choose another",
        FileNotFoundError,
    )
    predictions = predict(run, data, batch_size)
    text = csv_text(predictions)
    if str(output) == "-":
        sys.stdout.write(text)
        return 0
    done = "replaced" if output.exists() else "wrote"
    write_atomically(output, text)
    print(f"{done} {output}: {len(predictions.values)} sequences")
    return 0


def csv_text(predictions: Predictions) -> str:
    """Predictions as CSV.

    The columns are ``index``, ``id`` where the file names its sequences, and ``prediction``; for
    classes also ``p_NAME``, the probability of each; for several values ``prediction_0``,
    ``prediction_1`` and so on; for predictions at every step ``step`` (from 0) before them.

    Args:
        predictions: What ``train.predict`` gave.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels, values, names = predictions.labels, predictions.values, predictions.class_names
    width = values[0].shape[-1] if len(values) else 1
    if labels is not None:
        columns = ["prediction", *(f"p_{name}" for name in names)]
    else:
        columns = ["prediction"] if width == 1 else [f"prediction_{k}" for k in range(width)]
    per_step = isinstance(values, list)
    ids = predictions.ids
    writer.writerow(
        ["index", *([] if ids is None else ["id"]), *(["step"] if per_step else []), *columns]
    )
    for index, found in enumerate(values):
        for step, row in enumerate(found if per_step else [found]):
            place = [index, *([] if ids is None else [ids[index]]), *([step] if per_step else [])]
            if labels is None:
                writer.writerow([*place, *(f"{value:.9g}" for value in row)])
            else:
                label = labels[index][step] if per_step else labels[index]
                writer.writerow([*place, label, *(f"{p:.6g}" for p in row)])
    return text.getvalue()
