"""Argument checks: one small function per kind, all errors in one voice.

Every message has three parts in this order: what was expected, what came, what to do.
"""

from __future__ import annotations

import difflib
import math
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def require(
    condition: bool,
    name: str,
    value: Any,
    expected: str,
    advice: str,
    error: type[Exception] = ValueError,
) -> None:
    """Raises the error of an argument that is not what it must be.

    Args:
        condition: Whether it is.
        name: The argument, as the user wrote it.
        value: What came; a tensor is described by shape and dtype.
        expected: What it must be, e.g. "a number > 0".
        advice: What to do, e.g. "pass a positive step".
        error: The kind of error.

    Raises:
        ValueError: If the condition is false (or the kind of error that was asked for).

    Example:
        >>> require(False, "dt", -1.0, "a number > 0", "pass a positive step")
        Traceback (most recent call last):
            ...
        ValueError: dt must be a number > 0; got -1.0; pass a positive step.
    """
    if not condition:
        came = described(value) if isinstance(value, Tensor) else f"{value!r}"
        raise error(message(f"{name} must be {expected}", came, advice))


def message(expected: str, got: str, advice: str) -> str:
    """Builds what errors say: what was expected, what came and what to do.

    Example:
        >>> message("dt must be > 0", "dt=-1.0", "pass a positive step")
        'dt must be > 0; got dt=-1.0; pass a positive step.'
    """
    return f"{expected}; got {got}; {advice}."


def text_of(path: Path, most: int = 64 << 20) -> str:
    """The text of a file that is small where it is whole, such as JSON beside a model.

    Args:
        path: The file.
        most: How many bytes it may have.

    Raises:
        ValueError: If it has more, or is a pipe or a device.
        OSError: If it cannot be read.

    Example:
        >>> text_of(Path("/dev/null"), most=9)
        Traceback (most recent call last):
            ...
        ValueError: /dev/null must be a file of at most 9 bytes; got a pipe or device; restore it.
    """
    found = path.stat()
    advice = "restore it"
    expected = f"{path} must be a file of at most {most} bytes"
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise ValueError(message(expected, "a pipe or device", advice))
    if found.st_size > most:
        raise ValueError(message(expected, f"{found.st_size} bytes", advice))
    return path.read_text(encoding="utf-8")


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words in a row, the last one after "and" or another word.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return f" {last} ".join(", ".join(words).rsplit(", ", 1))


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Checks that ``value`` is one of ``allowed`` and returns it; else names the nearest.

    Raises:
        ValueError: If ``value`` is not in ``allowed``.

    Example:
        >>> choice("scheme", "implicit", ("explicit", "implicit"))
        'implicit'
    """
    known = list(allowed)
    if isinstance(value, str) and value in known:
        return value
    by_lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(str(value).lower(), by_lower, n=1, cutoff=0.57)
    hint = f"did you mean {by_lower[near[0]]!r}?" if near else "choose one of these names"
    listing = ", ".join(repr(k) for k in known)
    raise ValueError(f"{name} must be one of {listing}; got {value!r}; {hint}")


def name_of(kind: str, name: Any, known: Iterable[str]) -> str:
    """The known name that equals ``name`` but for upper and lower case; else names the nearest.

    Raises:
        ValueError: If there is none.

    Example:
        >>> name_of("model", "lem", ("LEM", "LSTM"))
        'LEM'
    """
    by_lower = {k.lower(): k for k in known}
    if isinstance(name, str) and name.lower() in by_lower:
        return by_lower[name.lower()]
    return choice(kind, name, by_lower.values())


def positive_int(name: str, value: Any) -> int:
    """Checks for an integer of at least 1 and returns it.

    Raises:
        TypeError: If ``value`` is not an integer.
        ValueError: If ``value`` is below 1.

    Example:
        >>> positive_int("hidden_size", 32)
        32
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(
            message(
                f"{name} must be an int >= 1",
                f"{name}={value!r} ({type(value).__name__})",
                "pass a whole number",
            )
        )
    if value < 1:
        raise ValueError(
            message(f"{name} must be an int >= 1", f"{name}={value}", "pass at least 1")
        )
    return value


