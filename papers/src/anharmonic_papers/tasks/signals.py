"""Recorded signals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from anharmonic._checks import boolean, choice, natural, positive_int, require
from anharmonic.data import SequenceDataset, Splits, Task, load_arrays, seeded_rng, split_indices
from anharmonic_papers.tasks.archives import FSDD
from anharmonic_papers.tasks.official_split import bounded_int

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
LONGEST_RECORDING = 18_262
"""Number of samples of the longest spoken digit."""


class SpokenDigits(Task):
    """Spoken digits: raw speech at 8 kHz, ten English words, six speakers, 1148 to 18,262 steps.

    The 16-bit samples are divided by 32,768, so that they lie in [-1, 1).

    Args:
        split: "official" tests takes 0 to 4 of every speaker and digit (300 recordings). Of the
            other 2700 it keeps 270 for validation, with equal shares of the digits. With "speaker",
            training, validation and test have different speakers.
        max_length: Samples kept from the start of a recording, before `subsample`. None keeps all.
        subsample: Keep every n-th sample, n at least 1. No filter is applied, so frequencies above
            4000 / `subsample` Hz are folded down.
        samples_per_step: Samples that a step reads at once, at least 1. The last step of a
            recording is padded with zeros.
        unit_rms: Whether the kept part of a recording is divided by its root mean square, which is
            0.002 to 0.17. `anharmonic train` does it.
        split_seed: Seed of the validation set of "official", in `[0, 2**32)`.
        valid_speaker: Speaker of the validation set with split "speaker": "george", "jackson",
            "lucas", "nicolas", "theo" or "yweweler".
        test_speaker: Speaker of the test set with split "speaker", not the validation speaker.
        train_size: Number of training recordings, for a reduced budget. None uses all.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, T, samples_per_step]` zero-padded to the longest of the batch, y `[B]` classes 0 to
        9, lengths `[B]`.

    Split: 2430 / 270 / 300 recordings ("official"), 2000 / 500 / 500 ("speaker").

    Metric: accuracy in percent. Licence: CC BY-SA 4.0.

    Note:
        The task is in none of the papers. It is a small, openly licensed replacement for Speech
        Commands. In "official" every speaker is in all parts, so accuracy says nothing about
        unknown voices.

    References:
        Z. Jackson et al.: Free Spoken Digit Dataset, revision 26eb9aaf, DOI 10.5281/zenodo.1342401.
    """

    name = "spoken-digits"
    target = "class"
    readout = "last"
    metric = "accuracy"
    output_size = 10
    source = "Free Spoken Digit Dataset, revision 26eb9aaf"
    licence = "CC BY-SA 4.0"
    class_names = tuple(str(i) for i in range(10))
    recommended: ClassVar[Mapping[str, Any]] = {"unit_rms": True}

    def __init__(
        self,
        split: Literal["official", "speaker"] = "official",
        max_length: int | None = None,
        subsample: int = 1,
        samples_per_step: int = 1,
        unit_rms: bool = False,
        split_seed: int = 1234,
        valid_speaker: str = "theo",
        test_speaker: str = "yweweler",
        train_size: int | None = None,
        data_dir: Path | None = None,
    ) -> None:
        self.split = choice("split", split, ("official", "speaker"))
        self.max_length = None if max_length is None else positive_int("max_length", max_length)
        self.subsample = positive_int("subsample", subsample)
        self.samples_per_step = positive_int("samples_per_step", samples_per_step)
        self.input_size = self.samples_per_step
        self.unit_rms = boolean("unit_rms", unit_rms)
        self.split_seed = natural("split_seed", split_seed)
        self.valid_speaker = choice("valid_speaker", valid_speaker, SPEAKERS)
        self.test_speaker = choice("test_speaker", test_speaker, SPEAKERS)
        fits = valid_speaker != test_speaker
        require(
            fits, "test_speaker", test_speaker, "another than valid_speaker", "choose two speakers"
        )
        sizes = (2430, 270, 300) if split == "official" else (2000, 500, 500)
        self.sizes = dict(zip(("train", "valid", "test"), sizes, strict=True))
        if train_size is not None:
            self.sizes["train"] = bounded_int("train_size", train_size, sizes[0])
        self.data_dir = data_dir

    def _build(self) -> Splits[SequenceDataset]:
        arrays = load_arrays(FSDD, self.data_dir, progress=self.progress)
        rng = seeded_rng("spoken digits split", self.split_seed)
        if self.split == "official":
            test = np.flatnonzero(arrays["take"] < 5)
            rest = np.flatnonzero(arrays["take"] >= 5)
            sizes = [len(rest) - self.sizes["valid"], self.sizes["valid"]]
            train, valid = (
                rest[part] for part in split_indices(len(rest), sizes, rng, arrays["label"][rest])
            )
        else:
            speaker = arrays["speakers"][arrays["speaker"]]
            test = np.flatnonzero(speaker == self.test_speaker)
            valid = np.flatnonzero(speaker == self.valid_speaker)
            others = (speaker != self.test_speaker) & (speaker != self.valid_speaker)
            train = rng.permutation(np.flatnonzero(others))
        train = train[: self.sizes["train"]]
        return Splits(*(self._part(arrays, rows) for rows in (train, valid, test)))

    def _part(self, arrays: dict[str, NDArray[Any]], rows: NDArray[np.int64]) -> SequenceDataset:
        offsets = arrays["offsets"].astype(np.int64)
        pieces = [
            arrays["audio"][offsets[row] : offsets[row + 1]][: self.max_length][:: self.subsample]
            for row in rows
        ]
        ends = np.cumsum([0, *(len(piece) for piece in pieces)])
        flat = np.concatenate(pieces).astype(np.float32) / 32768
        if self.unit_rms:
            power = np.add.reduceat(np.square(flat, dtype=np.float64), ends[:-1]) / np.diff(ends)
            rms = np.where(power > 0, np.sqrt(power), 1.0)  # silence stays silence
            flat /= np.repeat(rms, np.diff(ends)).astype(np.float32)
        steps, width = -(-np.diff(ends) // self.samples_per_step), self.samples_per_step
        starts = np.cumsum([0, *steps])
        frames = np.zeros(starts[-1] * width, dtype=np.float32)
        for start, begin, end in zip(starts * width, ends, ends[1:], strict=False):
            frames[start : start + end - begin] = flat[begin:end]
        labels = arrays["label"][rows].astype(np.int64)
        return SequenceDataset(
            torch.from_numpy(frames.reshape(-1, width)),
            torch.from_numpy(labels),
            offsets=torch.from_numpy(starts),
        )
