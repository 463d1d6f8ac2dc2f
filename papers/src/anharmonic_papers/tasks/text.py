"""Text: classification of film reviews, and language models of the Penn Treebank."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import boolean, natural, positive_int
from anharmonic.data import (
    SequenceDataset,
    Splits,
    StreamTask,
    Task,
    load_arrays,
    seeded_rng,
    split_indices,
)
from anharmonic_papers.tasks.archives import IMDB, IMDB_GLOVE, PTB
from anharmonic_papers.tasks.official_split import bounded_sizes, official_sizes

LONGEST_REVIEW = 2768
"""Number of words of the longest review."""


class MovieReviews(Task):
    """IMDB: classify film reviews as good or bad, read word by word.

    The reviews are converted to lower case and split into words and punctuation marks. The
    vocabulary is the 25,000 most frequent words of the training reviews. The number 1 stands for
    all other words and 0 for padding.

    Args:
        max_length: Words kept from the start of a review. None keeps all, at most 2768. A quarter
            of the reviews have more than 300 words.
        vectors: Whether the embedding starts with GloVe vectors of 50 numbers, trained on 6 billion
            words. The 2 % of the words without a vector, or all words without this option, start
            with random normal numbers.
        embedding_dropout: Probability in [0, 1) that a word of the vocabulary is dropped from a
            batch.
        output_dropout: Probability in [0, 1) that an output of the layer is zero.
        valid_size: Number of official training reviews kept for validation, in [1, 24999], with
            equal shares of the classes.
        split_seed: Seed that chooses the validation reviews, in `[0, 2**32)`.
        train_size: Number of training reviews, for a reduced budget. None uses all.
        test_size: Number of test reviews, equally many of both classes, for a reduced budget.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x int64 `[B, T]`, zero-padded to the longest of the batch, y `[B]` classes, lengths `[B]`.

    Split: 17,500 / 7500 / 25,000 reviews.

    Metric: accuracy in percent. Licence: none stated by the authors (research use); the reviews
    belong to their writers.

    Note:
        The papers use GloVe vectors of 100 numbers and another tokeniser. Their published code
        also reads the padding. Here each review is read to its own end.

    References:
        A. Maas et al.: Learning word vectors for sentiment analysis, ACL 2011.
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, Table 4.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 5.
    """

    name = "imdb"
    target = "class"
    readout = "last"
    metric = "accuracy"
    tokens = True
    input_size = 25_002
    output_size = 2
    source = "Large Movie Review Dataset of Maas et al., tokenised; GloVe 6B, 50 numbers a word"
    licence = "none stated (research use); GloVe: PDDL 1.0"
    class_names = ("negative", "positive")

    def __init__(
        self,
        max_length: int | None = None,
        vectors: bool = True,
        embedding_dropout: float = 0.0,
        output_dropout: float = 0.0,
        valid_size: int = 7500,
        split_seed: int = 1234,
        train_size: int | None = None,
        test_size: int | None = None,
        data_dir: Path | None = None,
    ) -> None:
        self.max_length = None if max_length is None else positive_int("max_length", max_length)
        self.has_vectors = boolean("vectors", vectors)
        self.reading = {
            "embedding_size": 50,
            "embedding_dropout": embedding_dropout,
            "output_dropout": output_dropout,
        }
        self.sizes = official_sizes(25_000, 25_000, valid_size, train_size, test_size)
        self.split_seed = natural("split_seed", split_seed)
        self.data_dir = data_dir

    def vectors(self) -> Tensor | None:
        """Return the GloVe vectors; NaN for words without one."""
        if not self.has_vectors:
            return None
        arrays = load_arrays(IMDB_GLOVE, self.data_dir, progress=self.progress)
        found = torch.from_numpy(arrays["found"])[:, None]
        return torch.where(found, torch.from_numpy(arrays["vectors"]).float(), torch.nan)

    def _build(self) -> Splits[SequenceDataset]:
        arrays = load_arrays(IMDB, self.data_dir, progress=self.progress)
        rng = seeded_rng("imdb split", self.split_seed)
        labels = arrays["label_train"]
        sizes = [len(labels) - self.sizes["valid"], self.sizes["valid"]]
        train, valid = split_indices(len(labels), sizes, rng, labels)
        ends = len(arrays["label_test"])  # sorted by class
        test = np.linspace(0, ends, self.sizes["test"], endpoint=False).astype(np.int64)
        return Splits(
            self._part(arrays, "train", train[: self.sizes["train"]]),
            self._part(arrays, "train", valid),
            self._part(arrays, "test", test),
        )

    def _part(
        self, arrays: dict[str, NDArray[Any]], name: str, rows: NDArray[np.int64]
    ) -> SequenceDataset:
        offsets = arrays[f"offsets_{name}"].astype(np.int64)
        tokens = arrays[f"tokens_{name}"]
        pieces = [tokens[offsets[row] : offsets[row + 1]][: self.max_length] for row in rows]
        ends = np.cumsum([0, *(len(piece) for piece in pieces)])
        return SequenceDataset(
            torch.from_numpy(np.concatenate(pieces).astype(np.int32)),
            torch.from_numpy(arrays[f"label_{name}"][rows].astype(np.int64)),
            offsets=torch.from_numpy(ends),
            tokens=True,
        )


class _PennTreebank(StreamTask):
    """Common base of the two forms of the Penn Treebank.

    Args:
        window: Steps after which gradients stop. The state carries over.
        embedding_size: Numbers of a token's vector, at least 1.
        input_dropout: Probability in [0, 1) that a number of a vector is set to zero in a window.
        output_dropout: The same for the layer's output.
        train_size: Number of first training tokens, for a reduced budget. None uses all.
        valid_size: The same for validation.
        test_size: The same for the test.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.
    """

    part = ""
    full = (0, 0, 0)
    source = "Penn Treebank in the form of Mikolov et al."
    licence = "the texts belong to the LDC (LDC99T42); not to be passed on"

    def __init__(
        self,
        window: int = 150,
        embedding_size: int = 200,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        train_size: int | None = None,
        valid_size: int | None = None,
        test_size: int | None = None,
        data_dir: Path | None = None,
    ) -> None:
        self.window = positive_int("window", window)
        self.reading = {
            "embedding_size": positive_int("embedding_size", embedding_size),
            "input_dropout": input_dropout,
            "output_dropout": output_dropout,
        }
        given = zip((train_size, valid_size, test_size), self.full, strict=True)
        self.sizes = bounded_sizes((most if n is None else n for n, most in given), self.full)
        self.data_dir = data_dir

    def _texts(self) -> tuple[Tensor, Tensor, Tensor]:
        arrays = load_arrays(PTB, self.data_dir, progress=self.progress)
        train, valid, test = (
            torch.from_numpy(arrays[f"{self.part}_{name}"][:size].astype(np.int32))
            for name, size in self.sizes.items()
        )
        return train, valid, test


class PennTreebankCharacters(_PennTreebank):
    """Penn Treebank, character by character: predict the next one.

    Shape:
        x int64 `[B, window]`, y the next character of each, int64 `[B, window]`; 50 characters.

    Split: 5,017,482 / 393,042 / 442,423 characters, the official split. The validation and test
    texts are read in 10 columns. Each column begins with an empty state.

    Metric: bits per character. Licence: the texts belong to the LDC.

    References:
        T. Mikolov et al.: Subword language modeling with neural networks, 2012.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 6.
    """

    name = "ptb-char"
    metric = "bits_per_character"
    noun = "character"
    part = "char"
    full = (5_017_482, 393_042, 442_423)
    input_size = output_size = 50


class PennTreebankWords(_PennTreebank):
    """Penn Treebank, word by word: predict the next one.

    Args:
        tie_embedding: Whether the scores of the words are products with their vectors. The layer
            must be as wide as the vectors.

    Shape:
        x int64 `[B, window]`, y the next word of each, int64 `[B, window]`; 10,000 words.

    Split: 929,589 / 73,760 / 82,430 words, including ends of lines, the official split. The
    validation and test texts are read in 10 columns. Each column begins with an empty state.

    Metric: perplexity. Licence: the texts belong to the LDC.

    References:
        T. Mikolov et al.: Recurrent neural network based language model, 2010.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 7.
    """

    name = "ptb-word"
    metric = "perplexity"
    part = "word"
    full = (929_589, 73_760, 82_430)
    input_size = output_size = 10_000

    def __init__(
        self,
        window: int = 70,
        embedding_size: int = 256,
        tie_embedding: bool = True,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        train_size: int | None = None,
        valid_size: int | None = None,
        test_size: int | None = None,
        data_dir: Path | None = None,
    ) -> None:
        sizes = (train_size, valid_size, test_size)
        super().__init__(window, embedding_size, input_dropout, output_dropout, *sizes, data_dir)
        self.reading = {**self.reading, "tie_embedding": boolean("tie_embedding", tie_embedding)}
