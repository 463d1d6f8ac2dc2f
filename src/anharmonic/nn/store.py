"""Saving models: safetensors and a JSON of constructor arguments, no pickle.

A saved model is a folder with ``config.json`` (class name, package version, arguments) and
``model.safetensors``; it can be uploaded to a model hub as it is.
"""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import secrets
import shutil
import warnings
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from anharmonic import _checks, _plugins
from anharmonic._files import write_atomically
from anharmonic._version import __version__
from anharmonic.nn.registry import STORED_CLASSES, constructor_arguments

CONFIG = "config.json"
WEIGHTS = "model.safetensors"

_Self = TypeVar("_Self", bound="Stored")


class _Config:
    """The contents of ``config.json``."""

    model: str
    anharmonic: str
    arguments: dict[str, Any]


class Stored(nn.Module):
    """A module that stores its constructor arguments as attributes with JSON values."""

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments by name, without device and dtype."""
        names = constructor_arguments(type(self))
        return {n: getattr(self, n) for n in names if n not in ("device", "dtype")}

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the model; see ``anharmonic.save_pretrained``."""
        save_pretrained(self, folder)

    @classmethod
    def from_pretrained(cls: type[_Self], folder: str | Path) -> _Self:
        """Load a saved model of this class; see ``anharmonic.from_pretrained``.

        Raises:
            ValueError: If the folder holds a model of another class.
        """
        model = from_pretrained(folder)
        if not isinstance(model, cls):
            raise ValueError(
                _checks.message(
                    f"{folder} must hold a {cls.__name__}",
                    f"a {type(model).__name__}",
                    "call anharmonic.from_pretrained, which takes any model of this package",
                )
            )
        return model


def repr_of(module: Stored) -> str:
    """Return the sizes and every constructor argument that differs from its default."""
    parameters = constructor_arguments(type(module))
    parts = []
    try:
        config = module.config()
    except AttributeError:  # a user's own layer need not store its arguments
        config = {name: getattr(module, name) for name in parameters if hasattr(module, name)}
    for name, value in config.items():
        if parameters[name].default is inspect.Parameter.empty:
            parts.append(f"{value}")
        elif value != parameters[name].default:
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)


def stored_class(name: str) -> type[Stored]:
    """Return the class that a saved model names: a model or a part of one."""
    added = {name: group for group in _plugins.MODELS for name in _plugins.names(group)}
    _checks.choice("model", name, [*STORED_CLASSES, *added])
    found: type[Stored]
    if name in STORED_CLASSES:
        found = pkgutil.resolve_name(STORED_CLASSES[name])
    else:
        found = _plugins.load(added[name], name)
    return found


