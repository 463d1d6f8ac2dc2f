import numpy as np
import pytest
import torch

from anharmonic.data import FileTask, SequencesTask, save_npz, sequences_from
from anharmonic.data.answers import answers, trivial_score
from anharmonic.data.own import inputs_of


@pytest.fixture
def part():
    rng = np.random.default_rng(0)
    x = [rng.random((steps, 2)) for steps in rng.integers(5, 9, 30)]
    return sequences_from(x, np.tile(["a", "b", "c"], 10))


OPTIONS = {"difference": True, "split_seed": 3, "valid_share": 0.2}


def test_data_in_memory_are_cut_and_prepared_as_those_of_a_file(part, tmp_path):
    here = SequencesTask({"all": part}, **OPTIONS)
    there = FileTask(save_npz(tmp_path / "mine.npz", part), **OPTIONS)
    assert here.sizes == there.sizes and here.class_names == there.class_names
    assert here.preprocessing == there.preprocessing
    every = torch.arange(4)
    for mine, other in zip(here.splits(), there.splits(), strict=True):
        assert torch.equal(mine.take(every).x, other.take(every).x)
        assert torch.equal(mine.take(every).y, other.take(every).y)


def test_class_weights_are_one_per_class(part):
    assert SequencesTask({"all": part}, class_weights=[1, 2, 3]).class_weights == (1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match=r"class_weights.*3 numbers.*\[1, 2\]"):
        SequencesTask({"all": part}, class_weights=[1, 2])
    with pytest.raises(ValueError, match="class_weights"):
        SequencesTask({"all": part.with_targets(np.arange(30.0) / 7)}, class_weights=[1.0])
    with pytest.raises(ValueError, match="classes of y in my arrays"):
        SequencesTask({"all": part.with_targets(np.zeros(30, int))}, source="my arrays")


def test_inputs_are_prepared_with_the_numbers_of_training(part):
    task = SequencesTask({"train": part, "test": part})
    inputs = inputs_of(part, task.preprocessing)
    every = torch.arange(len(part))
    assert torch.equal(inputs.dataset.take(every).x, task.splits().test.take(every).x)
    assert inputs.owners.tolist() == every.tolist()


def long_recordings(count, steps, y, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, steps, 1))
    return sequences_from(x, y)


def test_windows_are_answered_once_for_every_recording():
    part = long_recordings(20, 60, ["a", "b"] * 10)
    task = SequencesTask({"all": part}, window=20, stride=5)
    assert task.sizes["train"] == 14 * 9 and task.sizes["test"] == 3
    test = task.loaders(0, 4).test

    def guess(batch):  # the first value of a window
        return torch.stack([batch.x[:, 0, 0], -batch.x[:, 0, 0]], 1)

    ((scores, batch),) = answers(test, guess, classes=True)
    assert scores.shape == (3, 2) and batch.y.shape == (3,)
    windows = torch.cat([guess(one).softmax(1) for one in test]).reshape(3, 3, 2)
    torch.testing.assert_close(scores.exp(), windows.mean(1))


def test_windows_are_answered_once_for_every_step():
    part = long_recordings(1, 200, np.tile([0.0, 1.0], 100).reshape(1, 200, 1))
    test = SequencesTask({"all": part}, window=16, stride=2).loaders(0, 2).test
    ((values, batch),) = answers(test, lambda one: one.y, classes=False)
    assert values.shape == (1, 30, 1)  # 15 % of the steps, each once
    assert torch.equal(batch.y[0, :, 0], torch.tensor([0.0, 1.0] * 15))


def test_windows_longer_than_recordings_are_said():
    recordings = [np.zeros(6 + 10 * (i % 2)) for i in range(20)]
    part = sequences_from(recordings, ["a", "b"] * 10)
    assert "10 of them are shorter than that" in SequencesTask({"all": part}, window=8).summary()
    said = "every recording is shorter than that and not cut"
    assert said in SequencesTask({"all": part}, window=100).summary()


def test_the_metric_is_chosen(part):
    task = SequencesTask({"all": part}, metric="balanced_accuracy")
    assert task.metric == "balanced_accuracy" and not task.is_unbalanced
    assert trivial_score(task, task.loaders(0, 8)) == pytest.approx(100 / 3)
    usual = SequencesTask({"all": part.with_targets(np.array(["a"] * 26 + ["b"] * 4))})
    assert usual.metric == "accuracy" and usual.is_unbalanced
    values = part.with_targets(np.arange(30.0) / 7)
    assert SequencesTask({"all": values}, metric="mae").metric == "mae"
    with pytest.raises(ValueError, match=r"metric for targets that are a value.*rmse, mse or mae"):
        SequencesTask({"all": values}, metric="balanced_accuracy")


