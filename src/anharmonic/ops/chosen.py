"""What a ``with`` block chooses for everything within it, in this thread or task only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch


class Chosen:
    """A word that ``with`` blocks change.

    A compiler cannot see what is bound to a thread: code under ``torch.compile`` follows the block
    that was entered or left last in any thread, and is compiled again when that changes.

    Args:
        name: For messages of Python.
        default: The word outside of all blocks.

    Example:
        >>> colour = Chosen("colour", "red")
        >>> with colour.within("blue"):
        ...     colour.word()
        'blue'
        >>> colour.word()
        'red'
    """

    def __init__(self, name: str, default: str) -> None:
        self._here: ContextVar[str] = ContextVar(name, default=default)
        self._latest = default

    @contextmanager
    def within(self, word: str) -> Iterator[None]:
        """A block in which the word holds."""
        token = self._here.set(word)
        self._latest = word
        try:
            yield
        finally:
            self._here.reset(token)
            self._latest = self._here.get()

    def word(self) -> str:
        """The word that holds here."""
        return self._latest if torch.compiler.is_compiling() else self._here.get()
