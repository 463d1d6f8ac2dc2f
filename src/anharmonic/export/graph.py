"""Export to ONNX and torch.export, with any length and batch size, and states in and out."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export.plan import parts_of
from anharmonic.export.prepared import Prepared
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.resonators.model import Resonators
from anharmonic.ops import use_backend
from anharmonic.ops.backend import available_backends
from anharmonic.ops.reference import as_scan
from anharmonic.train import trained, write_atomically

if TYPE_CHECKING:
    from anharmonic.estimators import SequenceClassifier, SequenceForecaster, SequenceRegressor

    Estimator = SequenceClassifier | SequenceRegressor | SequenceForecaster

# Layers that run as a single operator of the C library.
_OPERATORS = {"LEM": "lem", "CoRNN": "cornn", "UnICORNN": "unicornn"}


def write_onnx(
    model: str | Path | nn.Module | Estimator, path: str | Path, *, step: bool = False
) -> Path:
    """Write a model as ONNX, atomically.

    Time and batch are dynamic. The input is ``x``; the output is ``output``. Layers, and models
    that can carry a state, also take the initial state by its variables' names (``y``, ``z``) and
    return the final state (``y_end``, ``z_end``). Two halves with the state carried over equal the
    whole.

    Args:
        model: A recurrent layer, a `SequenceModel`, the folder of a finished run, or a fitted
            `SequenceClassifier`, `SequenceRegressor` or `SequenceForecaster`. The program of a run
            or estimator takes raw samples as in its training data (NaN in gaps; times between
            samples, if used, as ``elapsed`` [batch, steps]). It returns class probabilities, or
            values in their units. The class names are in the file's metadata (``class_names``). For
            recordings cut into windows, pass one window at a time.
        path: The ``.onnx`` file, in an existing folder; an existing file is replaced.
        step: Whether to export one time step of a layer, with ``x`` [B, F], instead of a sequence.

    Returns:
        The path.

    Raises:
        ImportError: If onnx or onnxscript is missing.
        TypeError: If the model is of another type.
        ValueError: If the model has no such form, such as PyTorch's own layers, whose export fixes
            the batch size.

    Example:
        >>> import anharmonic as ah
        >>> write_onnx(ah.LEM(2, 4), "lem.onnx")  # doctest: +SKIP
        PosixPath('lem.onnx')
    """
    path = _in_a_folder(path)
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
    with _exporting(program, portable=True):
        made = torch.onnx.export(
            program,
            arguments,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(program.inputs),
            output_names=["output", *(f"{name}_end" for name in program.variables)],
            verbose=False,
        )
    assert made is not None
    if class_names:
        made.model.metadata_props["class_names"] = json.dumps(class_names)
    content = io.BytesIO()
    onnx.save(onnx_ir.to_proto(made.model), content)
    write_atomically(path, content.getvalue())


def write_torch(
    model: str | Path | nn.Module | Estimator,
    path: str | Path,
    *,
    step: bool = False,
    portable: bool = False,
) -> Path:
    """Write a model as a program of ``torch.export``, atomically.

    Time and batch are dynamic and unbounded (with patches, sequences must be longer than one step).
    Arguments and results are those of `write_onnx`. Load the file in one of two ways:

    - ``import anharmonic.ops`` and ``torch.export.load(path).module()``: LEM, CoRNN and
      UnICORNN run in the C library, as fast as the model itself; or
    - ``torch.export.load(path).module()`` alone, if it is portable or of another layer: then
      recurrences are loops (``scan``) of PyTorch's own operators, which is many times slower.

    Args:
        model: As in `write_onnx`.
        path: The ``.pt2`` file, in an existing folder; an existing file is replaced.
        step: Whether to export one time step of a layer, with ``x`` [B, F], instead of a sequence.
        portable: Whether the program must run with PyTorch alone.

    Returns:
        The path.

    Raises:
        TypeError: If the model is of another type.
        ValueError: If the model has no such form, such as PyTorch's own layers, whose export fixes
            the length.

    Example:
        >>> import anharmonic as ah, tempfile, torch
        >>> path = write_torch(ah.LEM(2, 4), tempfile.mkdtemp() + "/lem.pt2")
        >>> x, y, z = torch.ones(300, 1, 2), torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
        >>> output, y_end, z_end = torch.export.load(path).module()(x, y, z)
        >>> output.shape
        torch.Size([300, 1, 4])
    """
    path = _in_a_folder(path)
    program, _ = program_of(model, step)
    arguments, shapes = program.example()
    operator = _OPERATORS.get(type(program.recurrent).__name__)
    if operator is None or "native" not in available_backends(operator):
        portable = True
    with _exporting(program, portable):
        made = torch.export.export(program, arguments, dynamic_shapes=shapes)
        content = io.BytesIO()
        torch.export.save(made, content)
    write_atomically(path, content.getvalue())
    return path


@contextlib.contextmanager
def _exporting(program: nn.Module, portable: bool) -> Iterator[None]:
    """Set what an export needs; a portable one uses PyTorch's own operators alone."""
    with contextlib.ExitStack() as within:
        within.enter_context(torch.no_grad())
        within.enter_context(evaluated(program))
        within.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if portable:
            within.enter_context(use_backend("reference"))
            within.enter_context(as_scan())
        yield


