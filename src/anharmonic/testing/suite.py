"""Run checks and format their failures, for all suites."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from anharmonic.nn.stability import StabilityWarning

Check = Callable[[], None]
"""A check; on failure it raises an ``AssertionError`` with the expected and received values."""


def prepared(check: Callable[[Any], None], subject: Any) -> Check:
    """Bind a check to a subject, with a separate random stream and errors as ``AssertionError``.

    Args:
        check: The check; the first line of its docstring states the expected property.
        subject: The argument of the check.

    Example:
        >>> def even(number):
        ...     "The number is even."
        ...     expect(number % 2 == 0, "an even number", number)
        >>> prepared(even, 3)()
        Traceback (most recent call last):
            ...
        AssertionError: The number is even. Expected an even number; got 3.
    """
    promise = (check.__doc__ or check.__name__).strip().splitlines()[0]

    def run() -> None:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)
            torch.manual_seed(0)
            try:
                check(subject)
            except AssertionError as error:
                raise AssertionError(f"{promise} {error}") from error
            except Exception as error:
                raise AssertionError(
                    f"{promise} Expected no error; got {type(error).__name__}: {error}"
                ) from error

    return run


class Suite:
    """The checks of one kind of subject, in the order of their definition.

    Example:
        >>> check = Suite()
        >>> @check()
        ... def even(number):
        ...     "The number is even."
        >>> [name for name, _ in check.of(4)]
        ['even']
    """

    def __init__(self) -> None:
        self._checks: dict[Callable[[Any], None], Callable[[Any], bool]] = {}

    def __call__(
        self, applies: Callable[[Any], bool] = lambda subject: True
    ) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
        """Add a check for the subjects to which it applies; for use as a decorator."""

        def add(check: Callable[[Any], None]) -> Callable[[Any], None]:
            self._checks[check] = applies
            return check

        return add

    def of(self, subject: Any) -> Iterator[tuple[str, Check]]:
        """Yield the name and callable of each check that applies to a subject."""
        for check, applies in self._checks.items():
            if applies(subject):
                yield check.__name__, prepared(check, subject)


def run_checks(checks: Iterable[tuple[str, Check]]) -> None:
    """Run all checks, then report every failed one.

    Example:
        >>> def fails():
        ...     raise AssertionError("Expected 1; got 2.")
        >>> run_checks([("one", fails), ("two", lambda: None)])
        Traceback (most recent call last):
            ...
        AssertionError: 1 of 2 checks failed:
        one: Expected 1; got 2.
    """
    failed, count = [], 0
    for name, check in checks:
        count += 1
        try:
            check()
        except AssertionError as error:
            failed.append(f"{name}: {error}")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {count} checks failed:", *failed]))


def expect(condition: bool, expected: str, got: Any) -> None:
    """Raise if a condition does not hold."""
    if not condition:
        raise AssertionError(f"Expected {expected}; got {got}.")


def expect_close(what: str, got: Any, expected: Any, rtol: float, atol: float) -> None:
    """Raise if tensors, or sequences of tensors, differ in values, shapes or dtypes."""

    def text(difference: str) -> str:
        return f"Expected the same values for {what}; got a difference: {difference}"

    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, msg=text)


def expect_gradients(run: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> None:
    """Raise if derivatives along a random direction are not those of finite differences."""
    try:
        torch.autograd.gradcheck(run, inputs, fast_mode=True, **options)
    except RuntimeError as error:
        text = f"Expected the gradients of finite differences; got {error}"
        raise AssertionError(text) from error


def expect_refusal(
    call: Callable[[], Any], what: str, *named: str, error: type[Exception] = ValueError
) -> None:
    """Raise if a call succeeds, or if its error message lacks one of the given parts."""
    try:
        call()
    except error as refusal:
        missing = [part for part in named if part not in str(refusal)]
        expect(not missing, f"a message about {what} that names {missing}", repr(str(refusal)))
    except Exception as other:
        came = f"{type(other).__name__}: {other}"
        raise AssertionError(f"Expected a {error.__name__} for {what}; got {came}.") from other
    else:
        raise AssertionError(f"Expected a {error.__name__} for {what}; got no error.")


def pickled(value: Any) -> Any:
    """Pickle and unpickle a value, with classes kept as they are so that local classes work.

    Example:
        >>> class Local:
        ...     pass
        >>> type(pickled(Local())) is Local
        True
    """
    classes: list[type] = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> int | None:
            if not isinstance(obj, type):
                return None
            classes.append(obj)
            return len(classes) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: int) -> type:
            return classes[pid]

    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    buffer.seek(0)
    return Unpickler(buffer).load()
