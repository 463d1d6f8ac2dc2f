"""Tables of numbers: splits, standardisation by training rows alone, batches, options."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from anharmonic.data.base import seeded_rng
from anharmonic.data.parts import split_indices
from anharmonic.data.tabular import TableBatch, TableDataset
from anharmonic_papers.tasks import tables
from anharmonic_papers.tasks.archives import BEIJING_AIR
from anharmonic_papers.tasks.tables import BeijingAir, BreastCancer, standardised


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An archive of 2 stations and 30 hours, some values missing; parts of 30, 10 and 10 rows."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 30, 11)).astype(np.float32) + 5
    values[0, 3, 2] = values[1, 29, 4] = np.nan
    (tmp_path / "sequence").mkdir()
    columns = ["PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"]
    np.savez(
        tmp_path / "sequence" / "beijing_air.npz",
        values=values,
        columns=np.array(columns),
        stations=np.array(["A", "B"]),
        time0=np.array("2013-12-31T20"),
    )
    monkeypatch.setattr(tables, "BEIJING_AIR", replace(BEIJING_AIR, digest=None))
    monkeypatch.setattr(BeijingAir, "largest", (30, 10, 10))
    return tmp_path


def test_beijing_features_are_the_other_columns(small):
    parts = BeijingAir(30, 10, 10, data_dir=small).splits()
    with np.load(small / "sequence" / "beijing_air.npz") as stored:
        values = stored["values"].reshape(60, 11)
    time = np.tile(tables._calendar(np.datetime64("2013-12-31T20", "h"), 30), (2, 1))
    whole = np.concatenate((time, values[:, :4], values[:, 5:], values[:, 4:5]), axis=1)
    whole = whole[np.isfinite(whole).all(1)]
    assert len(whole) == 58
    rows = split_indices(58, (30, 10, 10), seeded_rng("beijing air", 1234))
    mean, deviation = whole[rows[0]].mean(0), whole[rows[0]].std(0)
    for part, chosen in zip(parts, rows, strict=True):
        exact = (whole[chosen] - mean) / deviation
        np.testing.assert_allclose(part.x, exact[:, :15], rtol=0, atol=1e-5)
        np.testing.assert_allclose(part.y, exact[:, 15:], rtol=0, atol=1e-5)


def test_beijing_calendar(small):
    columns = tables._calendar(np.datetime64("2013-12-31T20", "h"), 6)
    assert columns[0].tolist() == [1, 2013, 12, 31, 20]
    assert columns[3].tolist() == [4, 2013, 12, 31, 23]
    assert columns[4].tolist() == [5, 2014, 1, 1, 0]


def test_beijing_parts_are_disjoint_fixed_and_scaled_by_training_rows(small):
    task = BeijingAir(30, 10, 10, data_dir=small)
    train, valid, test = task.splits()
    rows = torch.cat([part.x for part in (train, valid, test)])
    assert len({tuple(row) for row in rows.tolist()}) == 50
    for values in (train.x[:, 5:], train.y):
        assert values.mean(0).abs().max() < 1e-5
        assert (values.std(0, correction=0) - 1).abs().max() < 1e-5
    assert valid.x[:, 5:].mean(0).abs().max() > 0.05
    again, other = (BeijingAir(30, 10, 10, split_seed=s, data_dir=small) for s in (1234, 1))
    assert torch.equal(again.splits().test.x, test.x)
    assert not torch.equal(other.splits().test.x, test.x)
    fewer = BeijingAir(20, 5, 5, data_dir=small).splits().test
    torch.testing.assert_close(  # the same rows, scaled by fewer
        torch.corrcoef(torch.stack((fewer.x[:, 7], test.x[:5, 7]))), torch.ones(2, 2)
    )
    constant = np.array([[3.0, 1.0], [3.0, 2.0], [4.0, 3.0]])
    assert standardised(constant, np.array([0, 1]))[:, 0].tolist() == [0.0, 0.0, 1.0]


def test_the_real_table(real_data):
    task = BeijingAir(
        train_size=500, valid_size=20, test_size=20, data_dir=real_data("beijing_air.npz")
    )
    assert "540 rows (500 train, 20 valid, 20 test), 15 features, 1 value per row" in task.summary()
    train, _, _ = task.splits()
    assert train.x.isfinite().all() and train.y.std() > 0.9
    # Fine particles follow carbon monoxide, in a city.
    assert np.corrcoef(train.x[:, 5], train.y[:, 0])[0, 1] > 0.6


def test_breast_cancer():
    task = BreastCancer()
    assert task.summary() == (
        "breast-cancer: 569 rows (341 train, 114 valid, 114 test), 30 features, "
        "one of 2 classes per row"
    )
    parts = task.splits()
    shares = [float(part.y.double().mean()) for part in parts]
    assert max(shares) - min(shares) < 0.01  # each class in its share
    rows = torch.cat([part.x for part in parts])
    assert len({tuple(row) for row in rows.tolist()}) == 569
    assert parts.train.x.mean(0).abs().max() < 1e-5
    assert BreastCancer(metric="cross_entropy").metric == "cross_entropy"
    with pytest.raises(ValueError, match="metric must be one of 'accuracy', 'cross_entropy'"):
        BreastCancer(metric="f1")


def test_batches_are_rows():
    batch = BreastCancer().loaders(0, 100).train(0)[3]
    assert (
        isinstance(batch, TableBatch) and batch.x.shape == (41, 30) and batch.y.dtype == torch.int64
    )
    assert len(batch.inputs) == 1 and batch.inputs[0] is batch.x
    assert isinstance(batch._replace(x=batch.x[:2]), TableBatch)


def test_refusals():
    with pytest.raises(ValueError, match=r"x must be \[N, F\]; got shape \[3\]"):
        TableDataset(torch.zeros(3), torch.zeros(3))
