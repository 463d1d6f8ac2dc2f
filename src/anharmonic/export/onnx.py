"""ONNX: recurrences as loops of the graph, for any length and batch, with states in and out."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.sequence.base import SequenceLayer
from anharmonic.ops import use_backend
from anharmonic.ops.recurrence import as_scan
from anharmonic.train import trained, write_atomically

_TORCH_LAYERS = ("RNN", "LSTM", "GRU", "ChronoLSTM")


def write_onnx(model: str | Path | nn.Module, path: str | Path, *, step: bool = False) -> Path:
    """Writes a model as ONNX, whole or not at all.

    Time and batch are dynamic. Inputs are ``x`` and, of a layer or a model that carries its state
    on, the initial state by the names of its variables (``y``, ``z``); outputs are ``output`` and
    the final state (``y_end``, ``z_end``). Two halves with the state carried over equal the whole.

    Args:
        model: A recurrent layer, a `SequenceModel`, or the folder of a finished run. Of a run the
            samples go in as they are in its file, and probabilities of classes, or values in their
            units, come out; the names of the classes are in the file's metadata (``class_names``).
        path: The ``.onnx`` file, in a folder that exists; it replaces a file that is there.
        step: Of a layer: one time step, ``x`` [B, F], instead of a sequence.

    Returns:
        The path.

    Raises:
        ImportError: If onnx or onnxscript is missing.
        TypeError: If the model is of another kind.
        ValueError: If it has no such form: PyTorch's own layers, whose export fixes the batch, and
            runs whose preparation of samples is more than scaling and differences.

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
    names: tuple[str, ...] = ()
    program: _Layer | _Model | _Run
    if isinstance(model, (str, Path)):
        program, names = _of_run(Path(model))
        _check_layer(program.model.layer)
    elif isinstance(model, SequenceModel):
        _check_layer(model.layer)
        program = _Model(model)
    elif isinstance(model, SequenceLayer):
        program = _Layer(model, step)
    else:
        _check_layer(model)
        advice = "pass a recurrent layer, a SequenceModel or the folder of a run"
        text = _checks.message("model must be one for sequences", type(model).__name__, advice)
        raise TypeError(text)
    fits = not step or isinstance(model, SequenceLayer)
    _checks.require(fits, "step", step, "False but for a layer", "pass model.layer")
    _export(program.eval(), path, names)
    return path


def _check_layer(layer: nn.Module) -> None:
    kind, advice = type(layer).__name__, "export it with torch.onnx.export, for a fixed batch"
    known = kind not in _TORCH_LAYERS
    _checks.require(known, "the model's layer", kind, "none of torch.nn", advice)


class _Layer(nn.Module):
    """A layer, or one of its steps, with plain tensors for its state."""

    def __init__(self, layer: SequenceLayer, step: bool) -> None:
        super().__init__()
        self.layer, self.one = layer, step

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        before = self.layer.state_type(*state)
        if self.one:
            output, after = self.layer.step(x, before)
        else:
            output, after = self.layer(x, before)
        return output, *after

    def example(self) -> tuple[tuple[Tensor, ...], tuple[dict[int, Any], ...]]:
        """Arguments, and which of their dimensions are dynamic."""
        layer, free = self.layer, torch.export.Dim.DYNAMIC
        dtype = next(layer.parameters()).dtype
        x = torch.randn(5, 5, layer.input_size, dtype=dtype)
        with torch.no_grad():
            state = tuple(torch.zeros_like(part) for part in layer(x)[1])
        free_x = {0: free} if self.one else {0: free, 1: free}
        return (x[0] if self.one else x, *state), (free_x, *({1: free} for _ in state))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the state's parts."""
        return tuple(self.layer.state_type._fields)


