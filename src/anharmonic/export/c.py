"""Export of a trained model as a self-contained pair of C files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic import _checks
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export.c_program import (
    check_program,
    fixed_program,
    float_program,
    resonator_program,
)
from anharmonic.export.integers import checked_sequences, integer_model, one_sequence
from anharmonic.export.plan import Plan, parts_of, plan
from anharmonic.export.write import Program, write_sources
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.resonators.model import Resonators
from anharmonic.train import trained

if TYPE_CHECKING:
    from anharmonic.estimators import (
        ResonatorClassifier,
        ResonatorRegressor,
        SequenceClassifier,
        SequenceForecaster,
        SequenceRegressor,
    )
    from anharmonic.export.fixed_model import FixedModel
    from anharmonic.export.resonators import ResonatorPlan

Floats = NDArray[np.float32]
_EXAMPLES, _STEPS = 3, 50
HEADERS = {
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits",
    "locale", "math", "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef",
    "stdint", "stdio", "stdlib", "stdnoreturn", "string", "tgmath", "threads", "time", "uchar",
    "wchar", "wctype",
}  # fmt: skip
WEIGHTS = ("float", "int16", "int8")


def write_c(
    model: SequenceModel
    | Resonators
    | ResonatorClassifier
    | ResonatorRegressor
    | SequenceClassifier
    | SequenceRegressor
    | SequenceForecaster
    | str
    | Path,
    folder: str | Path,
    *,
    preparation: Preprocessing | None = None,
    class_names: Sequence[str] = (),
    weights: str = "float",
    calibration: Sequence[NDArray[Any]] | str | Path | FixedModel | None = None,
    lut: bool = False,
    examples: Sequence[NDArray[Any]] | None = None,
    name: str = "model",
) -> list[Path]:
    """Write a model as C99: ``model.h``, ``model.c`` and a check, ``model_test.c``.

    The program takes raw samples and prepares them as in training. It allocates no memory, keeps
    its state in a struct of the caller, and needs only ``math.h`` of the C library. Compile with
    ``-DMODEL_DOUBLE`` for double precision. The check compares it with PyTorch in float64: ``cc
    model.c model_test.c -lm && ./a.out``.

    Args:
        model: Folder of a finished run, a model, or a fitted estimator (the softmax of its scores
            is ``predict_proba``). With uneven sampling, a sample ends with the time since the
            previous one.
        folder: Target folder; created if missing. Files of an earlier export are replaced.
        preparation: Preprocessing of the inputs in training; that of a run's folder or estimator is
            known.
        class_names: Names of the classes; those of a run's folder or estimator are known.
        weights: "float", "int16" or "int8". With "int16" and "int8" the whole program uses integer
            arithmetic. The check is then bit for bit, with the same arithmetic in NumPy instead of
            PyTorch. Resonators and LEM without multiscale support "float" only.
        calibration: For integers, representative sequences that determine the ranges of all
            variables; for a run's folder also a data file as in training, or the program of
            `anharmonic.export.integers.integer_scores`.
        lut: Whether to read tanh and sigmoid from a table of 256 entries (errors up to 1e-4)
            instead of using ``math.h``. Integer programs always do.
        examples: Sequences for the check; None draws random ones similar to the training data.
        name: Prefix of files, functions and constants. "gait" gives ``gait.c``, ``gait_step``,
            ``GAIT_CHANNELS`` and ``-DGAIT_DOUBLE``, so a program may contain several models.

    Returns:
        The files.

    Shape:
        examples and calibration [T, C] each, raw (not preprocessed).

    Raises:
        FileNotFoundError: If the folder has no finished run.
        FileExistsError: If the folder holds a file of these names that no export has written.
        ValueError: If the model cannot be exported: a bidirectional model, an embedding, resonators
            with scaling "series", or a layer that has no C form.
        TypeError: If it is not a model of this kind.

    Example:
        >>> import anharmonic as ah, tempfile
        >>> model = ah.SequenceModel("LEM", 6, 5, hidden_size=16)
        >>> [path.name for path in write_c(model, tempfile.mkdtemp())]
        ['model.h', 'model.c', 'model_test.c']
    """
    _checks.choice("weights", weights, WEIGHTS)
    _checks.require(
        re.fullmatch("[a-z][a-z0-9_]{0,30}", name) is not None and name not in HEADERS,
        "name",
        name,
        "up to 31 lower-case letters, digits and underscores, a letter first, and no header of C",
        "choose a short one, such as 'gait'",
    )
    if not isinstance(model, torch.nn.Module) or isinstance(model, Resonators):
        for option, given in (("preparation", preparation), ("class_names", tuple(class_names))):
            wanted, advice = "left out, as only a SequenceModel needs it", "leave it out"
            _checks.require(not given, option, given, wanted, advice)
    run = trained(model) if isinstance(model, str | Path) else None
    if _is_estimator(model) or isinstance(model if run is None else run.model, Resonators):
        return _write_resonators(run or model, folder, weights, lut, examples, name)
    fits, advice = weights == "float" or calibration is not None, "give some of the training data"
    wanted = f"sequences to calibrate weights={weights!r} on"
    _checks.require(fits, "calibration", None, wanted, advice)
    net: Any = model
    names, target = tuple(class_names), "class" if len(class_names) else ""
    if run is not None:
        net, preparation, names, target = run.model, run.preparation, run.output_names, run.target
    elif (parts := parts_of(model)) is not None:
        net, preparation, names, target = parts
    found = plan(net, preparation, names, target)
    examples = _examples(examples, found)
    if weights != "float":
        wanted = "False for integers, which always use a table"
        _checks.require(not lut, "--lut (lut)", lut, wanted, "leave it out")
        columns = None if run is None else run.columns
        fixed = integer_model(net, found, weights, calibration, columns)
        samples = [fixed.samples(x) for x in examples]
        expected = np.concatenate([fixed.outputs(x[None]) for x in samples])
        check = check_program(True, samples, expected)
        return write_sources(fixed_program(fixed).sources(check, name), folder)
    check = _float_check(lambda x, dtype: expected_outputs(net, found, x, dtype), examples, lut)
    return write_sources(float_program(found, lut).sources(check, name), folder)


def _float_check(
    outputs: Callable[[NDArray[Any], torch.dtype], NDArray[Any]],
    examples: Sequence[NDArray[Any]],
    lut: bool = False,
) -> Program:
    """Return the check of a model in floating point.

    A program in float may deviate from the float64 outputs ten times as much as float32 does.
    """
    exact, single = (
        np.stack([outputs(x, dtype) for x in examples]) for dtype in (torch.float64, torch.float32)
    )
    apart = float((np.abs(single - exact) / np.maximum(np.abs(exact), 1)).max())
    return check_program(
        False,
        [np.asarray(x, np.float32) for x in examples],
        exact,
        DOUBLE_TOLERANCE=2e-2 if lut else 1e-6,
        SINGLE_TOLERANCE=2e-2 if lut else max(1e-3, 10 * apart),
    )


def _is_estimator(model: Any) -> bool:
    """Whether it is an estimator on resonators, by class name, as scikit-learn may be missing."""
    known = ("anharmonic.estimators.resonators", "_Linear")
    return any((kind.__module__, kind.__name__) == known for kind in type(model).__mro__)


def _write_resonators(
    model: Any,
    folder: str | Path,
    weights: str,
    lut: bool,
    examples: Sequence[Any] | None,
    name: str,
) -> list[Path]:
    from anharmonic.export.resonators import resonator_outputs, resonator_plan

    expected = "'float' for resonators, which have no form in integers"
    advice = "leave it out, or train a network for int8"
    _checks.require(weights == "float", "--weights (weights)", weights, expected, advice)
    expected = "False for resonators, which call sqrt alone"
    _checks.require(not lut, "--lut (lut)", lut, expected, "leave it out")
    found = resonator_plan(model)
    examples = _examples(examples, found)
    check = _float_check(lambda x, dtype: resonator_outputs(found, x, dtype), examples)
    return write_sources(resonator_program(found).sources(check, name), folder)


def _examples(given: Sequence[NDArray[Any]] | None, plan: Plan | ResonatorPlan) -> list[Floats]:
    """Return the sequences of the check in float32, in which its file holds them."""
    if given is None:
        return drawn_examples(plan)
    _checks.require(len(given) > 0, "examples", 0, "at least one sequence", "leave them out")
    return [np.asarray(x, np.float32) for x in checked_sequences("examples", given, plan.channels)]


def drawn_examples(plan: Plan | ResonatorPlan) -> list[Floats]:
    """Return random sequences as noisy as the training data, with gaps if allowed.

    Shape:
        [T, C] each.
    """
    rng = np.random.default_rng(0)
    p, found = plan.preparation, []
    for n in range(_EXAMPLES):
        x = rng.normal(p.mean, np.nan_to_num(p.std, nan=1.0), (_STEPS - n, len(p.mean)))
        if p.missing != "error":
            x[rng.random(x.shape) < 0.1] = np.nan
        if p.elapsed != "ignore":
            times = p.nominal * rng.uniform(0, 2, len(x))
            times[0] = 0
            x = np.column_stack([x, times])
        found.append(x.astype(np.float32))
    return found


def expected_outputs(
    model: SequenceModel, plan: Plan, x: NDArray[Any], dtype: torch.dtype = torch.float64
) -> NDArray[np.float64]:
    """Return PyTorch's outputs for a sequence, in the units of the targets.

    Shape:
        x [T, C]; result [O], at the last step for readout "all".
    """
    p, part = plan.preparation, one_sequence(plan.preparation, x)
    prepared = torch.from_numpy(p.transform(part)).to(dtype)
    steps = None
    if p.elapsed == "step":
        gaps = np.asarray(part.elapsed, np.float64) / p.nominal
        gaps[0] = gaps[0] or 1.0
        steps = torch.from_numpy(gaps).to(dtype)[None]
    copy = type(model)(**model.config(), dtype=dtype)
    copy.load_state_dict(model.state_dict())
    with torch.no_grad():
        out = copy.eval()(prepared[None], elapsed=steps)[0]
    last = out[-1] if plan.readout == "all" else out
    found = plan.shift + plan.scale * last.double().numpy()
    if p.horizon:
        known = p.last_known(part, p.forecast)[0]
        found = (found.reshape(-1, len(known)) + known).ravel()
    if p.quantiles:
        found = np.sort(found.reshape(len(p.quantiles), -1), axis=0).ravel()
    return np.asarray(found)
