"""torch.export: a model as one file that PyTorch loads without the code of the model."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import torch
from torch import nn

from anharmonic import _checks
from anharmonic.export.programs import evaluated, program_of
from anharmonic.ops import use_backend
from anharmonic.ops.backend import available_backends
from anharmonic.ops.reference import as_scan
from anharmonic.train import write_atomically

# Layers that run as one operator of the C library.
_OPERATORS = {"LEM": "lem", "CoRNN": "cornn", "UnICORNN": "unicornn"}


def write_torch(
    model: str | Path | nn.Module, path: str | Path, *, step: bool = False, portable: bool = False
) -> Path:
    """Writes a model as a program of ``torch.export``, whole or not at all.

    Time and batch are dynamic, without bounds (with patches: sequences longer than one). Arguments
    and results are those of `write_onnx`.
    Load it with

    - ``import anharmonic`` and ``torch.export.load(path).module()``: LEM, CoRNN and UnICORNN run in
      the C library, as fast as the model itself; or
    - ``torch.export.load(path).module()`` alone, if it is portable or of another layer: then
      recurrences are loops (``scan``) of PyTorch's own operators, which is many times slower.

    Args:
        model: A recurrent layer, a `SequenceModel`, or the folder of a finished run.
        path: The ``.pt2`` file, in a folder that exists; it replaces a file that is there.
        step: Of a layer: one time step, ``x`` [B, F], instead of a sequence.
        portable: Whether the program needs PyTorch alone.

    Returns:
        The path.

    Raises:
        TypeError: If the model is of another kind.
        ValueError: If it has no such form: PyTorch's own layers, whose export fixes the length.

    Example:
        >>> import anharmonic as ah, tempfile, torch
        >>> path = write_torch(ah.LEM(2, 4), tempfile.mkdtemp() + "/lem.pt2")
        >>> x, y, z = torch.ones(300, 1, 2), torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
        >>> output, y_end, z_end = torch.export.load(path).module()(x, y, z)
        >>> output.shape
        torch.Size([300, 1, 4])
    """
    path = Path(path)
    where, advice = str(path.parent), "make the folder first"
    _checks.require(
        path.parent.is_dir(), "the file's folder", where, "there", advice, FileNotFoundError
    )
    program, _ = program_of(model, step)
    arguments, shapes = program.example()
    operator = _OPERATORS.get(type(program.recurrent).__name__)
    if operator is None or "native" not in available_backends(operator):
        portable = True
    with contextlib.ExitStack() as within:
        within.enter_context(torch.no_grad())
        within.enter_context(evaluated(program))
        within.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if portable:
            within.enter_context(use_backend("reference"))
            within.enter_context(as_scan())
        made = torch.export.export(program, arguments, dynamic_shapes=shapes)
        content = io.BytesIO()
        torch.export.save(made, content)
    write_atomically(path, content.getvalue())
    return path
