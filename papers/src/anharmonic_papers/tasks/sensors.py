"""Sensor signals of movements, worms, hearts and commands, downloaded on first use."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import natural, require
from anharmonic.data import (
    MetricName,
    SequenceDataset,
    Source,
    Splits,
    Target,
    Task,
    load_arrays,
    seeded_rng,
)
from anharmonic_papers.tasks.archives import (
    BIDMC_HEART,
    BIDMC_RESPIRATION,
    EIGENWORMS,
    HAR,
    SPEECH_COMMANDS,
    WATCH_IMU,
    WORMS,
)
from anharmonic_papers.tasks.official_split import bounded_int
from anharmonic_papers.tasks.prepare_sensors import KEYWORDS, windows

Rows = NDArray[np.int64]


class _Signals(Task):
    """Dense signals with one target each, from one archive."""

    archive: ClassVar[Source]
    target: Target = "class"
    readout = "last"
    metric: MetricName = "accuracy"
    data_dir: Path | None = None

    def _load(self) -> dict[str, NDArray[Any]]:
        return load_arrays(self.archive, self.data_dir, progress=self.progress)

    def _dataset(self, x: NDArray[Any], y: NDArray[Any]) -> SequenceDataset:
        targets = y.astype(np.int64) if self.target == "class" else y.astype(np.float32)[:, None]
        return SequenceDataset(torch.from_numpy(x), torch.from_numpy(targets))

    def _parts(self, arrays: dict[str, NDArray[Any]], *parts: Rows) -> Splits[SequenceDataset]:
        return Splits(*(self._dataset(arrays["x"][rows], arrays["y"][rows]) for rows in parts))


class SmartphoneActivity(_Signals):
    """HAR-2: which of two groups of activities a smartphone at the waist felt in 2.56 seconds.

    One class is sitting, laying and walking upstairs. The other is standing, walking and walking
    downstairs. The nine channels are body acceleration, angular velocity and total acceleration.

    Args:
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 128, 9]`, y `[B]` classes, no lengths.

    Split: 5867 / 1485 / 2947 windows of different people. The test set is the official one.
    Volunteers 27 to 30 of the training set form the validation set.

    Metric: accuracy in percent. Licence: CC BY 4.0.

    Note:
        The papers name neither channels nor a validation set. Nine inputs agree with the printed
        numbers of parameters. The source has no known checksum, so the checksum of the first
        download is stored beside the archive.

    References:
        D. Anguita et al.: A public domain dataset for human activity recognition using smartphones,
        ESANN 2013. UCI Machine Learning Repository, data set 240.
        T. K. Rusch, S. Mishra: coRNN, https://arxiv.org/abs/2010.00951, Table 3.
    """

    name = "har2"
    archive = HAR
    input_size = 9
    output_size = 2
    source = "UCI Machine Learning Repository, data set 240"
    licence = "CC BY 4.0"
    class_names = ("sitting, laying, upstairs", "standing, walking, downstairs")

    def __init__(self, data_dir: Path | None = None) -> None:
        self.sizes = {"train": 5867, "valid": 1485, "test": 2947}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = self._load()
        valid = arrays["subject_train"] >= 27

        def part(name: str, rows: NDArray[np.bool_] | slice) -> SequenceDataset:
            # Group of each activity: walking, upstairs, downstairs, sitting, standing, laying.
            group = np.array([1, 0, 1, 0, 1, 0])[arrays[f"y_{name}"][rows]]
            return self._dataset(arrays[f"x_{name}"][rows], group)

        return Splits(part("train", ~valid), part("train", valid), part("test", slice(None)))


class WatchActivity(_Signals):
    """Watch: which of seven shoulder exercises a smartwatch felt in 2.56 seconds.

    The task replaces `SmartphoneActivity`. Its windows of 128 samples at 50 Hz overlap by half and
    come from 140 recordings of ten people. The six channels are acceleration and angular velocity.

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
    archive = WATCH_IMU
    input_size = 6
    output_size = 7
    source = "smartwatch data of the package seglearn 1.2.5"
    licence = "BSD 3-clause"
    class_names = ("PEN", "ABD", "FEL", "IR", "ER", "TRAP", "ROW")

    def __init__(self, data_dir: Path | None = None) -> None:
        self.sizes = {"train": 2055, "valid": 777, "test": 773}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = self._load()
        ends, subject = arrays["offsets"], arrays["subject"]

        def part(low: int, high: int) -> SequenceDataset:
            x, y = [], []
            for row in np.flatnonzero((subject >= low) & (subject <= high)):
                cut = list(windows(arrays["values"][ends[row] : ends[row + 1]], 128, 64))
                x += cut
                y += [arrays["label"][row]] * len(cut)
            return self._dataset(np.stack(x), np.array(y))

        return Splits(part(1, 6), part(7, 8), part(9, 10))


class Worms(_Signals):
    """EigenWorms: which of five strains a worm is, from 17,984 steps of how it moves.

    Args:
        last: Number of last steps to use, 1 to 17,984. None uses all.
        random: Number of random steps to use, in order and the same for all worms. None uses all.
        split_seed: Seed of the split. LEM's published code has 1234.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 17984, 6]`, y `[B]` classes 0 to 4, no lengths.

    Split: 181 / 39 / 39 worms, drawn by scikit-learn from both parts of the archive together, as in
    the published code.

    Metric: accuracy in percent. Licence: none stated (UEA archive).

    Note:
        The source has no known checksum, so the checksum of the first download is stored beside
        the archive.

    References:
        A. Bagnall et al.: The UEA multivariate time series classification archive, 2018.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 3, Figure 3.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 2.
    """

    name = "eigenworms"
    archive = EIGENWORMS
    input_size = 6
    output_size = 5
    source = "UEA time series classification archive"
    licence = "none stated"
    class_names = tuple(str(i) for i in range(1, 6))
    steps = 17_984
    counts: ClassVar = {"train": 181, "valid": 39, "test": 39}

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
        self.sizes = dict(self.counts)
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        from sklearn.model_selection import train_test_split

        arrays = self._load()
        rows = np.arange(len(arrays["y"]))
        train, rest = train_test_split(rows, test_size=0.3, random_state=self.split_seed)
        valid, test = train_test_split(rest, test_size=0.5, random_state=self.split_seed)
        kept = np.arange(self.steps)[-self.last if self.last else 0 :]
        if self.random is not None:
            rng = seeded_rng("eigenworms steps", self.split_seed)
            kept = np.sort(rng.choice(self.steps, self.random, replace=False))
        return self._parts(arrays | {"x": arrays["x"][:, kept]}, train, valid, test)


class UCRWorms(Worms):
    """Worms: which of five strains a worm is, from 900 steps of the first eigenworm.

    The task replaces EigenWorms and also uses recordings of *C. elegans*. It has one number per
    second instead of six channels. Every series has mean 0 and deviation 1.

    Args:
        last: Number of last steps to use, 1 to 900. None uses all.
        random: Number of random steps to use, in order and the same for all worms. None uses all.
        split_seed: Seed of the split, as for EigenWorms.
        data_dir: Folder of the data, with `ucr/Worms.npz`; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 900, 1]`, y `[B]` classes 0 to 4, no lengths.

    Split: 180 / 39 / 39 worms, drawn from both parts of the archive together, as for EigenWorms.

    Metric: accuracy in percent. Licence: none stated (UCR archive).

    References:
        H. A. Dau et al.: The UCR time series archive, IEEE/CAA Journal of Automatica Sinica, 2019.
    """

    name = "worms"
    archive = WORMS
    input_size = 1
    source = "UCR time series classification archive"
    steps = 900
    counts: ClassVar = {"train": 180, "valid": 39, "test": 39}

    def _load(self) -> dict[str, NDArray[Any]]:
        arrays = super()._load()
        x = np.concatenate([arrays["x_train"], arrays["x_test"]])[:, :, None]
        return {"x": x, "y": np.concatenate([arrays["y_train"], arrays["y_test"]]) - 1}


class _VitalSign(_Signals):
    """Common base of the heart and the respiratory rate."""

    target = "value"
    metric = "rmse"
    input_size = 2
    output_size = 1
    source = "BIDMC in the time series extrinsic regression archive"
    licence = "CC BY 4.0; BIDMC: ODC-By"

    def __init__(self, split_seed: int = 123_456, data_dir: Path | None = None) -> None:
        self.split_seed = natural("split_seed", split_seed)
        self.sizes = {"train": 5565, "valid": 1192, "test": 1192}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = self._load()
        train, rest = self._drawn(len(arrays["y"]), self.sizes["train"])
        test, valid = (rest[part] for part in self._drawn(len(rest), self.sizes["test"]))
        return self._parts(arrays, train, valid, test)

    def _drawn(self, count: int, first: int) -> tuple[Rows, Rows]:
        """Draw two parts of indices, as torch.utils.data.random_split does from a fresh seed."""
        generator = torch.Generator().manual_seed(self.split_seed)
        order = torch.randperm(count, generator=generator).numpy()
        return order[:first], order[first:]


class HeartRate(_VitalSign):
    """BIDMC: the heart rate of a patient from 32 seconds of two signals at 125 Hz, 4000 steps.

    Args:
        split_seed: Seed of the split. LEM's published code has 123456.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 4000, 2]` (photoplethysmogram, electrocardiogram), y `[B, 1]` beats per minute.

    Split: 5565 / 1192 / 1192 windows, drawn at random from both parts of the archive together. Each
    part has windows of every patient.

    Metric: root of the mean squared error, the papers' L2 error. Licence: see the archive.

    Note:
        The source has no known checksum, so the checksum of the first download is stored beside
        the archive.

    References:
        C. W. Tan et al.: Time series extrinsic regression archive, https://arxiv.org/abs/2006.10996.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 3.
    """

    name = "heart-rate"
    archive = BIDMC_HEART


class RespiratoryRate(_VitalSign):
    """BIDMC: the respiratory rate of a patient from 32 seconds of two signals, 4000 steps.

    The task equals `HeartRate`, except that the target is breaths per minute.

    Args:
        split_seed: Seed of the split. LEM's published code has 123456.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 4000, 2]` (photoplethysmogram, electrocardiogram), y `[B, 1]` breaths per minute.

    References:
        C. W. Tan et al.: Time series extrinsic regression archive, https://arxiv.org/abs/2006.10996.
        T. K. Rusch, S. Mishra: UnICORNN, https://arxiv.org/abs/2103.05487, Table 4.
    """

    name = "respiratory-rate"
    archive = BIDMC_RESPIRATION


class SpeechCommands(_Signals):
    """Google12: which of ten commands was said in a second, something else, or nothing.

    Each utterance is 126 frames of 80 mel bands in decibels, standardised.

    Args:
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 126, 80]`, y `[B]` classes 0 to 11, no lengths.

    Split: 84,849 / 9981 / 11,005 utterances, from the official lists. All unknown words are used.
    Silence is the first second of six long recordings of noise in training, as in LEM's published
    code. Validation and test contain no silence.

    Metric: accuracy in percent. Licence: CC BY 4.0.

    Note:
        The paper does not define its features. These are the features of its published code, which
        also drops 3 % of their values in training; this task does not. The archive is checked
        against its known checksum.

    References:
        P. Warden: Speech commands, https://arxiv.org/abs/1804.03209.
        T. K. Rusch et al.: Long Expressive Memory, https://arxiv.org/abs/2110.04744, Table 5.
    """

    name = "google12"
    archive = SPEECH_COMMANDS
    input_size = 80
    output_size = 12
    source = "Speech Commands, version 2"
    licence = "CC BY 4.0"
    class_names = KEYWORDS

    def __init__(self, data_dir: Path | None = None) -> None:
        self.sizes = {"train": 84_849, "valid": 9981, "test": 11_005}
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = self._load()
        return self._parts(arrays, *(np.flatnonzero(arrays["part"] == n) for n in range(3)))