class _Model(nn.Module):
    """A model, with its state where it can be carried on."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.model = model
        one_way = not getattr(model.layer, "bidirectional", False)
        self.carries = one_way and model.patch == 1 and model.readout != "mean"

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        if not self.carries:
            return (self.model(x),)
        before = self.model.layer.state_type(*state)
        output, after = self.model(x, state=before, return_state=True)
        return output, *after

    def example(self) -> tuple[tuple[Tensor, ...], tuple[dict[int, Any], ...]]:
        """Arguments, and which of their dimensions are dynamic."""
        model, free = self.model, torch.export.Dim.DYNAMIC
        if model.embedding_size is None:
            weight = next(model.parameters())
            x = weight.new_empty(5, 6 * model.patch, model.input_size).normal_()
        else:
            x = torch.zeros(5, 6, dtype=torch.int64)
        state: tuple[Tensor, ...] = ()
        if self.carries:
            with torch.no_grad():
                state = tuple(torch.zeros_like(s) for s in model(x, return_state=True)[1])
        return (x, *state), ({0: free, 1: free}, *({1: free} for _ in state))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the state's parts."""
        return tuple(self.model.layer.state_type._fields) if self.carries else ()


class _Run(nn.Module):
    """A run's model between its samples as they come and what its outputs mean."""

    variables = ()

    def __init__(self, model: SequenceModel, prepared: Preprocessing, classes: bool) -> None:
        super().__init__()
        self.model, self.classes = model, classes
        scaled = prepared.standardise
        ones, size = [1.0] * len(prepared.mean), model.output_size
        self.mean = nn.Buffer(torch.tensor(prepared.mean if scaled else [0.0] * len(ones)))
        self.std = nn.Buffer(torch.tensor(prepared.std if scaled else ones))
        self.change = nn.Buffer(torch.tensor(prepared.difference)) if prepared.difference else None
        self.shift = nn.Buffer(torch.tensor(prepared.target_shift or [0.0] * size))
        self.scale = nn.Buffer(torch.tensor(prepared.target_scale or [1.0] * size))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        x = (x - self.mean) / self.std
        if self.change is not None:
            change = torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:] - x[:, :-1]], dim=1)
            x = torch.cat([x, change / self.change], dim=-1)
        output = self.model(x)
        return (output.softmax(-1) if self.classes else output * self.scale + self.shift,)

    def example(self) -> tuple[tuple[Tensor, ...], tuple[dict[int, Any], ...]]:
        """Arguments, and which of their dimensions are dynamic."""
        free = torch.export.Dim.DYNAMIC
        return (torch.randn(5, 6 * self.model.patch, len(self.mean)),), ({0: free, 1: free},)


def _of_run(folder: Path) -> tuple[_Run, tuple[str, ...]]:
    run = trained(folder)
    prepared = run.preparation
    done = {
        "gaps are filled": prepared.missing != "error",
        "times between samples count": prepared.elapsed != "ignore",
        "sequences are scaled one by one": bool(prepared.level_scale),
        "recordings are cut": bool(prepared.window or prepared.horizon),
    }
    found = [what for what, is_so in done.items() if is_so]
    advice = "prepare the samples yourself and export the model: from_pretrained(folder / 'best')"
    expected = "scaled and differenced only"
    _checks.require(not found, "samples of the run", ", ".join(found), expected, advice)
    return _Run(run.model, prepared, bool(run.class_names)), tuple(run.class_names)


def _export(program: Any, path: Path, class_names: tuple[str, ...]) -> None:
    try:
        import onnx
        import onnx_ir
        import onnxscript  # noqa: F401  (PyTorch's exporter needs it)
    except ImportError as error:
        raise _checks.missing_extra("onnxscript", "onnx", "an export to ONNX") from error
    arguments, free = program.example()
    variables = program.variables
    shapes = (free[0], free[1:]) if variables else (free[0],)
    with torch.no_grad(), use_backend("reference"), as_scan(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.onnx.export(
            program,
            arguments,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=["x", *variables],
            output_names=["output", *(f"{name}_end" for name in variables)],
            verbose=False,
        )
    assert made is not None
    if class_names:
        made.model.metadata_props["class_names"] = json.dumps(class_names)
    content = io.BytesIO()
    onnx.save(onnx_ir.to_proto(made.model), content)
    write_atomically(path, content.getvalue())
