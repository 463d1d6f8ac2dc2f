"""Small handwritten digits that ship with scikit-learn, read pixel by pixel."""

from __future__ import annotations

from typing import Any

import torch

from anharmonic._checks import missing_extra, natural
from anharmonic.data.base import (
    MetricName,
    Readout,
    SequenceDataset,
    Splits,
    Target,
    Task,
    seeded_rng,
)
from anharmonic.data.parts import split_indices


class Digits(Task):
    """Small handwritten digits (8 by 8), pixel by pixel; ships with scikit-learn, no download.

    Grey values are divided by 16 to lie in [0, 1], and read row by row.

    Args:
        split_seed: Seed of the split, in `[0, 2**32)`.

    Shape:
        x `[B, 64, 1]`, y `[B]` classes 0 to 9, no lengths.

    Split: 1257 training, 180 validation and 360 test images, stratified by class.

    Metric: accuracy in percent. Licence: CC BY 4.0 (UCI Machine Learning Repository, data set 80).

    Note:
        A small substitute for sequential MNIST that runs in minutes. None of the papers uses it.

    Example:
        >>> task = Digits()
        >>> batch = task.loaders(seed=0, batch_size=8).train(0)[0]
        >>> list(batch.x.shape), list(batch.y.shape), float(batch.x.max())
        ([8, 64, 1], [8], 1.0)

    References:
        E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI, 1998 (test part).
    """

    name = "digits"
    target: Target = "class"
    readout: Readout = "last"
    metric: MetricName = "accuracy"
    input_size = 1
    output_size = 10
    source = "scikit-learn load_digits (UCI Optical Recognition of Handwritten Digits, test part)"
    licence = "CC BY 4.0"
    class_names = tuple(str(i) for i in range(10))

    def __init__(self, split_seed: int = 1234) -> None:
        self.split_seed = natural("split_seed", split_seed)
        self.sizes = {"train": 1257, "valid": 180, "test": 360}

    def _build(self) -> Splits[SequenceDataset]:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise missing_extra("scikit-learn", "train", "reading the digits") from error
        loaded: Any = load_digits()
        x = torch.from_numpy(loaded.data / 16).to(torch.float32)[:, :, None]
        y = torch.from_numpy(loaded.target).to(torch.int64)
        rng = seeded_rng("digits split", self.split_seed)
        parts = split_indices(len(y), list(self.sizes.values()), rng, loaded.target)
        return Splits(*(SequenceDataset(x[part], y[part]) for part in parts))