def natural(name: str, value: Any) -> int:
    """Checks for an integer in ``[0, 2**32)``, as seeds are, and returns it.

    Raises:
        TypeError: If ``value`` is not an integer.
        ValueError: If ``value`` is outside.

    Example:
        >>> natural("seed", 7)
        7
    """
    expected = f"{name} must be an int in [0, 2**32)"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(
            message(expected, f"{name}={value!r} ({type(value).__name__})", "pass a whole number")
        )
    if not 0 <= value < 2**32:
        raise ValueError(
            message(expected, f"{name}={value}", "choose a number inside the interval")
        )
    return value


def distinct(name: str, values: Sequence[Any]) -> None:
    """Refuses a list that names something twice.

    Example:
        >>> distinct("seeds", (0, 1, 1))
        Traceback (most recent call last):
            ...
        ValueError: seeds must be different from each other; got 1 twice; leave the second one out.
    """
    for i, value in enumerate(values):
        if value in values[:i]:
            expected = f"{name} must be different from each other"
            raise ValueError(message(expected, f"{value!r} twice", "leave the second one out"))


def number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """Checks for a finite real number in an interval and returns it as float.

    Args:
        name: The argument's name, as the user wrote it.
        value: What came.
        low: Lower end of the allowed interval.
        high: Upper end of the allowed interval.
        low_open: Whether ``low`` itself is excluded.
        high_open: Whether ``high`` itself is excluded.

    Raises:
        TypeError: If ``value`` is not a number.
        ValueError: If ``value`` is not finite or outside the interval.

    Example:
        >>> number("dropout", 0.1, low=0.0, high=1.0)
        0.1
    """
    left = "(" if low_open or low == -math.inf else "["
    right = ")" if high_open or high == math.inf else "]"
    expected = f"{name} must be a finite number in {left}{low:g}, {high:g}{right}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            message(expected, f"{name}={value!r} ({type(value).__name__})", "pass a plain number")
        )
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int beyond the largest float
        finite = False
    inside = (value > low if low_open else value >= low) and (
        value < high if high_open else value <= high
    )
    if not finite or not inside:
        raise ValueError(
            message(expected, f"{name}={value!r}", "choose a value inside the interval")
        )
    return float(value)


def probability(name: str, value: float) -> float:
    """Checks for a number in [0, 1) and returns it.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is outside.

    Example:
        >>> probability("input_dropout", 0)
        0.0
    """
    return number(name, value, low=0.0, high=1.0, high_open=True)


def boolean(name: str, value: Any) -> bool:
    """Checks for True or False and returns it.

    Raises:
        TypeError: If ``value`` is neither.

    Example:
        >>> boolean("bias", True)
        True
    """
    if not isinstance(value, bool):
        raise TypeError(
            message(
                f"{name} must be True or False",
                f"{name}={value!r} ({type(value).__name__})",
                "pass a bool",
            )
        )
    return value


def missing_extra(package: str, extra: str, purpose: str = "this") -> ImportError:
    """Builds the error for a package that only one of the extras installs.

    Args:
        package: The package, as it is installed.
        extra: The extra that brings it, e.g. "train".
        purpose: What needs it, e.g. "training".

    Example:
        >>> str(missing_extra("tyro", "train", "training")).partition("; ")[0]
        'training needs the package tyro'
        >>> str(missing_extra("tyro", "train")).endswith('run: pip install "anharmonic[train]".')
        True
    """
    return ImportError(
        message(
            f"{purpose} needs the package {package}",
            "an environment without it",
            f'run: pip install "anharmonic[{extra}]"',
        )
    )


GET_PAPERS = "from a checkout of this repository run: pip install -e papers"


def missing_papers(command: str) -> ImportError:
    """Builds the error for a command that the package anharmonic-papers adds.

    Args:
        command: What was typed after ``anharmonic``.

    Example:
        >>> str(missing_papers("theory")).partition("; ")[0]
        '`anharmonic theory` needs the package anharmonic-papers'
    """
    return ImportError(
        message(
            f"`anharmonic {command}` needs the package anharmonic-papers",
            "an environment without it",
            GET_PAPERS,
        )
    )


def described(tensor: Any) -> str:
    """Says what came: shape and dtype of a tensor, else the type.

    Example:
        >>> described(torch.zeros(2, 3))
        'shape [2, 3], torch.float32'
    """
    if isinstance(tensor, Tensor):
        return f"shape {list(tensor.shape)}, {tensor.dtype}"
    return type(tensor).__name__


