"""ONNX: recurrences as loops of the graph, for any length and batch, with states in and out."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path

import torch
from torch import nn

from anharmonic import _checks
from anharmonic.export.programs import Program, evaluated, program_of
from anharmonic.ops import use_backend
from anharmonic.ops.reference import as_scan
from anharmonic.train import write_atomically


def write_onnx(model: str | Path | nn.Module, path: str | Path, *, step: bool = False) -> Path:
    """Writes a model as ONNX, whole or not at all.

    Time and batch are dynamic. Inputs are ``x`` and, of a layer or a model that carries its state
    on, the initial state by the names of its variables (``y``, ``z``); outputs are ``output`` and
    the final state (``y_end``, ``z_end``). Two halves with the state carried over equal the whole.

    Args:
        model: A recurrent layer, a `SequenceModel`, or the folder of a finished run. Of a run the
            samples go in as they are in its file (NaN in gaps; times between samples, if it reads
            them, as ``elapsed`` [batch, steps]), and probabilities of classes, or values in their
            units, come out; the names of the classes are in the file's metadata (``class_names``).
            Where it cuts recordings, one window goes in at a time.
        path: The ``.onnx`` file, in a folder that exists; it replaces a file that is there.
        step: Of a layer: one time step, ``x`` [B, F], instead of a sequence.

    Returns:
        The path.

    Raises:
        ImportError: If onnx or onnxscript is missing.
        TypeError: If the model is of another kind.
        ValueError: If it has no such form: PyTorch's own layers, whose export fixes the batch.

    Example:
        >>> import anharmonic as ah
        >>> write_onnx(ah.LEM(2, 4), "lem.onnx")  # doctest: +SKIP
        PosixPath('lem.onnx')
    """
    path = Path(path)
    where, advice = str(path.parent), "make the folder first"
    _checks.require(
        path.parent.is_dir(), "the file's folder", where, "there", advice, FileNotFoundError
    )
    program, names = program_of(model, step)
    _export(program, path, names)
    return path


def _export(program: Program, path: Path, class_names: tuple[str, ...]) -> None:
    try:
        import onnx
        import onnx_ir
        import onnxscript  # noqa: F401  (PyTorch's exporter needs it)
    except ImportError as error:
        raise _checks.missing_extra("onnxscript", "onnx", "an export to ONNX") from error
    arguments, shapes = program.example()
    variables = program.variables
    with (
        torch.no_grad(),
        evaluated(program),
        use_backend("reference"),
        as_scan(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        made = torch.onnx.export(
            program,
            arguments,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(program.inputs),
            output_names=["output", *(f"{name}_end" for name in variables)],
            verbose=False,
        )
    assert made is not None
    if class_names:
        made.model.metadata_props["class_names"] = json.dumps(class_names)
    content = io.BytesIO()
    onnx.save(onnx_ir.to_proto(made.model), content)
    write_atomically(path, content.getvalue())
