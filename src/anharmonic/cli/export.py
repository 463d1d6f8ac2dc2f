"""``anharmonic export RUN``: a trained model as a program that needs no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from anharmonic._checks import require
from anharmonic.cli.flags import run_command
from anharmonic.export import write_c, write_onnx, write_torch


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after ``anharmonic export``.

    Returns:
        The exit code.
    """
    return run_command(export, words, "anharmonic export")


def export(
    run: Positional[Path],
    c: Path | None = None,
    onnx: Path | None = None,
    torch: Path | None = None,
    portable: bool = False,
    weights: Literal["float", "int16", "int8"] = "float",
    data: Path | None = None,
    lut: bool = False,
) -> int:
    """Writes a trained model as a program that needs no PyTorch.

    Args:
        run: The folder of a finished run, e.g. runs/file-LEM-0123456789ab.
        c: A folder for the model as C99: model.h and model.c, and model_test.c, which checks them.
        weights: In C, "int16" or "int8" compute in whole numbers.
        data: A file as for training, on which whole numbers are calibrated.
        onnx: A file for the model as ONNX, for any batch and length: samples as in your file in,
            probabilities or values out.
        torch: A file for the model as torch.export, likewise.
        portable: The torch file needs PyTorch alone to be loaded, and is slower.
        lut: In C, reads tanh and sigmoid from a table of 256 entries, without math.h.

    Raises:
        ValueError: If no form is asked for, or the model has none in it.
        FileNotFoundError: If there is no finished run.
    """
    # One flag for each form, each with the folder or file that it is written to.
    asked = any(form is not None for form in (c, onnx, torch))
    require(
        asked, "form", None, "one of --c, --onnx, --torch", "say where to, e.g. --onnx model.onnx"
    )
    if c is not None:
        fits, advice = weights == "float" or data is not None, "give the training data's file"
        require(fits, "--data", None, f"a file to calibrate --weights {weights} on", advice)
        files = write_c(run, c, weights=weights, calibration=data, lut=lut)
        print(f"wrote {', '.join(map(str, files))}")
        print(f"check: cd {c} && cc -std=c99 -O2 model.c model_test.c -lm -o check && ./check")
    if onnx is not None:
        print(f"wrote {write_onnx(run, onnx)}")
    if torch is not None:
        print(f"wrote {write_torch(run, torch, portable=portable)}")
    return 0
