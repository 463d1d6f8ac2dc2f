"""Argument checks that raise consistently worded errors, one function per kind.

Every message says what was expected, what was received and what to do, in this order.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import math
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints


def require(
    condition: bool,
    name: str,
    value: Any,
    expected: str,
    advice: str,
    error: type[Exception] = ValueError,
) -> None:
    """Raise an error about an argument unless a condition holds.

    Args:
        condition: Whether the argument is valid.
        name: The argument's name, as the user wrote it.
        value: The received value; a tensor is described by shape and dtype.
        expected: What it must be, e.g. "a number > 0".
        advice: What to do, e.g. "pass a positive step".
        error: The kind of error.

    Raises:
        ValueError: If the condition is false (or the given kind of error).

    Example:
        >>> require(False, "dt", -1.0, "a number > 0", "pass a positive step")
        Traceback (most recent call last):
            ...
        ValueError: dt must be a number > 0; got -1.0; pass a positive step.
    """
    if not condition:
        came = described(value) if is_tensor(value) else f"{value!r}"
        raise error(message(f"{name} must be {expected}", came, advice))


def message(expected: str, got: str, advice: str) -> str:
    """Return an error message: what was expected, what was received and what to do.

    Example:
        >>> message("dt must be > 0", "dt=-1.0", "pass a positive step")
        'dt must be > 0; got dt=-1.0; pass a positive step.'
    """
    return f"{expected}; got {got}; {advice}{'' if advice.endswith('?') else '.'}"


def text_of(path: Path, most: int = 64 << 20) -> str:
    """Return the text of a file of at most `most` bytes, such as the JSON beside a model.

    Raises:
        ValueError: If it is larger, is a pipe or device, or is not UTF-8 text.
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
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows add a byte order mark
    except UnicodeDecodeError as error:
        raise ValueError(message(f"{path} must be text in UTF-8", str(error), advice)) from error


def json_of(text: str) -> Any:
    """Read JSON and refuse NaN and infinity, which are not valid JSON.

    Raises:
        ValueError: If it is not JSON.
        RecursionError: If it is nested too deeply.

    Example:
        >>> json_of('{"a": [1, 2.5]}')
        {'a': [1, 2.5]}
    """

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not valid JSON")

    return json.loads(text, parse_constant=refuse)


def of_hints(kind: type, values: Mapping[str, Any], what: str, advice: str) -> None:
    """Check JSON values against the annotations of a class; numbers must be finite.

    Args:
        kind: The class.
        values: Values by annotation name.
        what: Their source, for the message.
        advice: What to do.

    Raises:
        ValueError: If one does not match.

    Example:
        >>> class Sizes:
        ...     names: tuple[str, ...]
        >>> of_hints(Sizes, {"names": "ab"}, "config.json", "restore it")
        Traceback (most recent call last):
            ...
        ValueError: names of config.json must be tuple[str, ...]; got 'ab' (str); restore it.
    """
    for name, hint in hints(kind).items():
        if name in values and not _is_of(values[name], hint):
            came = f"{values[name]!r:.200} ({type(values[name]).__name__})"
            expected = f"{name} of {what} must be {_in_words(hint)}"
            raise ValueError(message(expected, came, advice))


@functools.cache
def hints(kind: type) -> dict[str, Any]:
    """Return the annotations of a class by name."""
    return get_type_hints(kind)


