"""Dataclasses from JSON, strictly: unknown keys and wrong types are errors that name the key."""

from __future__ import annotations

import difflib
import functools
import json
from typing import Any, TypeVar

from anharmonic import _checks

T = TypeVar("T")


def structure_json(cls: type[T], text: str, what: str) -> T:
    """Builds a dataclass from the text of a JSON object.

    Args:
        cls: The dataclass.
        text: The JSON.
        what: What the text is, for error messages, e.g. "a run's JSON".

    Raises:
        ValueError: If the text is no JSON object, has unknown keys, lacks keys or has wrong types.
        ImportError: If cattrs is missing.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: float
        >>> structure_json(Point, '{"x": 1.5}', "a point")
        Point(x=1.5)
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            _checks.message(f"{what} must be JSON", str(error), "correct the text at that place")
        ) from error
    if not isinstance(values, dict):
        raise ValueError(
            _checks.message(
                f"{what} must be a JSON object", type(values).__name__, "put it in braces"
            )
        )
    converter = _converter()
    from cattrs import ClassValidationError

    try:
        built: T = converter.structure(values, cls)
        return built
    except ClassValidationError as error:
        reasons = "; ".join(_reasons(error, ""))
        raise ValueError(
            _checks.message(
                f"{what} must hold the fields of {cls.__name__}", reasons, "correct these keys"
            )
        ) from error


@functools.cache
def _converter() -> Any:
    try:
        from cattrs import Converter
    except ImportError as error:
        raise _checks.missing_extra("cattrs", "train", "training") from error
    converter = Converter(forbid_extra_keys=True)
    # cattrs by itself would call int("3") or bool("no"); here a wrong type is an error.
    for kind, accepted in ((bool, bool), (int, int), (float, int | float), (str, str)):
        converter.register_structure_hook(kind, functools.partial(_strict, accepted=accepted))
    return converter


def _strict(value: Any, kind: type, accepted: Any) -> Any:
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"must be {kind.__name__}, not {value!r} ({type(value).__name__})")
    return value


def _reasons(error: BaseException, path: str) -> list[str]:
    """Flattens cattrs' tree of errors to one line per key."""
    from cattrs import ForbiddenExtraKeysError

    if isinstance(error, BaseExceptionGroup):
        return [line for child in error.exceptions for line in _reasons(child, _at(child, path))]
    if isinstance(error, ForbiddenExtraKeysError):
        known = list(getattr(error.cl, "__dataclass_fields__", {}))
        return [
            f"unknown key {path + key!r}{_near(key, known)}" for key in sorted(error.extra_fields)
        ]
    if isinstance(error, KeyError):
        return [f"no key {path + str(error.args[0])!r}"]
    return [f"{path.rstrip('.')} {error}" if path else str(error)]


def _at(error: BaseException, path: str) -> str:
    from cattrs import AttributeValidationNote

    for note in getattr(error, "__notes__", []):
        if isinstance(note, AttributeValidationNote) and not isinstance(error, KeyError):
            return f"{path}{note.name}."
    return path


def _near(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else f" (known: {', '.join(known)})"
