"""One long text, read in columns side by side, window by window."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from anharmonic._checks import natural, positive_int, require
from anharmonic.data.base import Loaders, Readout, Splits, Target, Task
from anharmonic.data.dataset import Batch, Batches, Dataset


class TokenStream(Dataset[Batch]):
    """A text in memory, to predict its next words or characters.

    For a batch of B the text is cut into B columns of equal length, read side by side; batch k is
    the k-th window of all columns and goes on where batch k - 1 ended. What does not fill the last
    column, fewer than B words, is left out.

    Args:
        tokens: Numbers of words or characters, integers `[N]`, N >= 2.
        window: Steps of a batch, at least 1; the last one of a text may be shorter.

    Example:
        >>> import torch
        >>> batches = TokenStream(torch.arange(10), window=2).batches(2)
        >>> [batch.x.tolist() for batch in batches]
        [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
        >>> batches[0].y.tolist()
        [[1, 2], [5, 6]]
    """

    def __init__(self, tokens: Tensor, window: int) -> None:
        fits, expected = tokens.dim() == 1 and len(tokens) >= 2, "[N] of two words or more"
        require(fits, "tokens", tokens, expected, "give one long text")
        self.tokens = tokens
        self.window = positive_int("window", window)

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, indices: Tensor) -> Batch:
        """One batch of the words `indices`, each a sequence of one step."""
        return Batch(self.tokens[indices, None].long(), self.tokens[indices + 1, None].long(), None)

    def batches(self, batch_size: int, order: Tensor | None = None) -> Batches[Batch]:
        """Cut the text into windows of `batch_size` columns, always in its own order.

        Args:
            batch_size: Columns, at least 1; fewer where the text is shorter.
            order: None; a text has no other.
        """
        require(order is None, "order", order, "None for a text", "leave it out")
        columns = min(positive_int("batch_size", batch_size), len(self) - 1)
        steps = (len(self) - 1) // columns
        x = self.tokens[: columns * steps].view(columns, steps)
        y = self.tokens[1 : columns * steps + 1].view(columns, steps)

        def make(index: int) -> Batch:
            part = slice(index * self.window, (index + 1) * self.window)
            return Batch(x[:, part].long(), y[:, part].long(), None)

        return Batches(-(-steps // self.window), make)


class StreamTask(Task):
    """A language model: predict the next word or character at every step of one long text.

    Training reads the text as `TokenStream` says, with the batch size as number of columns; the
    state is carried from window to window, gradients end at each, and every epoch begins with
    zeros (truncated backpropagation through time). Validation and test texts are read in
    `eval_columns`, whatever the batch size. ``sizes`` counts words or characters.

    A subclass sets `input_size` and `output_size`, both the size of the vocabulary, `sizes`,
    `window` and `reading`, and reads the three texts.

    Example:
        >>> StreamTask.carries_state
        True
    """

    target: Target = "class"
    readout: Readout = "all"
    tokens: ClassVar[bool] = True
    carries_state: ClassVar[bool] = True
    noun: ClassVar[str] = "word"
    eval_columns: ClassVar[int] = 10
    window: int

    @abstractmethod
    def _texts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Read the texts for training, validation and test, integers `[N]` each."""

    def _build(self) -> Splits[TokenStream]:
        return Splits(*(TokenStream(text, self.window) for text in self._texts()))

    def _extent(self, parts: str) -> list[str]:
        return [f"{sum(self.sizes.values())} {self.noun}s ({parts})", f"windows of {self.window}"]

    def loaders(self, seed: int, batch_size: int) -> Loaders[Any]:
        """Windows for training, validation and test.

        Args:
            seed: In `[0, 2**32)`; the order of a text does not depend on it.
            batch_size: Columns in which the training text is read, at least 1.

        Raises:
            TypeError: If an argument is not an integer.
            ValueError: If an argument is out of range.
        """
        natural("seed", seed)
        positive_int("batch_size", batch_size)
        splits: Any = self.splits()
        return Loaders(
            lambda epoch: splits.train.batches(batch_size),
            splits.valid.batches(self.eval_columns),
            splits.test.batches(self.eval_columns),
        )
