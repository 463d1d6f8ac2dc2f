"""``anharmonic export RUN``: write a trained model as a program without PyTorch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from anharmonic._checks import message, require
from anharmonic.cli.flags import run_command
from anharmonic.data.base import counted
from anharmonic.data.metrics import shown_metric
from anharmonic.diagnostics.machine import torch_settings
from anharmonic.export import write_c, write_onnx, write_torch
from anharmonic.export.integers import integer_scores
from anharmonic.train.run import RunEnvironment


def run(words: Sequence[str]) -> int:
    """Run ``anharmonic export`` with these arguments and return the exit code."""
    return run_command(export, words, "anharmonic export")


def export(
    run: Positional[Path],
    c: Path | None = None,
    onnx: Path | None = None,
    torch: Path | None = None,
    portable: bool = False,
    weights: Literal["float", "int16", "int8"] = "float",
    data: Path | None = None,
    evaluate: bool = False,
    lut: bool = False,
    name: str = "model",
    threads: int | None = None,
) -> int:
    """Write a trained model as C, ONNX or a torch.export program.

    Args:
        run: Folder of a finished run, such as runs/file-LEM-0123456789ab.
        c: Write C99 files into this folder. model.h and model.c are the model, model_test.c checks
            them.
        name: Prefix of C files, functions and constants. A program with several models needs a
            different one for each.
        weights: Type of the numbers in C. "int16" and "int8" use integer arithmetic.
        data: File or folder as for training, to calibrate integers.
        evaluate: Also print the test score of the integer program. The score of the trained model
            is printed beside it. --data must be the training file.
        onnx: Write an ONNX file, for any batch and length. Inputs are samples as in your file,
            outputs probabilities or values.
        torch: Write a torch.export file, for any batch and length. Inputs and outputs are those of
            ONNX.
        portable: Let the torch file load with PyTorch alone. It is then slower.
        threads: CPU threads of --evaluate. Default: PyTorch's choice.
        lut: Read tanh and sigmoid in C from a table. It has 256 entries and needs no math.h.

    Raises:
        ValueError: If no format is given, or the model cannot be written in it.
        FileNotFoundError: If the folder has no finished run.
    """
    # One flag per format, with the folder or file to write.
    asked = any(form is not None for form in (c, onnx, torch))
    require(
        asked,
        "formats",
        "none",
        "at least one of --c, --onnx and --torch",
        "say where to, e.g. --onnx model.onnx",
    )
    options = (
        ("--weights", weights != "float", "--c", c),
        ("--data", data is not None, "--c", c),
        ("--evaluate", evaluate, "--c", c),
        ("--lut", lut, "--c", c),
        ("--name", name != "model", "--c", c),
        ("--portable", portable, "--torch", torch),
    )
    for option, given, form, place in options:
        fits, expected = place is not None or not given, f"left out without {form}"
        require(fits, option, f"no {form}", expected, f"say where to with {form}")
    expected = "left out without --evaluate"
    require(evaluate or threads is None, "--threads", threads, expected, "leave it out")
    if c is not None:
        fits, advice = weights != "float" or data is None, "add --weights int8, or leave it out"
        require(fits, "--data", str(data), "left out for --weights float", advice)
        fits, advice = weights != "float" or not evaluate, "run `anharmonic predict --evaluate`"
        require(fits, "--evaluate", True, "left out for --weights float", advice)
        if weights != "float" and data is None:
            expected = f"--weights {weights} needs --data, a file to calibrate integers on"
            raise ValueError(message(expected, "no --data", "give the training data's file"))
        scores = None
        if evaluate and data is not None:
            with torch_settings("cpu", RunEnvironment(threads=threads).threads):
                scores = integer_scores(run, data, weights)
        calibration = data if scores is None else scores.program
        files = write_c(run, c, weights=weights, calibration=calibration, lut=lut, name=name)
        print(f"wrote {', '.join(map(str, files))}")
        if scores is not None:
            integers, model = (
                shown_metric(one.metric, scores.metric, one.entries)
                for one in (scores.integers, scores.trained)
            )
            print(
                f"test {scores.metric}: {weights} {integers}, trained model {model} "
                f"({counted(scores.trained.entries, 'answer')})"
            )
        here = shlex.quote(str(c))
        print(f"check: cd {here} && cc -std=c99 -O2 {name}.c {name}_test.c -lm -o check && ./check")
    if onnx is not None:
        print(f"wrote {write_onnx(run, onnx)}")
    if torch is not None:
        print(f"wrote {write_torch(run, torch, portable=portable)}")
    return 0