def _in_words(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a JSON value matches an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin in (list, tuple):
        if not isinstance(value, list):
            return False
        if origin is tuple and parts[-1] is not Ellipsis:
            return len(value) == len(parts) and all(map(_is_of, value, parts))
        return all(_is_of(entry, parts[0]) for entry in value)
    if origin is dict:
        pairs = value.items() if isinstance(value, dict) else [(None, None)]
        return all(_is_of(k, parts[0]) and _is_of(v, parts[1]) for k, v in pairs)
    if parts:  # a union
        return any(_is_of(value, part) for part in parts)
    if isinstance(value, bool):
        return hint is bool
    if hint is float:
        return isinstance(value, float | int) and abs(value) <= sys.float_info.max
    return isinstance(value, hint)


def listed(words: Sequence[str], last: str = "and") -> str:
    """Join words with commas, the last one with "and" or another word.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return f" {last} ".join(", ".join(words).rsplit(", ", 1))


def flag(name: str) -> str:
    """Return the flag of an argument.

    Example:
        >>> flag("batch_size")
        '--batch-size'
    """
    return f"--{name.replace('_', '-')}"


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Check that ``value`` is one of ``allowed`` and return it; errors suggest the nearest.

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
    """Return the known name equal to ``name`` ignoring case; errors suggest the nearest.

    Example:
        >>> name_of("model", "lem", ("LEM", "LSTM"))
        'LEM'
    """
    by_lower = {k.lower(): k for k in known}
    if isinstance(name, str) and name.lower() in by_lower:
        return by_lower[name.lower()]
    return choice(kind, name, by_lower.values())


def levels_to_caller(*inside: str) -> int:
    """Return the `stacklevel` of a warning that points outside modules with these prefixes."""
    frame = inspect.currentframe()
    frame, level = frame and frame.f_back, 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
        level += 1
    return level


def positive_int(name: str, value: Any) -> int:
    """Check for an integer of at least 1 and return it."""
    too_large = isinstance(value, int) and value >= 2**63
    return _whole(name, value, 1, 2**63, "an int in [1, 2**63)" if too_large else "an int >= 1")


def natural(name: str, value: Any) -> int:
    """Check for an integer in ``[0, 2**32)``, such as a seed, and return it."""
    return _whole(name, value, 0, 2**32, "an int in [0, 2**32)")


def _whole(name: str, value: Any, low: int, high: int, expected: str) -> int:
    """Check for an integer in ``[low, high)`` and return it."""
    value = as_python(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, expected, value, "pass a whole number")
    if not low <= value < high:
        advice = f"pass at least {low}" if value < low else "pass a smaller number"
        raise ValueError(message(f"{name} must be {expected}", f"{name}={value}", advice))
    return value


def as_python(value: Any) -> Any:
    """Return a number of NumPy, as in the grid of a search, as one of Python."""
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value


def wrong_type(name: str, expected: str, value: Any, advice: str = "pass one") -> TypeError:
    """Return the error for a value of the wrong type.

    Example:
        >>> str(wrong_type("out", "a path", 3))
        'out must be a path; got out=3 (int); pass one.'
    """
    came = f"{name}={value!r} ({type(value).__name__})"
    return TypeError(message(f"{name} must be {expected}", came, advice))


def distinct(name: str, values: Sequence[Any]) -> None:
    """Refuse a list with duplicates.

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
    """Check for a finite real number in an interval and return it as float.

    Args:
        name: The argument's name, as the user wrote it.
        value: The received value.
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
    within = f"a finite number in {left}{low:g}, {high:g}{right}"
    value = as_python(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type(name, within, value, "pass a plain number")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int beyond the largest float
        finite = False
    inside = (value > low if low_open else value >= low) and (
        value < high if high_open else value <= high
    )
    if not finite or not inside:
        advice = "choose a value inside the interval"
        raise ValueError(message(f"{name} must be {within}", f"{name}={value!r}", advice))
    return float(value)


def probability(name: str, value: float) -> float:
    """Check for a number in [0, 1) and return it."""
    return number(name, value, low=0.0, high=1.0, high_open=True)


def boolean(name: str, value: Any) -> bool:
    """Check for True or False and return it."""
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value, "pass a bool")
    return value


def missing_extra(package: str, extra: str, purpose: str = "this") -> ImportError:
    """Return the error for a missing package that belongs to an extra.

    Args:
        package: Name of the package for installation.
        extra: The extra that includes it, e.g. "train".
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
    """Return the error for a command of the package anharmonic-papers.

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


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def described(tensor: Any) -> str:
    """Describe a value: shape and dtype of a tensor, otherwise the type.

    Example:
        >>> import torch
        >>> described(torch.zeros(2, 3))
        'shape [2, 3], torch.float32'
    """
    if is_tensor(tensor):
        return f"shape {list(tensor.shape)}, {tensor.dtype}"
    return type(tensor).__name__
