"""Tables of numbers: features, splits, standardisation by training rows alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anharmonic.data import TableDataset
from anharmonic.data.base import seeded_rng
from anharmonic.data.parts import split_indices
from anharmonic_papers.tasks import tables
from anharmonic_papers.tasks.archives import BEIJING_AIR
from anharmonic_papers.tasks.prepare import AIR_COLUMNS
from anharmonic_papers.tasks.tables import BeijingAir, BreastCancer, standardised

START = np.datetime64("2013-12-31T20", "h")


def test_beijing_calendar():
    columns = tables._calendar(START, 6)
    assert columns[0].tolist() == [1, 2013, 12, 31, 20]
    assert columns[3].tolist() == [4, 2013, 12, 31, 23]
    assert columns[4].tolist() == [5, 2014, 1, 1, 0]


def test_beijing_features_are_the_other_columns_scaled_by_training_rows(tmp_path, monkeypatch):
    """Two stations and thirty hours, in two of which a value is missing."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 30, 11)).astype(np.float32) + 5
    values[0, 3, 2] = values[1, 29, 4] = np.nan
    (tmp_path / "sequence").mkdir()
    names = {"columns": AIR_COLUMNS, "stations": ["A", "B"], "time0": str(START)}
    np.savez(tmp_path / "sequence" / "beijing_air.npz", values=values, **names)
    monkeypatch.setattr(tables, "BEIJING_AIR", replace(BEIJING_AIR, digest=None))
    monkeypatch.setattr(BeijingAir, "largest", (30, 10, 10))

    time, values = np.tile(tables._calendar(START, 30), (2, 1)), values.reshape(60, 11)
    whole = np.concatenate((time, values[:, :4], values[:, 5:], values[:, 4:5]), axis=1)
    whole = whole[np.isfinite(whole).all(1)]
    assert len(whole) == 58
    for seed in (1234, 1):
        rows = split_indices(58, (30, 10, 10), seeded_rng("beijing air", seed))
        for sizes in ((30, 10, 10), (20, 5, 5)):
            train = whole[rows[0][: sizes[0]]]
            parts = BeijingAir(*sizes, split_seed=seed, data_dir=tmp_path).splits()
            for part, chosen, size in zip(parts, rows, sizes, strict=True):
                exact = (whole[chosen[:size]] - train.mean(0)) / train.std(0)
                np.testing.assert_allclose(part.x, exact[:, :15], rtol=0, atol=1e-5)
                np.testing.assert_allclose(part.y, exact[:, 15:], rtol=0, atol=1e-5)


def test_a_constant_column_is_only_shifted():
    constant = np.array([[3.0, 1.0], [3.0, 2.0], [4.0, 3.0]])
    assert standardised(constant, np.array([0, 1]))[:, 0].tolist() == [0.0, 0.0, 1.0]


def test_breast_cancer():
    task = BreastCancer()
    assert task.summary() == (
        "breast-cancer: 569 rows (341 train, 114 valid, 114 test), 30 features, "
        "one of 2 classes per row"
    )
    parts = task.splits()
    shares = [float(part.y.double().mean()) for part in parts]
    assert max(shares) - min(shares) < 0.01  # each class in its share
    assert len(torch.cat([part.x for part in parts]).unique(dim=0)) == 569
    assert parts.train.x.mean(0).abs().max() < 1e-5
    assert BreastCancer(metric="cross_entropy").metric == "cross_entropy"


def test_batches_are_rows():
    batch = BreastCancer().loaders(0, 100).train(0)[3]
    assert batch.x.shape == (41, 30) and batch.y.dtype == torch.int64
    assert len(batch.inputs) == 1 and batch.inputs[0] is batch.x
    with pytest.raises(ValueError, match=r"x must be \[N, F\]; got shape \[3\]"):
        TableDataset(torch.zeros(3), torch.zeros(3))
