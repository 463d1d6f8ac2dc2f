"""``anharmonic predict RUN DATA``: a trained model's predictions for a file, as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anharmonic._checks import message
from anharmonic.cli.options import field_options, parse, short_usage

if TYPE_CHECKING:
    from anharmonic.train.predict import Predictions

PROG = "anharmonic predict"


@dataclass(frozen=True)
class Predict:
    """How to predict."""

    output: Path = Path("predictions.csv")
    """The CSV to write, in a folder that exists; - writes to standard output."""
    batch_size: int = 256
    """Sequences computed together, at least 1."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic predict``.

    Returns:
        The exit code.

    Raises:
        ValueError: If the words do not fit.
        FileNotFoundError: If the run or the data are not there.
    """
    from anharmonic.train.files import write_atomically
    from anharmonic.train.predict import predict

    example = f"{PROG} runs/file-LEM-0123456789ab new.npz --output predictions.csv"
    if not words:
        return short_usage(
            f"usage: {PROG} RUN DATA [OPTIONS]", f"for example: {example}", f"see {PROG} --help"
        )
    count = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    if count != 2 and not set(words) & {"-h", "--help"}:
        raise ValueError(
            message(
                f"{PROG} takes a run's folder and a data file first",
                " ".join(words) or "nothing",
                f"for example {example}",
            )
        )
    values = parse(
        words[count:],
        {"predict": field_options(Predict)},
        PROG,
        "Writes a trained model's predictions for an .npz or .ts file as CSV.",
        "RUN DATA",
    )
    output: Path = values["output"]
    if str(output) != "-" and not output.parent.is_dir():
        raise FileNotFoundError(
            message(
                "--output must be a file in an existing folder, or -",
                f"{output}, and there is no folder {output.parent}",
                "make the folder first or choose another",
            )
        )
    predictions = predict(Path(words[0]), Path(words[1]), values["batch_size"])
    text = csv_text(predictions)
    if str(output) == "-":
        sys.stdout.write(text)
        return 0
    write_atomically(output, text)
    print(f"wrote {output}: {len(predictions.values)} sequences")
    return 0


def csv_text(predictions: Predictions) -> str:
    """Predictions as CSV.

    The columns are ``index`` and ``prediction``; for classes also ``p_NAME``, the probability of
    each; for several values ``prediction_0``, ``prediction_1`` and so on; for predictions at every
    step ``step`` (from 0) after ``index``.

    Args:
        predictions: What ``training.predict`` gave.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if predictions.labels is not None:
        writer.writerow(["index", "prediction", *(f"p_{n}" for n in predictions.class_names)])
        for index, (label, row) in enumerate(
            zip(predictions.labels, predictions.values, strict=True)
        ):
            writer.writerow([index, label, *(f"{p:.6g}" for p in row)])
        return text.getvalue()
    per_step = isinstance(predictions.values, list)
    width = predictions.values[0].shape[-1] if len(predictions.values) else 1
    names = ["prediction"] if width == 1 else [f"prediction_{k}" for k in range(width)]
    writer.writerow(["index", *(["step"] if per_step else []), *names])
    for index, row in enumerate(predictions.values):
        if not per_step:
            writer.writerow([index, *(f"{v:.9g}" for v in row)])
            continue
        for step, values in enumerate(row):
            writer.writerow([index, step, *(f"{v:.9g}" for v in values)])
    return text.getvalue()
