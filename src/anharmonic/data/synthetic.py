"""Random sequences with a target known in closed form."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from anharmonic._checks import natural, positive_int, require
from anharmonic.data.base import (
    Batch,
    Batches,
    MetricName,
    Readout,
    SequenceDataset,
    Splits,
    Target,
    Task,
    seeded_rng,
)


class AddingProblem(Task):
    """The adding problem: the sum of two marked numbers in a long sequence of numbers.

    Channel 0 holds numbers drawn from U(0, 1). Channel 1 is zero except at two steps, where it is
    one: one of them in the first half `[0, T/2)`, one in the second `[T/2, T)`, each uniform. The
    target is the sum of the two marked numbers. Always predicting 1 gives a mean squared error of
    1/6 = 0.167.

    Every training batch is newly drawn from (seed, epoch, step). An "epoch" is `steps_per_epoch`
    training steps, after which the model is evaluated. The default evaluates every 100 steps, as in
    the papers.

    Args:
        length: Number of steps `T` of a sequence, at least 2. The coRNN paper uses 500, 2000 and
            5000, the LEM paper 2000, 5000 and 10,000.
        valid_size: Number of validation sequences, at least 1.
        test_size: Number of test sequences, at least 1.
        steps_per_epoch: Number of training steps in an "epoch", at least 1.
        data_seed: Seed of the validation and test sequences, in `[0, 2**32)`.

    Shape:
        x `[B, T, 2]`, y `[B, 1]`, no lengths. `sizes["train"]` is the number of sequences of an
        epoch at the papers' batch of 50; it is `steps_per_epoch * batch_size` for any other.

    Metric: mean squared error, read out at the last step. Licence: none needed, computed here.

    Note:
        The published code evaluates on 1000 freshly drawn sequences each time and reports that
        curve. Here validation and test have 1000 fixed sequences each. Runs are then comparable,
        and model selection does not use the test sequences.

    Example:
        >>> task = AddingProblem(length=20, steps_per_epoch=2)
        >>> batches = task.loaders(seed=0, batch_size=4).train(0)
        >>> len(batches), [list(part.shape) for part in batches[0][:2]]
        (2, [[4, 20, 2], [4, 1]])

    References:
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, section 4, Fig. 1.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Fig. 1.
    """

    name = "adding"
    target: Target = "value"
    readout: Readout = "last"
    metric: MetricName = "mse"
    input_size = 2
    output_size = 1
    source = "computed (adding problem of Hochreiter and Schmidhuber as in the coRNN paper)"
    licence = "none needed"

    def __init__(
        self,
        length: int = 500,
        valid_size: int = 1000,
        test_size: int = 1000,
        steps_per_epoch: int = 100,
        data_seed: int = 1234,
    ) -> None:
        self.length = positive_int("length", length)
        require(length >= 2, "length", length, ">= 2", "each half needs one step")
        self.steps_per_epoch = positive_int("steps_per_epoch", steps_per_epoch)
        self.data_seed = natural("data_seed", data_seed)
        self.sizes = {
            "train": steps_per_epoch * 50,
            "valid": positive_int("valid_size", valid_size),
            "test": positive_int("test_size", test_size),
        }

    def _build(self) -> Splits[SequenceDataset]:
        parts = []
        for part in ("valid", "test"):
            rng = seeded_rng(f"adding {part}", self.data_seed)
            parts.append(SequenceDataset(*draw_adding(rng, self.sizes[part], self.length)))
        return Splits(None, parts[0], parts[1])

    def _train_batches(self, seed: int, epoch: int, batch_size: int) -> Batches[Batch]:
        def make(step: int) -> Batch:
            rng = seeded_rng("adding train", seed, epoch, step)
            return Batch(*draw_adding(rng, batch_size, self.length), None)

        return Batches(self.steps_per_epoch, make)


def draw_adding(rng: np.random.Generator, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Draw sequences of the adding problem: x `[count, length, 2]` and y `[count, 1]`."""
    x = np.zeros((count, length, 2), dtype=np.float32)
    x[:, :, 0] = rng.random((count, length), dtype=np.float32)
    rows = np.arange(count)
    first = rng.integers(0, length // 2, count)
    second = rng.integers(length // 2, length, count)
    x[rows, first, 1] = 1.0
    x[rows, second, 1] = 1.0
    y = x[rows, first, 0] + x[rows, second, 0]
    return torch.from_numpy(x), torch.from_numpy(y[:, None])
