"""Handwritten digits read as sequences, pixel by pixel."""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import choice, natural, positive_int, require
from anharmonic.data import SequenceDataset, Splits, Task, load_arrays, seeded_rng, split_indices
from anharmonic_papers.tasks.archives import MNIST
from anharmonic_papers.tasks.official_split import official_sizes

_PERMUTATIONS = ("lem", "cornn", "exprnn")


class SequentialMNIST(Task):
    """Sequential MNIST: handwritten digits (28 by 28), pixel by pixel.

    Grey values are divided by 255, so that they lie in [0, 1]. They are read row by row.

    Args:
        valid_size: Number of official training images kept for validation, in [1, 59999].
        split_seed: Seed that chooses the validation images, in `[0, 2**32)`.
        train_size: Number of training sequences, with moved images, for a reduced budget. None
            uses all.
        test_size: Number of first test images, for a reduced budget. None uses all.
        pool: Side of the squares that are averaged to one pixel, for a reduced budget: 1 (T = 784,
            the full task), 2 (T = 196), 4 (T = 49), 7 (T = 16) or 14 (T = 4).
        shift: Largest shift of training images in pixels, in [0, 3]. With 1, the training part
            holds each image nine times, moved by -1, 0 or 1 pixel across and down. What moves in is
            black.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 784, 1]`, y `[B]` classes 0 to 9, no lengths.

    Split: 57,000 training, 3000 validation (random) and 10,000 test images (official).

    Metric: accuracy in percent. Licence: none stated by the authors of MNIST; often quoted as
    CC BY-SA 3.0.

    Note:
        The sizes are those of the published code. That code draws the split from the same
        generator as the model, after it. Here the split depends on `split_seed` alone.

    References:
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, Table 1.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 1.
    """

    name = "smnist"
    target = "class"
    readout = "last"
    metric = "accuracy"
    input_size = 1
    output_size = 10
    source = "MNIST (LeCun, Cortes, Burges), original pixels"
    licence = "none stated by the authors; often quoted as CC BY-SA 3.0"
    class_names = tuple(str(i) for i in range(10))

    def __init__(
        self,
        valid_size: int = 3000,
        split_seed: int = 1234,
        train_size: int | None = None,
        test_size: int | None = None,
        pool: Literal[1, 2, 4, 7, 14] = 1,
        shift: int = 0,
        data_dir: Path | None = None,
    ) -> None:
        self.split_seed = natural("split_seed", split_seed)
        self.shift = natural("shift", shift)
        require(shift <= 3, "shift", shift, "in [0, 3]", "larger shifts cut digits off")
        self.copies = (2 * shift + 1) ** 2
        self.sizes = official_sizes(60000, 10000, valid_size, train_size, test_size, self.copies)
        self.data_dir = data_dir
        self.pool = positive_int("pool", pool)
        fits = pool in (1, 2, 4, 7, 14)
        require(fits, "pool", pool, "1, 2, 4, 7 or 14", "choose a divisor of 28")

    def _order(self, pixels: int) -> Tensor:
        """Return the index of the pixel read at each step."""
        return torch.arange(pixels)

    def _build(self) -> Splits[SequenceDataset]:
        arrays = load_arrays(MNIST, self.data_dir, progress=self.progress)
        order = self._order((28 // self.pool) ** 2)
        rng = seeded_rng("mnist split", self.split_seed)
        valid, rest = split_indices(60000, [self.sizes["valid"], 60000 - self.sizes["valid"]], rng)
        x, y = arrays["x_train"], arrays["y_train"]
        rest, test = rest[: self.sizes["train"] // self.copies], slice(self.sizes["test"])
        return Splits(
            self._part(moved(x[rest], self.shift), np.tile(y[rest], self.copies), order),
            self._part(x[valid], y[valid], order),
            self._part(arrays["x_test"][test], arrays["y_test"][test], order),
        )

    def _part(
        self, images: NDArray[np.uint8], labels: NDArray[np.uint8], order: Tensor
    ) -> SequenceDataset:
        if self.pool > 1:
            side = 28 // self.pool
            squares = images.reshape(len(images), side, self.pool, side, self.pool)
            pixels = torch.from_numpy(squares.mean((2, 4), dtype=np.float32))
        else:
            pixels = torch.from_numpy(images)
        x = pixels.reshape(len(images), -1, 1)[:, order]
        return SequenceDataset(x, torch.from_numpy(labels), transform=lambda x: x / 255)


def moved(images: NDArray[np.uint8], shift: int) -> NDArray[np.uint8]:
    """Return copies of images, moved by up to `shift` pixels across and down, on black."""
    rows, columns = images.shape[1:]
    framed = np.pad(images, ((0, 0), (shift, shift), (shift, shift)))
    starts = range(2 * shift + 1)
    return np.concatenate(
        [framed[:, i : i + rows, j : j + columns] for i in starts for j in starts]
    )


def pixel_permutation(kind: str, pixels: int = 784) -> Tensor:
    """Return the index of the pixel read at each step of permuted sequential MNIST, int64."""
    choice("permutation", kind, _PERMUTATIONS)
    if kind == "exprnn":
        return torch.from_numpy(np.random.RandomState(92916).permutation(pixels))
    seed = {"lem": 5544, "cornn": 12008}[kind]
    return torch.randperm(pixels, generator=torch.Generator().manual_seed(seed))


class PermutedSequentialMNIST(SequentialMNIST):
    """Permuted sequential MNIST: as sequential MNIST, the pixels in one fixed random order.

    Step k holds the pixel `permutation[k]`.

    Args:
        permutation: "lem" is `torch.randperm` after seed 5544, as in the published code of LEM and
            UnICORNN. "cornn" has seed 12008, as in that of coRNN. "exprnn" is NumPy's legacy
            permutation after seed 92916, as in that of expRNN.
        pool: As in `SequentialMNIST`. The permutation is then one of the averaged pixels.
        shift: As in `SequentialMNIST`. Images are moved before pixels are reordered.

    Shape:
        x `[B, 784, 1]`, y `[B]` classes 0 to 9, no lengths.

    Split, metric, licence: as for `SequentialMNIST`.

    Note:
        The papers refer to the seed of earlier work, but the published codes use three different
        permutations. Choose the permutation of the result to compare with.

    References:
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, Table 1.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 1.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 1.
    """

    name = "psmnist"

    def __init__(
        self,
        permutation: Literal["lem", "cornn", "exprnn"] = "lem",
        valid_size: int = 3000,
        split_seed: int = 1234,
        train_size: int | None = None,
        test_size: int | None = None,
        pool: Literal[1, 2, 4, 7, 14] = 1,
        shift: int = 0,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(valid_size, split_seed, train_size, test_size, pool, shift, data_dir)
        self.permutation = choice("permutation", permutation, _PERMUTATIONS)

    def _order(self, pixels: int) -> Tensor:
        return pixel_permutation(self.permutation, pixels)