def tensor_like(name: str, value: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Checks that ``value`` is a tensor of the given dtype and device and returns it.

    Raises:
        TypeError: If it is no tensor or has another dtype.
        ValueError: If it is on another device.

    Example:
        >>> x = torch.zeros(1)
        >>> tensor_like("x", x, dtype=torch.float32, device=torch.device("cpu")) is x
        True
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            message(
                f"{name} must be a torch.Tensor",
                described(value),
                "convert it with torch.as_tensor",
            )
        )
    if value.dtype != dtype:
        raise TypeError(
            message(
                f"{name} must have the layer's dtype {dtype}",
                described(value),
                f"call {name}.to({dtype})"
                + (f" or layer.to({value.dtype})" if value.is_floating_point() else ""),
            )
        )
    if value.device != device:
        raise ValueError(
            message(
                f"{name} must be on the layer's device {device}",
                f"{name} on {value.device}",
                f"call {name}.to({str(device)!r})",
            )
        )
    return value


def has_shape(name: str, value: Tensor, shape: tuple[int, ...], advice: str) -> None:
    """Checks the shape of a tensor.

    Raises:
        ValueError: If it is another one.

    Example:
        >>> has_shape("y0", torch.zeros(2, 3), (2, 3), "its sizes are batch, hidden")
    """
    if value.shape != shape:
        raise ValueError(message(f"{name} must have shape {list(shape)}", described(value), advice))


def has_dtype(name: str, value: Tensor, dtype: torch.dtype) -> None:
    """Checks the dtype of a weight against that of the input.

    Raises:
        TypeError: If it is another one.

    Example:
        >>> has_dtype("bias", torch.zeros(2), torch.float32)
    """
    if value.dtype is not dtype:
        expected, advice = f"{name} must be {dtype} as x is", "convert the layer with .to(dtype)"
        raise TypeError(message(expected, str(value.dtype), advice))


def no_nan(name: str, value: Tensor) -> None:
    """Refuses NaN in a CPU tensor; on other devices, and under transforms, it does not look.

    (Looking would make a GPU wait for every call; there a NaN shows in the loss. While compiling,
    and within ``torch.func`` transforms, there are no values to look at.)

    Raises:
        ValueError: If an entry is NaN.

    Example:
        >>> no_nan("x", torch.zeros(3))
    """
    if not has_values(value):
        return
    total = value.detach().sum().item()
    if total == total:
        return  # a sum without NaN has no NaN in it; one with may still be of opposite infinities
    count = int(value.detach().isnan().sum())
    if count:
        raise ValueError(
            message(
                f"{name} must not contain NaN",
                f"{count} NaN of {value.numel()} entries",
                "fill or remove missing values first, e.g. with torch.nan_to_num",
            )
        )


def nonnegative(name: str, value: Tensor) -> float:
    """Refuses negative and non-finite entries, where ``no_nan`` would look too.

    Returns:
        The largest entry; 0 if nobody looked.

    Raises:
        ValueError: If an entry is negative, NaN or infinite.

    Example:
        >>> nonnegative("elapsed", torch.ones(3))
        1.0
    """
    if not has_values(value):
        return 0.0
    if value.numel() == 0:
        return 0.0
    low, high = (float(end) for end in value.detach().aminmax())
    if not 0.0 <= low <= high < math.inf:
        raise ValueError(
            message(
                f"{name} must be finite and >= 0 everywhere",
                f"values from {low:g} to {high:g}",
                "give the time since the previous sample in nominal steps",
            )
        )
    return high


def has_values(value: Tensor) -> bool:
    """Whether looking at a tensor is possible and cheap."""
    if value.device.type != "cpu" or watched():
        return False
    functorch = torch._C._functorch
    while functorch.is_gradtrackingtensor(value):  # grad within vmap
        value = functorch.get_unwrapped(value)
    return not functorch.is_batchedtensor(value)


def watched() -> bool:
    """Whether somebody records or replaces what operators do: a compiler, a tracer, a mode.

    Example:
        >>> watched()
        False
    """
    return bool(
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
    )
