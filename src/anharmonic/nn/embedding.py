"""Token embeddings, and a readout that shares their weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anharmonic import _checks


class TokenEmbedding(nn.Embedding):
    r"""``torch.nn.Embedding`` that drops whole words while training.

    In every batch each word of the vocabulary is dropped with the same probability, at all its
    positions. The other vectors are scaled by :math:`1 / (1 - p)`.

    Args:
        num_embeddings: Size V of the vocabulary, at least 1.
        embedding_dim: Size E of a vector, at least 1.
        dropout: Probability in [0, 1) that a word is dropped.
        **factory: ``device`` and ``dtype``.

    Shape:
        tokens [B, T] integers in [0, V); result [B, T, E].

    Example:
        >>> TokenEmbedding(100, 8)(torch.tensor([[3, 99, 3]])).shape
        torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        dropout: float = 0.0,
        **factory: Any,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, **factory)
        self.dropout = _checks.probability("embedding_dropout", dropout)

    def load(self, vectors: Tensor) -> None:
        """Load vectors that were trained elsewhere.

        Args:
            vectors: The vectors. A row of NaN leaves that word's vector unchanged.

        Shape:
            vectors [V, E].

        Raises:
            ValueError: If they have another shape.
        """
        shape = tuple(self.weight.shape)
        fits = isinstance(vectors, Tensor) and tuple(vectors.shape) == shape
        advice = "give one vector for every word, as long as embedding_size says"
        _checks.require(fits, "vectors", vectors, f"a tensor {list(shape)}", advice)
        with torch.no_grad():
            given = vectors.to(self.weight)
            self.weight.copy_(torch.where(given.isnan(), self.weight, given))

    def forward(self, input: Tensor) -> Tensor:
        """Look up the vectors."""
        weight = self.weight
        if self.training and self.dropout > 0:
            kept = functional.dropout(weight.new_ones(len(weight), 1), self.dropout)
            return functional.embedding(input, weight) * functional.embedding(input, kept)
        return functional.embedding(input, weight)


def checked_tokens(x: Tensor, vocabulary: int) -> Tensor:
    """Check a batch of token ids [B, T], integers within the vocabulary, and return it.

    Example:
        >>> checked_tokens(torch.tensor([[1, 4]]), 5)
        tensor([[1, 4]])
    """
    fits, form = isinstance(x, Tensor) and x.dim() == 2, "a tensor [B, T] of numbers of words"
    _checks.require(fits, "x", x, form, "put a single text into a batch with x[None]")
    fits = x.dtype in (torch.int64, torch.int32)
    _checks.require(fits, "x", x, "torch.int64 or torch.int32", "convert it, x.long()", TypeError)
    if x.device.type == "cpu" and not torch.compiler.is_compiling() and x.numel():
        ends = [int(end) for end in x.aminmax()]
        inside = ends[0] >= 0 and ends[1] < vocabulary
        advice = "number the words from 0, or give a larger input_size"
        _checks.require(inside, "ends of x", ends, f"in [0, {vocabulary})", advice)
    return x


class TiedLinear(nn.Module):
    """A linear readout that shares the weights [V, E] of an embedding and has its own bias.

    The embedding is not a submodule, so its vectors are stored once.
    """

    def __init__(
        self, embedding: nn.Embedding | None, in_features: int, out_features: int, **factory: Any
    ) -> None:
        super().__init__()
        found = None if embedding is None else list(embedding.weight.shape)
        _checks.require(
            found == [out_features, in_features],
            "[input_size, embedding_size] with tie_embedding",
            found,
            f"[output_size, width of the layer] = {[out_features, in_features]}",
            "choose equal sizes, or leave tie_embedding out",
        )
        self._embedding = (embedding,)  # a tuple keeps it from being a submodule
        self.bias = nn.Parameter(torch.zeros(out_features, **factory))

    def forward(self, features: Tensor) -> Tensor:
        """Return scores [..., V] for features [..., E]."""
        (embedding,) = self._embedding
        assert embedding is not None
        return functional.linear(features, embedding.weight, self.bias)