def save_pretrained(model: nn.Module, folder: str | Path) -> None:
    """Save a model of this package as a folder, atomically.

    An existing saved model in that folder is replaced.

    Args:
        model: Any layer, cell or ``SequenceModel`` of this package.
        folder: Target folder; missing parents are created.

    Raises:
        TypeError: If the model is not of this package.
        ValueError: If the folder exists and does not hold a saved model.

    Example:
        >>> import anharmonic as ah, tempfile
        >>> place = tempfile.mkdtemp() + "/lem"
        >>> ah.save_pretrained(ah.LEM(6, 32, dt=0.5), place)
        >>> ah.from_pretrained(place)
        LEM(6, 32, dt=0.5)
    """
    if not _is_stored(model):
        own = getattr(model, "_own", None)
        kind = type(model) if own is None else own
        raise TypeError(
            _checks.message(
                "model must be made of classes of this package or of a plugin, which their names "
                "find again",
                f"{kind.__module__}.{kind.__name__}",
                "save other modules with torch.save(model.state_dict(), ...)",
            )
        )
    folder = Path(folder)
    others = _other_files(folder)
    if others:
        raise ValueError(
            _checks.message(
                "folder must be new or hold a saved model and nothing else",
                f"{folder}, which {others}",
                "choose another folder",
            )
        )
    assert isinstance(model, Stored)
    config = {
        "model": type(model).__name__,
        "anharmonic": __version__,
        "arguments": model.config(),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(os.path.realpath(folder))
    temporary = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    temporary.mkdir()
    try:
        state = {k: v.detach().contiguous().cpu() for k, v in model.state_dict().items()}
        write_atomically(temporary / WEIGHTS, save(state, metadata={"format": "pt"}))
        text = json.dumps(config, indent=2, default=_json_value)
        write_atomically(temporary / CONFIG, f"{text}\n")
        _replace(folder, temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _json_value(value: Any) -> Any:
    """Return an argument that is a number of NumPy as one of Python."""
    plain = _checks.as_python(value)
    if plain is value:
        raise _checks.wrong_type("an argument", "a JSON value", value)
    return plain


def _is_stored(model: Any) -> bool:
    """Whether the name of a model's class refers to that class."""
    if getattr(model, "_own", None) is not None:  # a readout on a layer that is not registered
        return False
    try:
        return stored_class(type(model).__name__) is type(model)
    except ValueError:
        return False


def _other_files(folder: Path) -> str:
    """Describe what is in the target folder if it is not a saved model."""
    if not folder.exists():
        return ""
    if not folder.is_dir():
        return "is a file"
    names = sorted(set(os.listdir(folder)) - {CONFIG, WEIGHTS})
    return f"holds other files ({', '.join(names[:3])})" if names else ""


def _replace(folder: Path, new: Path) -> None:
    """Replace an old folder by a new one; restore the old one if that fails."""
    if not folder.exists():
        new.rename(folder)
        return
    old = new.with_name(new.name + "-old")
    folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old)


def from_pretrained(folder: str | Path) -> Any:
    """Build the model saved in a folder and load its weights (on the CPU, in their dtype).

    Args:
        folder: A folder written by ``save_pretrained``.

    Returns:
        The model, with its original class, in training mode like a new model.

    Example:
        >>> import anharmonic as ah, tempfile
        >>> place = tempfile.mkdtemp() + "/cell"
        >>> ah.save_pretrained(ah.CoRNNCell(2, 3), place)
        >>> ah.from_pretrained(place)
        CoRNNCell(2, 3)

    Raises:
        FileNotFoundError: If the folder or one of its two files is missing.
        ValueError: If a file is corrupt, the class is unknown, or weights and arguments disagree.
    """
    folder = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                _checks.message(
                    f"{folder} must hold {CONFIG} and {WEIGHTS}",
                    f"no {name} there",
                    f"pass {folder / 'best'}"
                    if (folder / "best" / CONFIG).is_file()
                    else "pass the folder that save_pretrained wrote",
                )
            )
    try:
        config = _checks.json_of(_checks.text_of(folder / CONFIG))
        _checks.of_hints(_Config, config, CONFIG, "restore it")
        name, arguments = config["model"], config["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            _checks.message(
                f"{folder / CONFIG} must be JSON with the keys model and arguments",
                f"{type(error).__name__}: {error}",
                "save the model again or get the folder again",
            )
        ) from error
    kind = stored_class(name)
    try:
        weights = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ValueError(
            _checks.message(
                f"{folder / WEIGHTS} must be a whole safetensors file",
                f"{type(error).__name__}: {error}",
                "save the model again or get the folder again",
            )
        ) from error
    # Batch norms count their batches with an integer buffer.
    real = (v.dtype for v in weights.values() if v.is_floating_point())
    dtype = next(real, torch.float32)
    try:
        _compare(kind, arguments, weights, dtype)
        model = kind(**arguments, dtype=dtype)
        model.load_state_dict(weights)
    except (TypeError, RuntimeError, MemoryError) as error:
        raise ValueError(
            _checks.message(
                f"{folder} must hold arguments and weights of one {name}",
                str(error).replace("\n", " "),
                "use the version of anharmonic that saved it "
                f"({config.get('anharmonic', 'unknown')}) or save it again",
            )
        ) from error
    return model


def _compare(
    kind: type[Stored], arguments: dict[str, Any], weights: dict[str, Tensor], dtype: torch.dtype
) -> None:
    """Compare names, shapes and dtypes of weights with those of a model on the meta device.

    Raises:
        TypeError: If they differ.
    """
    if not isinstance(arguments, dict):
        raise TypeError(f"arguments are {type(arguments).__name__} and no object")
    for name in ("device", "dtype"):
        if name in arguments:
            raise TypeError(f"{name} is not a saved argument")
    layers = arguments.get("num_layers")
    # (Layers may share weights; building each on the meta device takes time.)
    if isinstance(layers, int) and layers > 10_000 and layers > len(weights):
        raise TypeError(f"num_layers is {layers} by the arguments, for {len(weights)} weights")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shown when the model itself is built
        expected = kind(**arguments, dtype=dtype, device="meta").state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        built, stored = (
            f"{value.dtype} {list(value.shape)}" if (value := of.get(name)) is not None else "none"
            for of in (expected, weights)
        )
        if built != stored:
            raise TypeError(f"{name} is {built} by the arguments and {stored} in the weights")
