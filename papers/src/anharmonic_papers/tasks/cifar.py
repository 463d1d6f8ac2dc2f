"""Colour images read row by row, followed by noise."""

import io
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import boolean, choice, natural, positive_int, require
from anharmonic.data import SequenceDataset, Splits, Task, load_arrays, seeded_rng, split_indices
from anharmonic_papers.tasks.archives import CIFAR10, CIFAR10_JPEG
from anharmonic_papers.tasks.official_split import official_sizes


class NoisePaddedCIFAR10(Task):
    """Noise-padded CIFAR-10: classify an image that is read row by row and followed by noise.

    Step r < 32 holds the 96 values of row r, first red, then green, then blue, each divided by
    255. All further steps hold noise.

    Args:
        form: "original" has the CIFAR-10 pixels. "jpeg" has images after JPEG compression (quality
            about 75, mean error of a pixel 6 of 255). Its accuracies compare with published ones
            only roughly, and its `source` is "CIFAR-10 (JPEG)".
        length: Steps `T`, at least 32.
        noise: "normal" is N(0, 1), as in the published code. "uniform" is U(0, 1), as in the paper.
        noise_seed: Seed of the noise, in `[0, 2**32)`.
        valid_size: Number of official training images kept for validation, in [1, 49999].
            The published code keeps 3000 for coRNN, and 2000 for UnICORNN and LEM.
        split_seed: Seed that chooses the validation images, in `[0, 2**32)`.
        train_size: Number of training sequences, with flipped images, for a reduced budget. None
            uses all.
        test_size: Number of first test images, for a reduced budget. None uses all.
        flips: Whether the training part holds each image twice, once flipped left to right.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 1000, 96]`, y `[B]` classes, no lengths.

    Split: 48,000 training, 2000 validation (random) and 10,000 test images (official).

    Metric: accuracy in percent. Licence: none stated by the authors (research use, cite
    Krizhevsky 2009).

    Note:
        All images of all parts share one draw of noise, as in the published code. That code draws
        standard normal noise, although the coRNN paper says uniform. No paper says whether noise is
        drawn per image; "uniform" noise is shared here too. The published noise is not reproduced,
        because one generator drew the model, the split and the noise.

    References:
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, Table 2.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 2.
    """

    name = "noise-padded-cifar10"
    target = "class"
    readout = "last"
    metric = "accuracy"
    input_size = 96
    output_size = 10
    licence = "none stated by the authors (research use, cite Krizhevsky 2009)"
    class_names = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())

    def __init__(
        self,
        form: Literal["original", "jpeg"] = "original",
        length: int = 1000,
        noise: Literal["normal", "uniform"] = "normal",
        noise_seed: int = 5544,
        valid_size: int = 2000,
        split_seed: int = 1234,
        train_size: int | None = None,
        test_size: int | None = None,
        flips: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        self.form = choice("form", form, ("original", "jpeg"))
        self.source = "CIFAR-10 (JPEG)" if form == "jpeg" else "CIFAR-10"
        self.length = positive_int("length", length)
        require(length >= 32, "length", length, ">= 32", "an image has 32 rows")
        self.noise = choice("noise", noise, ("normal", "uniform"))
        self.noise_seed = natural("noise_seed", noise_seed)
        self.split_seed = natural("split_seed", split_seed)
        self.flips = boolean("flips", flips)
        self.sizes = official_sizes(50000, 10000, valid_size, train_size, test_size, 1 + flips)
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        rng = seeded_rng("cifar10 split", self.split_seed)
        source = CIFAR10_JPEG if self.form == "jpeg" else CIFAR10
        arrays = load_arrays(source, self.data_dir, progress=self.progress)
        valid, rest = split_indices(50000, [self.sizes["valid"], 50000 - self.sizes["valid"]], rng)
        train = rest[: self.sizes["train"] // (1 + self.flips)]
        noise = self._draw_noise()

        def pad(x: Tensor) -> Tensor:
            return torch.cat([x / 255, noise.expand(len(x), *noise.shape)], 1)

        def part(key: str, rows: NDArray[np.int64], flips: bool = False) -> SequenceDataset:
            if self.form == "jpeg":
                images = decode_jpegs(arrays[f"jpeg_{key}"], arrays[f"offsets_{key}"], rows)
            else:
                images = arrays[f"x_{key}"][rows]
            x = torch.from_numpy(images).permute(0, 2, 1, 3)
            y = torch.from_numpy(arrays[f"y_{key}"][rows])
            if flips:
                x, y = torch.cat([x, x.flip(3)]), torch.cat([y, y])
            return SequenceDataset(x.reshape(-1, 32, 96), y, transform=pad)

        return Splits(
            part("train", train, self.flips),
            part("train", valid),
            part("test", np.arange(self.sizes["test"])),
        )

    def _draw_noise(self) -> Tensor:
        rng = seeded_rng(f"cifar10 {self.noise}", self.noise_seed)
        shape = (self.length - 32, 96)
        drawn = rng.standard_normal(shape) if self.noise == "normal" else rng.random(shape)
        return torch.from_numpy(drawn.astype(np.float32))


def decode_jpegs(
    content: NDArray[np.uint8], offsets: NDArray[Any], rows: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Decode chosen 32 by 32 colour images: uint8 `[M, 3, 32, 32]`, red, green, blue.

    File i is `content[offsets[i]:offsets[i + 1]]`.
    """
    from PIL import Image

    ends = offsets.astype(np.int64)
    images = np.empty((len(rows), 32, 32, 3), np.uint8)
    for place, row in enumerate(rows):
        file = io.BytesIO(content[ends[row] : ends[row + 1]].tobytes())
        images[place] = np.asarray(Image.open(file).convert("RGB"))
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