def _in_a_folder(path: str | Path) -> Path:
    path, advice = Path(path), "make the folder first"
    there, where = path.parent.is_dir(), str(path.parent)
    _checks.require(there, "the file's folder", where, "there", advice, FileNotFoundError)
    return path


class Program(nn.Module):
    """A model whose arguments and results are plain tensors.

    Attributes:
        variables: Names of the state's parts; empty without a state.
        inputs: Names of the arguments.
    """

    variables: tuple[str, ...] = ()
    inputs: tuple[str, ...]

    def example(self) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """Return example arguments, and which of their dimensions are dynamic."""
        raise NotImplementedError  # every form has its own

    @property
    def recurrent(self) -> nn.Module:
        """Return the recurrent layer."""
        owner: Any = getattr(self, "model", self)
        layer: nn.Module = owner.layer
        return layer


class LayerProgram(Program):
    """A layer, or one step of it, with plain tensors as its state."""

    def __init__(self, layer: Any, step: bool) -> None:
        super().__init__()
        self.layer, self.one = layer, step
        self.variables = tuple(layer.state_type._fields)
        self.inputs = ("x", *self.variables)

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Return the output and the parts of the final state."""
        before = self.layer.state_type(*state)
        if self.one:
            output, after = self.layer.step(x, before)
        else:
            output, after = self.layer(x, before)
        return output, *after

    def example(self) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """See ``Program``."""
        layer, free = self.layer, torch.export.Dim.DYNAMIC
        dtype = next(layer.parameters()).dtype
        x = torch.randn(5, 5, layer.input_size, dtype=dtype)
        with torch.no_grad(), evaluated(self):
            state = tuple(torch.zeros_like(part) for part in layer(x)[1])
        free_x = {0: free} if self.one else {0: free, 1: free}
        return (x[0] if self.one else x, *state), (free_x, tuple({1: free} for _ in state))


class ModelProgram(Program):
    """A model, with its state if the model can carry one."""

    def __init__(self, model: SequenceModel) -> None:
        super().__init__()
        self.model = model
        one_way = not getattr(model.layer, "bidirectional", False)
        self.carries = one_way and model.patch == 1 and model.readout != "mean"
        self.variables = tuple(model.layer.state_type._fields) if self.carries else ()
        self.inputs = ("x", *self.variables)

    def forward(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """Return the prediction, and the parts of the final state if the model carries one."""
        if not self.carries:
            return (self.model(x),)
        before = self.model.layer.state_type(*state)
        output, after = self.model(x, state=before, return_state=True)
        return output, *after

    def example(self) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """See ``Program``."""
        model, free = self.model, torch.export.Dim.DYNAMIC
        if model.embedding_size is None:
            weight = next(model.parameters())
            x = weight.new_empty(5, 6 * model.patch, model.input_size).normal_()
        else:
            x = torch.zeros(5, 6, dtype=torch.int64)
        state: tuple[Tensor, ...] = ()
        if self.carries:
            with torch.no_grad(), evaluated(self):
                state = tuple(torch.zeros_like(s) for s in model(x, return_state=True)[1])
        free_state = (tuple({1: free} for _ in state),) if state else ()
        return (x, *state), ({0: free, 1: free}, *free_state)


class RunProgram(Program):
    """A run's model from raw samples to probabilities or values."""

    def __init__(self, model: SequenceModel, prepared: Preprocessing, target: str) -> None:
        super().__init__()
        self.model, self.target = model, target
        self.prepared = Prepared(prepared)
        self.inputs = ("x",) if prepared.elapsed == "ignore" else ("x", "elapsed")
        size = model.output_size
        repeated = (prepared.horizon or 1) * max(1, len(prepared.quantiles))
        self.shift = nn.Buffer(torch.tensor(prepared.target_shift or [0.0] * size))
        scale = list(prepared.target_scale) * repeated
        self.scale = nn.Buffer(torch.tensor(scale or [1.0] * size))

    def forward(self, x: Tensor, elapsed: Tensor | None = None) -> tuple[Tensor]:
        """Return probabilities, or values in their units, of raw samples."""
        how = self.prepared.how
        steps = None if elapsed is None else self.prepared.steps(elapsed)
        output = self.model(
            self.prepared(x, steps), elapsed=steps if how.elapsed == "step" else None
        )
        if self.target == "class":
            return (output.softmax(-1),)
        if self.target == "labels":
            return (output.sigmoid(),)
        if how.horizon:
            times = self.scale.shape[0] // len(how.forecast)
            found = output * self.scale + self.prepared.last_known(x).repeat(1, times)
            if how.quantiles:
                shape = (-1, len(how.quantiles), how.horizon * len(how.forecast))
                found = found.reshape(shape).sort(1).values.flatten(1)
            return (found,)
        return (output * self.scale + self.shift,)

    def example(self) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """See ``Program``."""
        free, how = torch.export.Dim.DYNAMIC, self.prepared.how
        x = torch.randn(5, 6 * self.model.patch, len(how.mean))
        given = (x,) if how.elapsed == "ignore" else (x, torch.ones(x.shape[:2]))
        return given, tuple({0: free, 1: free} for _ in given)


