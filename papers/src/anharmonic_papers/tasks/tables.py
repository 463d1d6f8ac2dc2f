"""Tabular data sets for the papers' neural ODEs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import choice, natural
from anharmonic.data import (
    Splits,
    TableDataset,
    TabularTask,
    load_arrays,
    seeded_rng,
    split_indices,
)
from anharmonic_papers.tasks.archives import BEIJING_AIR
from anharmonic_papers.tasks.official_split import bounded_sizes


class BeijingAir(TabularTask):
    """Air quality in Beijing: the carbon monoxide of an hour from its other 15 numbers.

    The data are hourly values of 12 stations from March 2013 to February 2017. Hours with a missing
    value are left out. The features are the other numerical columns of the source: hour index,
    year, month, day, hour, PM2.5, PM10, SO2, NO2, O3, temperature, pressure, dew point, rain and
    wind speed.

    Args:
        train_size: Rows for training, in [1, 306869]. Fewer make a reduced budget.
        valid_size: Rows for validation, in [1, 38358].
        test_size: Rows for the test, in [1, 38358].
        split_seed: Seed of the split, in `[0, 2**32)`.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[B, 15]`, y `[B, 1]`.

    Split: 306,869 training, 38,358 validation and 38,358 test rows, drawn at random.

    Metric: mean squared error of the standardised target (1 for always predicting the mean).
    Licence: CC BY 4.0.

    Note:
        The thesis names the data set and 15 features, but neither split nor scaling. Features and
        target are standardised with the means and deviations of the training rows. The split is
        random over hours and stations. Neighbouring hours fall into different parts, so the error
        does not measure forecasts.

    References:
        F. Nestaas: Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior,
        thesis, 2022, section 4.1.
        S. Chen: Beijing Multi-Site Air Quality, UCI Machine Learning Repository, data set 501.
        S. Zhang et al.: Cautionary tales on air-quality improvement in Beijing, Proc. R. Soc. A,
        2017.
    """

    name = "beijing-air"
    target = "value"
    metric = "mse"
    input_size = 15
    output_size = 1
    source = "UCI Machine Learning Repository, data set 501"
    licence = "CC BY 4.0"
    largest = (306_869, 38_358, 38_358)

    def __init__(
        self,
        train_size: int = 306_869,
        valid_size: int = 38_358,
        test_size: int = 38_358,
        split_seed: int = 1234,
        data_dir: Path | None = None,
    ) -> None:
        self.sizes = bounded_sizes((train_size, valid_size, test_size), self.largest)
        self.split_seed = natural("split_seed", split_seed)
        self.data_dir = data_dir

    def _build(self) -> Splits[TableDataset]:
        arrays = load_arrays(BEIJING_AIR, self.data_dir, progress=self.progress)
        stations, hours, _ = arrays["values"].shape
        first = np.datetime64(str(arrays["time0"]), "h")
        values = arrays["values"].reshape(stations * hours, -1)
        calendar = np.tile(_calendar(first, hours), (stations, 1))
        complete = np.flatnonzero(np.isfinite(values).all(axis=1))
        pollutant = list(arrays["columns"]).index("CO")
        table = np.concatenate((calendar, np.delete(values, pollutant, axis=1)), axis=1)
        parts = split_indices(
            len(complete), self.largest, seeded_rng("beijing air", self.split_seed)
        )
        sizes = self.sizes.values()
        rows = [complete[part[:size]] for part, size in zip(parts, sizes, strict=True)]
        x, y = (standardised(v, rows[0]) for v in (table, values[:, [pollutant]]))
        return _split(x, y, rows)


class BreastCancer(TabularTask):
    """Breast Cancer Wisconsin: malignant or benign, from 30 numbers of cell nuclei (no download).

    Args:
        metric: "accuracy" in percent, or "cross_entropy", the loss itself.
        split_seed: Seed of the split, in `[0, 2**32)`.

    Shape:
        x `[B, 30]`, y `[B]` classes 0 (malignant) and 1 (benign).

    Split: 341 training, 114 validation and 114 test rows, stratified by class.

    Metric: accuracy in percent, or cross entropy in nats. Licence: CC BY 4.0 (UCI Machine Learning
    Repository, data set 17). Ships with scikit-learn.

    Note:
        The thesis names neither split nor scaling. Features are standardised with the means and
        deviations of the training rows.

    Example:
        >>> task = BreastCancer()
        >>> batch = task.loaders(seed=0, batch_size=8).train(0)[0]
        >>> list(batch.x.shape), list(batch.y.shape)
        ([8, 30], [8])

    References:
        F. Nestaas: Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior,
        thesis, 2022, section 4.2.
        W. Wolberg, O. Mangasarian, N. Street, W. Street: Breast Cancer Wisconsin (Diagnostic), UCI,
        1993.
    """

    name = "breast-cancer"
    target = "class"
    input_size = 30
    output_size = 2
    source = "scikit-learn load_breast_cancer (UCI Breast Cancer Wisconsin, Diagnostic)"
    licence = "CC BY 4.0"
    class_names = ("malignant", "benign")

    def __init__(
        self,
        metric: Literal["accuracy", "cross_entropy"] = "accuracy",
        split_seed: int = 1234,
    ) -> None:
        choice("metric", metric, ("accuracy", "cross_entropy"))
        self.metric = metric
        self.split_seed = natural("split_seed", split_seed)
        self.sizes = {"train": 341, "valid": 114, "test": 114}

    def _build(self) -> Splits[TableDataset]:
        from sklearn.datasets import load_breast_cancer

        loaded: Any = load_breast_cancer()
        rng = seeded_rng("breast cancer", self.split_seed)
        rows = split_indices(len(loaded.target), list(self.sizes.values()), rng, loaded.target)
        x = standardised(loaded.data, rows[0])
        return _split(x, torch.from_numpy(loaded.target).to(torch.int64), rows)


def _split(x: Tensor, y: Tensor, parts: Sequence[NDArray[np.int64]]) -> Splits[TableDataset]:
    return Splits(*(TableDataset(x[rows], y[rows]) for rows in map(torch.from_numpy, parts)))


def standardised(values: NDArray[Any], rows: NDArray[np.int64]) -> Tensor:
    """Standardise columns by their mean and deviation over some rows; float32 `[N, F]`.

    A column that is constant over these rows is only shifted.
    """
    chosen = values[rows].astype(np.float64)
    deviation = chosen.std(axis=0)
    scaled = (values - chosen.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return torch.from_numpy(scaled.astype(np.float32))


def _calendar(first: np.datetime64, hours: int) -> NDArray[np.float64]:
    """Return the hour index (from 1), year, month, day and hour, `[hours, 5]`."""
    time = first + np.arange(hours)
    day, month, year = (time.astype(f"datetime64[{unit}]") for unit in "DMY")
    columns = (
        np.arange(1, hours + 1),
        year.astype(int) + 1970,
        month.astype(int) % 12 + 1,
        (day - month.astype("datetime64[D]")).astype(int) + 1,
        (time - day.astype("datetime64[h]")).astype(int),
    )
    return np.stack(columns, axis=1).astype(np.float64)
