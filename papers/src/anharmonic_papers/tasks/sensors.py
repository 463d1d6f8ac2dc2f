"""Sensor signals of movements: a smartwatch and worms."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import natural, require
from anharmonic.data import SequenceDataset, Splits, Task, load_arrays, seeded_rng
from anharmonic_papers.tasks.archives import WATCH_IMU, WORMS
from anharmonic_papers.tasks.official_split import bounded_int


class WatchActivity(Task):
    """Watch: which of seven shoulder exercises a smartwatch felt in 2.56 seconds.

    The task replaces HAR-2 of the coRNN paper, data that we do not have. Its windows of 128 samples
    at 50 Hz overlap by half and come from 140 recordings of ten people. The six channels are
    acceleration and angular velocity.

    Args:
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 128, 6]`, y `[B]` classes, no lengths.

    Split: 2055 / 777 / 773 windows of different people: numbers 1 to 6, 7 and 8, and 9 and 10.

    Metric: accuracy in percent. Licence: BSD 3-clause.

    References:
        D. Burns et al.: Shoulder physiotherapy exercise recognition, arXiv 1802.01489, 2018.
    """

    name = "watch-imu"
    target = "class"
    readout = "last"
    metric = "accuracy"
    input_size = 6
    output_size = 7
    source = "smartwatch data of the package seglearn 1.2.5"
    licence = "BSD 3-clause"
    class_names = ("PEN", "ABD", "FEL", "IR", "ER", "TRAP", "ROW")

    def __init__(self, data_dir: Path | None = None) -> None:
        self.sizes = {"train": 2055, "valid": 777, "test": 773}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = load_arrays(WATCH_IMU, self.data_dir, progress=self.progress)
        ends, subject = arrays["offsets"], arrays["subject"]

        def part(low: int, high: int) -> SequenceDataset:
            x, y = [], []
            for row in np.flatnonzero((subject >= low) & (subject <= high)):
                values = arrays["values"][ends[row] : ends[row + 1]]
                cut = [values[i : i + 128] for i in range(0, len(values) - 127, 64)]
                x += cut
                y += [arrays["label"][row]] * len(cut)
            return _dataset(np.stack(x), np.array(y))

        return Splits(part(1, 6), part(7, 8), part(9, 10))


class Worms(Task):
    """Worms: which of five strains a worm is, from 900 steps of the first eigenworm.

    The task replaces EigenWorms, data that we do not have, and also uses recordings of
    *C. elegans*. It has one number per second instead of six channels. Every series has mean 0 and
    deviation 1.

    Args:
        last: Number of last steps to use, 1 to 900. None uses all.
        random: Number of random steps to use, in order and the same for all worms. None uses all.
        split_seed: Seed of the split. LEM's published code has 1234.
        data_dir: Folder of the data, with `ucr/Worms.npz`; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 900, 1]`, y `[B]` classes 0 to 4, no lengths.

    Split: 180 / 39 / 39 worms, drawn by scikit-learn from both parts of the archive together, as in
    the published code for EigenWorms.

    Metric: accuracy in percent. Licence: none stated (UCR archive).

    References:
        H. A. Dau et al.: The UCR time series archive, IEEE/CAA Journal of Automatica Sinica, 2019.
    """

    name = "worms"
    target = "class"
    readout = "last"
    metric = "accuracy"
    archive = WORMS
    input_size = 1
    output_size = 5
    source = "UCR time series classification archive"
    licence = "none stated"
    class_names = tuple(str(i) for i in range(1, 6))
    steps: ClassVar = 900

    def __init__(
        self,
        last: int | None = None,
        random: int | None = None,
        split_seed: int = 1234,
        data_dir: Path | None = None,
    ) -> None:
        self.last = None if last is None else bounded_int("last", last, self.steps)
        self.random = None if random is None else bounded_int("random", random, self.steps)
        fits = last is None or random is None
        require(fits, "random", random, "None beside last", "leave one of them out")
        self.split_seed = natural("split_seed", split_seed)
        self.sizes = {"train": 180, "valid": 39, "test": 39}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        from sklearn.model_selection import train_test_split

        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        x = np.concatenate([arrays["x_train"], arrays["x_test"]])[:, :, None]
        y = np.concatenate([arrays["y_train"], arrays["y_test"]]) - 1
        kept = np.arange(self.steps)[-self.last if self.last else 0 :]
        if self.random is not None:
            rng = seeded_rng("eigenworms steps", self.split_seed)
            kept = np.sort(rng.choice(self.steps, self.random, replace=False))
        split = {"random_state": self.split_seed}
        train, rest = train_test_split(np.arange(len(y)), test_size=0.3, **split)
        parts = train, *train_test_split(rest, test_size=0.5, **split)
        return Splits(*(_dataset(x[rows][:, kept], y[rows]) for rows in parts))


def _dataset(x: NDArray[Any], y: NDArray[Any]) -> SequenceDataset:
    return SequenceDataset(torch.from_numpy(x), torch.from_numpy(y.astype(np.int64)))