@contextlib.contextmanager
def evaluated(program: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode within a block, then restore the modes of its parts."""
    training = [part for part in program.modules() if part.training]
    program.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def program_of(
    model: str | Path | nn.Module | Estimator, step: bool
) -> tuple[Program, tuple[str, ...]]:
    """Return a model as a program, and the names of its classes.

    Args:
        model: A layer, a `SequenceModel`, the folder of a run or a trained estimator.
        step: Whether to export one time step of a layer.
    """
    fits = not step or hasattr(model, "state_type")
    _checks.require(fits, "step", step, "False, except for a layer", "pass model.layer")
    program: Program
    names: tuple[str, ...] = ()
    if isinstance(model, (str, Path)):
        run = trained(model)
        fits, kind = isinstance(run.model, SequenceModel), type(run.model).__name__
        advice = "pass anharmonic.from_pretrained('RUN_FOLDER/best') to torch.export.export"
        advice = "export it as C: --c FOLDER" if isinstance(run.model, Resonators) else advice
        _checks.require(fits, "the model of the run", kind, "a SequenceModel", advice)
        program = RunProgram(run.model, run.preparation, run.target)
        names = tuple(run.class_names)
    elif (parts := parts_of(model)) is not None:
        net, preparation, classes, target = parts
        program, names = RunProgram(net, preparation, target), classes
    elif isinstance(model, SequenceModel):
        program = ModelProgram(model)
    elif isinstance(model, nn.Module) and hasattr(model, "state_type"):
        program = LayerProgram(model, step)
    else:
        advice = "pass a recurrent layer, a SequenceModel or the folder of a run"
        text = _checks.message("model must be one for sequences", type(model).__name__, advice)
        raise TypeError(text)
    own = not isinstance(program.recurrent, nn.RNNBase)
    kind = type(program.recurrent).__name__
    advice = "train LEM, or export LSTM and GRU with write_c (--c)"
    expected = "a layer of anharmonic, as exports of torch.nn's layers fix batch or length"
    _checks.require(own, "the model's layer", kind, expected, advice)
    return program, names