def seasonal(steps, season=12, seed=0):
    rng = np.random.default_rng(seed)
    again = np.tile(rng.normal(size=season) * 5, steps // season + 1)[:steps]
    return sequences_from((again + rng.normal(size=steps))[None])


def test_forecasts_are_compared_with_the_season_too():
    task = SequencesTask({"all": seasonal(600)}, horizon=3)
    assert task.preprocessing.season == 12
    assert "12 steps before (found in the training part)" in task.summary()
    loaders = task.loaders(0, 16)
    both = trivial_score(task, loaders)
    task.seasonal = None
    last = trivial_score(task, loaders)
    assert both < 0.5 * last and both == pytest.approx(np.sqrt(2), rel=0.2)


def test_a_season_may_be_given_and_noise_has_none():
    task = SequencesTask({"all": seasonal(600, 7)}, horizon=2, season=14)
    assert task.preprocessing.season == 14 and "(given)" in task.summary()
    with pytest.raises(ValueError, match=r"season.*pass horizon"):
        SequencesTask({"all": seasonal(600)}, season=12)
    noise = sequences_from(np.random.default_rng(0).normal(size=(1, 400)).cumsum(1))
    task = SequencesTask({"all": noise}, horizon=3)
    assert task.seasonal is None and task.preprocessing.season == 0


def test_gaps_that_training_had_none_of_are_filled_and_said(part):
    new, how = part.select(np.array([0, 1])), SequencesTask({"all": part}).preprocessing
    every = torch.arange(2)
    new.x[2, 0] = new.x[1, 0]
    expected = inputs_of(new, how).dataset.take(every).x
    new.x[2, 0] = np.nan
    with pytest.warns(UserWarning, match="1 of the values in x .* last known value"):
        assert torch.equal(inputs_of(new, how).dataset.take(every).x, expected)


def test_arrays_that_may_have_channels_first_are_hinted_at():
    x = np.random.default_rng(0).normal(size=(20, 3, 100))
    part = sequences_from(x, ["a", "b"] * 10)
    assert "x.transpose(0, 2, 1)" in SequencesTask({"all": part}).hint
    part = sequences_from(x, ["a", "b"] * 10, channels_first=True)
    assert SequencesTask({"all": part}).hint == ""


def test_a_training_part_of_one_class_is_refused():
    part = long_recordings(1, 100, np.repeat([[0, 1]], 50, axis=1)[..., None].astype(int))
    with pytest.raises(ValueError, match=r"two classes or more.*only '0', none of 1.*in its end"):
        SequencesTask({"all": part}, window=4, valid_share=0.4)


def test_masked_entries_are_missing():
    x = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 1], [0, 0, 0]])
    part = sequences_from(x, ["a", "b"])
    assert np.isnan(part.x[2, 0]) and np.isnan(part.x).sum() == 1
    assert np.isnan(sequences_from([x[0], x[1]]).x[2, 0])
    with pytest.raises(ValueError, match="masked entries of y"):
        sequences_from(np.ones((2, 3)), np.ma.array([1, 2], mask=[True, False]))


def test_names_of_arrays_that_other_packages_use(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2
    parts = ("train", "val", "test")
    arrays = {f"X_{part}": x for part in parts} | {f"Y_{part}": y for part in parts}
    np.savez(tmp_path / "mine.npz", **arrays)
    assert FileTask(tmp_path / "mine.npz").sizes == {"train": 20, "valid": 20, "test": 20}


def test_bytes_of_different_names_stay_different(part):
    names = np.array(["gr\xfcn", "gr\xf6n", "blau"]).astype("U5")
    latin = np.array([name.encode("latin-1") for name in names.tolist() * 10])
    assert len(SequencesTask({"all": part.with_targets(latin)}).class_names) == 3


def test_unknown_float32_targets_stay_unknown_when_the_data_are_prepared_again():
    y = np.random.default_rng(0).normal(size=(20, 6, 1)).astype(np.float32)
    y[:, 2] = np.nan
    task = SequencesTask({"all": sequences_from(np.zeros((20, 6, 2)), y)})
    assert np.isnan(y[:, 2]).all()
    again = task.with_options({"valid_share": 0.0}).splits().train
    assert again.known[:, 2].sum() == 0 and again.known.sum() == 5 * len(again)


def test_a_part_without_any_target_is_refused():
    y = np.full((20, 6, 1), np.nan)
    y[0] = 1.0
    with pytest.raises(ValueError, match=r"targets of the \w+ part of memory must be known"):
        SequencesTask({"all": sequences_from(np.zeros((20, 6, 2)), y)})
