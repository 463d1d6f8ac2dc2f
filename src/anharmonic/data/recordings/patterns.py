"""Regular expressions of the user, which must not run for ever."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from anharmonic._checks import message

_SECONDS = 5.0
"""Of the processor, after which a pattern is given up; names of a folder take less than 1."""


def found_by(pattern: str, names: Sequence[str], option: str) -> list[str]:
    """Find a pattern in names: its first group, or all that fits; "" where nothing does.

    Some patterns try more ways than anyone can wait for. They are given up, except in other threads
    than the first and on Windows, where nothing interrupts them.

    Example:
        >>> found_by("([a-z]+)_", ["ann_0.wav", "1.wav"], "label_pattern")
        ['ann', '']
    """
    known, found = re.compile(pattern), []
    with _limited(pattern, option):
        for name in names:
            match = known.search(name)
            group = 1 if known.groups else 0
            found.append("" if match is None else match[group] or "")
    return found


@contextmanager
def _limited(pattern: str, option: str) -> Iterator[None]:
    """Ends a block after some of the processor's time."""
    first = threading.current_thread() is threading.main_thread()
    if not first or not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*arguments: Any) -> None:
        advice = "leave out repetitions of what repeats itself, such as (a+)+"
        raise ValueError(message(f"{option} must be done in {_SECONDS:g} s", repr(pattern), advice))

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
