"""Base class of tasks: name, shapes, splits, metric and loaders."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch

from anharmonic._checks import natural, positive_int
from anharmonic.data.dataset import AnyBatch, Batch, Batches, Dataset, SequenceDataset, step_mask

__all__ = [
    "Batch",
    "Batches",
    "Loaders",
    "Loss",
    "MetricName",
    "Readout",
    "SequenceDataset",
    "Splits",
    "Target",
    "Task",
    "seeded_rng",
    "step_mask",
]

Target = Literal["class", "value", "labels"]
Readout = Literal["last", "all", "node", "graph", "row"]
Loss = Literal["cross_entropy", "binary_cross_entropy", "squared_error", "absolute_error"]
MetricName = Literal[
    "accuracy", "balanced_accuracy", "f1", "cross_entropy", "bits_per_character", "perplexity",
    "mse", "rmse", "nrmse", "nmse", "mae", "pinball",
]  # fmt: skip
AnyPart = TypeVar("AnyPart")
_TARGETS = {
    "class": ("one of ", "class", "classes"),
    "value": ("", "value", "values"),
    "labels": ("any of ", "label", "labels"),
}


class Loaders(NamedTuple, Generic[AnyBatch]):
    """Batches for training (by epoch), validation and test.

    Attributes:
        train: Returns the batches of an epoch (0, 1, ...); they depend on (seed, epoch) only.
        valid: Validation batches, in fixed order; none if `sizes["valid"]` is 0.
        test: Test batches, in fixed order.
    """

    train: Callable[[int], Batches[AnyBatch]]
    valid: Batches[AnyBatch]
    test: Batches[AnyBatch]


def seeded_rng(purpose: str, *numbers: int) -> np.random.Generator:
    """Make a random generator from a name and numbers, without touching the global state.

    NumPy's generator has a 128-bit seed. PyTorch's CPU generator uses only 32 bits, so that two
    batches would often coincide among the 60,000 steps of a run.

    Args:
        purpose: A word that makes the streams of different purposes unrelated.
        numbers: Seeds, epochs, steps; each in `[0, 2**32)`.

    Example:
        >>> a, b = seeded_rng("order", 0, 1), seeded_rng("order", 0, 1)
        >>> bool((a.permutation(5) == b.permutation(5)).all())
        True
    """
    for value in numbers:
        natural("a number of a stream", value)
    return np.random.default_rng([zlib.crc32(purpose.encode()), *numbers])


class Splits(NamedTuple, Generic[AnyPart]):
    """The three parts of a task's data.

    `train` is None if training data are generated, `valid` is None without validation.

    Example:
        >>> Splits(train=[1, 2, 3], valid=None, test=[4]).test
        [4]
    """

    train: AnyPart | None
    valid: AnyPart | None
    test: AnyPart


class Task(ABC):
    """A data set with inputs, targets and a metric.

    Constructing a task reads no data (except the user's own file). The first call of `loaders`
    reads them.

    Attributes:
        name: The name in the registry.
        kind: Kind of input: a "sequence", a "graph" or "tabular" (a row of numbers).
        target: "class" (one class), "value" (real numbers) or "labels" (several yes-or-no labels).
        readout: "last" (one output per sequence), "all" (one per step), "node", "graph" or "row"
            (one per node, graph or row).
        metric: A name from `anharmonic.data.metrics`, e.g. "accuracy".
        metric_scale: Factor on the metric, for errors in units of a constant of the data.
        input_size: Features `F` per step, per node or per row.
        output_size: Classes, values or labels `O`.
        source: Origin of the data; mentions deviations from the original.
        licence: Licence of the data.
        sizes: Number of sequences, nodes, graphs or rows: "train", "valid", "test".
        class_names: Name of every class or label; empty for "value".
        horizon: Number of forecast steps; 0 for no forecast.
        quantiles: Forecast quantiles; empty for the mean.
        progress: Whether to show a progress bar for downloads.
        hint: A sentence on what the user may have meant instead, or empty.
        class_weights: Factors on the classes in the loss, as `class_names`; None for 1.
        tokens: Whether inputs are token ids; `input_size` is then the size of the vocabulary.
        reading: Arguments that `anharmonic.SequenceModel` needs for these inputs, such as
            `embedding_size`.
        seasonal: For forecasts, the baseline from the values one season before those of the test
            part, `[N, O]`; None without a season.
        carries_state: Whether each batch continues the previous one. The model's state is then
            carried from batch to batch without gradients, and reset for each epoch.
        digest: SHA-256 of the user's file, or None.
        recommended: Options that `train.fill` and `train.compare` set unless they are given. The
            defaults of the constructor belong to the names of stored runs, and stay.
        options_class: The dataclass whose fields the constructor takes as ``**options``; None if
            the constructor names all its options.

    Example:
        >>> from anharmonic.data import make_task
        >>> task = make_task("digits")
        >>> task.metric, task.input_size, task.output_size
        ('accuracy', 1, 10)
    """

    name: ClassVar[str]
    kind: ClassVar[Literal["sequence", "graph", "tabular"]] = "sequence"
    target: Target
    readout: Readout
    metric: MetricName
    metric_scale: float = 1.0
    input_size: int
    output_size: int
    source: str
    licence: str
    sizes: dict[str, int]
    class_names: tuple[str, ...] = ()
    horizon: int = 0
    quantiles: tuple[float, ...] = ()
    progress: bool = True
    hint: str = ""
    class_weights: tuple[float, ...] | None = None
    tokens: ClassVar[bool] = False
    reading: Mapping[str, Any] = {}
    seasonal: torch.Tensor | None = None
    carries_state: ClassVar[bool] = False
    recommended: ClassVar[Mapping[str, Any]] = {}
    options_class: ClassVar[type | None] = None
    digest: str | None = None
    _splits: Splits[Any] | None = None

    @property
    def loss(self) -> Loss:
        """The training loss: that of the target, or absolute errors for the metric "mae".

        Example:
            >>> from anharmonic.data.synthetic import AddingProblem
            >>> AddingProblem().loss
            'squared_error'
        """
        if self.target == "class":
            return "cross_entropy"
        if self.target == "labels":
            return "binary_cross_entropy"
        return "absolute_error" if self.metric == "mae" else "squared_error"

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the classes, labels or forecast channels; empty if they are numbered."""
        return self.class_names

    def vectors(self) -> torch.Tensor | None:
        """Return the initial vectors `[V, E]` of the embedding; None for random ones."""
        return None

    @abstractmethod
    def _build(self) -> Splits[Any]:
        """Read or compute the data."""

    def splits(self) -> Splits[Any]:
        """The data of the task, read or computed at the first access."""
        if self._splits is None:
            self._splits = self._build()
        return self._splits

    @property
    def output(self) -> str:
        """Description of the targets.

        Example:
            >>> from anharmonic.data import make_task
            >>> make_task("adding").output, make_task("digits").output
            ('1 value per sequence', 'one of 10 classes per sequence')
        """
        sample = {"last": "sequence", "all": "step"}.get(self.readout, self.readout)
        choice, one, many = _TARGETS[self.target]
        return f"{choice}{counted(self.output_size, one, many)} per {sample}"

    def summary(self) -> str:
        """Describe in one line how the data were read; read them if necessary.

        Example:
            >>> from anharmonic.data.synthetic import AddingProblem
            >>> AddingProblem(length=10, valid_size=8).summary().split(", ")[2:]
            ['1000 test)', '10 steps', '2 channels', '1 value per sequence']
        """
        path = getattr(self, "path", None)
        parts = ", ".join(f"{size} {name}" for name, size in self.sizes.items())
        noun = "channel" if self.kind == "sequence" else "feature"
        inputs = self._inputs(noun)
        extent = [*self._extent(parts), inputs, self.output]
        return f"{self.name if path is None else path.name}: {', '.join(extent)}"

    def _inputs(self, noun: str) -> str:
        """Describe the number of inputs of a model."""
        if self.tokens:
            return f"a vocabulary of {self.input_size}"
        return counted(self.input_size, noun)

    def _extent(self, parts: str) -> list[str]:
        """Describe the amount of data, with the sizes of the parts in brackets."""
        lengths = [_shortest_and_longest(part) for part in self.splits() if part is not None]
        low, high = min(low for low, _ in lengths), max(high for _, high in lengths)
        count = counted(sum(self.sizes.values()), self._sample)
        return [f"{count} ({parts})", steps_in_words(low, high)]

    @property
    def _sample(self) -> str:
        """What the sizes of the parts count."""
        return "sequence"

    def loaders(self, seed: int, batch_size: int) -> Loaders[Any]:
        """Return batches for training, validation and test.

        Args:
            seed: Seed of the order of the training data, in `[0, 2**32)`. The split does not depend
                on it.
            batch_size: Sequences or graphs per batch, at least 1. The last batch of an epoch may be
                smaller.

        Raises:
            TypeError: If an argument is not an integer.
            ValueError: If an argument is out of range.
        """
        natural("seed", seed)
        positive_int("batch_size", batch_size)
        parts = self.splits()
        return Loaders(
            train=lambda epoch: self._train_batches(seed, natural("epoch", epoch), batch_size),
            valid=Batches(0, _none) if parts.valid is None else parts.valid.batches(batch_size),
            test=parts.test.batches(batch_size),
        )

    def _train_batches(self, seed: int, epoch: int, batch_size: int) -> Batches[Any]:
        data: Dataset[Any] | None = self.splits().train
        if data is None:
            raise NotImplementedError(f"{type(self).__name__} must make its own training batches")
        order = seeded_rng("order", seed, epoch).permutation(len(data))
        return data.batches(batch_size, torch.from_numpy(order))


def _none(index: int) -> Any:
    raise IndexError(index)


def _shortest_and_longest(part: SequenceDataset) -> tuple[int, int]:
    if part.lengths is None:  # a transform may add steps
        steps = part.take(torch.tensor([0])).x.shape[1]
        return steps, steps
    return int(part.lengths.min()), int(part.lengths.max())


def steps_in_words(low: int, high: int) -> str:
    """Return the shortest and the longest length in words.

    Example:
        >>> steps_in_words(5, 5), steps_in_words(1, 5)
        ('5 steps', '1 to 5 steps')
    """
    return counted(high, "step") if low == high else f"{low} to {high} steps"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "class", "classes"), counted(2, "node")
        ('1 class', '2 nodes')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"
