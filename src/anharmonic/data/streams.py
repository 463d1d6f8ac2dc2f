"""One long text, read in parallel columns and in windows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import Tensor

from anharmonic._checks import positive_int, require
from anharmonic.data.base import Loaders, Readout, Splits, Target, Task
from anharmonic.data.dataset import Batch, Batches, Dataset


class TokenStream(Dataset[Batch]):
    """A text in memory, for predicting the next token.

    For batch size B the text is cut into B columns of equal length, which are read in parallel.
    Batch k is the k-th window of all columns and continues batch k - 1. The rest of the text, fewer
    than B tokens, is dropped.

    Args:
        tokens: Token ids, integers `[N]`, N >= 2.
        window: Steps per batch, at least 1; the last batch of a text may be shorter.

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
        """Return a batch of the tokens `indices`, each as a sequence of one step."""
        return Batch(self.tokens[indices, None].long(), self.tokens[indices + 1, None].long(), None)

    def batches(self, batch_size: int, order: Tensor | None = None) -> Batches[Batch]:
        """Cut the text into windows of `batch_size` columns, always in text order.

        Args:
            batch_size: Number of columns, at least 1; fewer for a short text.
            order: Must be None; a text has a fixed order.
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
    """Language modelling: predict the next token at every step of one long text.

    Training reads the text as in `TokenStream`, with the batch size as number of columns. The state
    is carried from window to window without gradients and reset for each epoch (truncated
    backpropagation through time). Validation and test texts always have `eval_columns` columns.
    ``sizes`` counts tokens.

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
        """Return windows as `Task.loaders`; `batch_size` is the number of training columns."""
        splits: Any = self.splits()
        return (
            super()
            .loaders(seed, batch_size)
            ._replace(
                valid=splits.valid.batches(self.eval_columns),
                test=splits.test.batches(self.eval_columns),
            )
        )

    def _train_batches(self, seed: int, epoch: int, batch_size: int) -> Batches[Batch]:
        text: Any = self.splits().train
        made: Batches[Batch] = text.batches(batch_size)  # in its own order
        return made
