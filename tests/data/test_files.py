import hashlib
import warnings

import numpy as np
import pytest
import torch

from anharmonic.data.own import FileTask, read_inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import file_digest, read_parts

HEADER = "@univariate true\n@classLabel true a b\n@data\n"
PARTS = ("train", "valid", "test")


def save(folder, **arrays):
    np.savez(folder / "mine.npz", **arrays)
    return folder / "mine.npz"


def numbered(count, steps=4):
    """Sequences that say which they are."""
    return np.repeat(np.arange(float(count))[:, None], steps, axis=1)


def as_saved(task):
    """The preprocessing as a run keeps it."""
    return Preprocessing.from_dict(task.preprocessing.to_dict())


def test_classes_are_split_in_their_share(tmp_path):
    path = save(tmp_path, x=numbered(100), y=np.array(["yes", "no"] * 50))
    task = FileTask(path, standardise=False)
    assert task.sizes == {"train": 70, "valid": 15, "test": 15}
    assert (task.target, task.readout, task.metric) == ("class", "last", "accuracy")
    assert (task.class_names, task.output_size, task.input_size) == (("no", "yes"), 2, 1)
    seen = []
    for part in task.splits():
        assert part.x.shape[1:] == (4, 1)
        counts = torch.bincount(part.y)
        assert abs(int(counts[0] - counts[1])) <= 1
        # An even number is "yes", that is class 1, and stays so.
        assert torch.equal(part.y, 1 - part.x[:, 0, 0].long() % 2)
        seen += part.x[:, 0, 0].tolist()
    assert sorted(seen) == list(range(100))
    other = FileTask(path, standardise=False, split_seed=1).splits().test
    assert not torch.equal(other.x, task.splits().test.x)


def test_values_per_step_of_ragged_data(tmp_path):
    x, offsets = np.arange(21.0), np.cumsum([0, 2, 5, 3, 4, 1, 6])
    task = FileTask(save(tmp_path, x=x, y=10 * x, offsets=offsets), standardise=False)
    assert (task.target, task.readout, task.metric) == ("value", "all", "rmse")
    assert task.sizes == {"train": 4, "valid": 1, "test": 1}
    batches = [batch for part in task.splits() for batch in part.batches(2)]
    assert all(torch.equal(batch.y, 10 * batch.x) for batch in batches)
    assert sum(int(batch.x.sum()) for batch in batches) == 210


def test_standardise_is_learnt_from_training_only(tmp_path):
    given = {"x_train": numbered(4), "y_train": [0, 1, 0, 1], "x_valid": numbered(2)}
    given |= {"y_valid": [0, 1], "x_test": 100 + numbered(2), "y_test": [1, 0]}
    task = FileTask(save(tmp_path, **given))
    train, valid, test = task.splits()
    assert float(train.x.mean()) == pytest.approx(0, abs=1e-6)
    assert float(train.x.std(correction=0)) == pytest.approx(1, abs=1e-6)
    assert float(test.x.mean()) > 50
    assert task.preprocessing.mean == (1.5,) and len(valid) == 2
    joined = FileTask(task.path, valid_share=0.0).summary()
    assert "the validation part of the file is used for training" in joined
    assert "split" not in joined


def test_a_validation_part_is_cut_from_training_data_or_left_out(tmp_path):
    given = {"x_train": numbered(20), "y_train": np.arange(20) % 2}
    given |= {"x_test": numbered(5), "y_test": np.arange(5) % 2}
    task = FileTask(save(tmp_path, **given), standardise=False)
    assert task.sizes == {"train": 17, "valid": 3, "test": 5}
    assert task.splits().test.x[:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    without = FileTask(task.path, valid_share=0.0)
    assert without.sizes == {"train": 20, "valid": 0, "test": 5}
    assert without.splits().valid is None and list(without.loaders(0, 4).valid) == []
    assert "20 train" in without.summary()


def test_ts_pair(tmp_path):
    rows = "".join(f"{i},{i},{i}:{'ab'[i % 2]}\n" for i in range(20))
    train, test = tmp_path / "Small_TRAIN.ts", tmp_path / "Small_TEST.ts"
    train.write_text(HEADER + rows)
    test.write_text(HEADER + "5,6:b\n7:a\n")
    for path in (train, test):
        task = FileTask(path, standardise=False)
        assert task.sizes == {"train": 17, "valid": 3, "test": 2}
        assert task.splits().test.y.tolist() == [1, 0] and task.class_names == ("a", "b")
        assert task.loaders(0, 2).test[0].lengths.tolist() == [2, 1]
    before = file_digest(train)
    assert before == file_digest(test)
    test.write_text(HEADER + "5,6:b\n8:a\n")
    assert file_digest(train) != before
    test.unlink()
    with pytest.raises(FileNotFoundError, match=r"existing file; got .*Small_TEST.ts"):
        FileTask(train)


def test_digest(tmp_path):
    path = save(tmp_path, x=numbered(10), y=np.arange(10) % 2)
    digest = file_digest(path)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert FileTask(path, sha256=digest).sizes["test"] == 2
    said = r"sha256 of mine.npz must be abc; got '[0-9a-f]{64}'; give the file"
    with pytest.raises(ValueError, match=said):
        FileTask(path, sha256="abc")


def test_read_inputs_does_as_in_training(tmp_path):
    saved = as_saved(FileTask(save(tmp_path, x=numbered(10), y=np.arange(10) % 2)))
    np.savez(tmp_path / "new.npz", x=numbered(3))
    batch = read_inputs(tmp_path / "new.npz", saved).dataset.take(torch.arange(3))
    expected = (np.arange(3) - saved.mean[0]) / saved.std[0]
    np.testing.assert_allclose(batch.x[:, 0, 0].numpy(), expected, rtol=1e-6)
    assert batch.y.shape == (3, 0)
    (tmp_path / "new.ts").write_text(HEADER + "0,0,0,0:a\n1,1:b\n")
    ragged = read_inputs(tmp_path / "new.ts", saved).dataset
    assert ragged.lengths.tolist() == [4, 2]
    np.testing.assert_allclose(ragged.x[-1, 0].numpy(), expected[1], rtol=1e-6)
    given = {"x_train": numbered(4), "y_train": [0, 1, 0, 1], "x_test": numbered(2)}
    with pytest.raises(ValueError, match=r"keys of mine.npz must be x; got .*x_train.*; store"):
        read_inputs(save(tmp_path, **given, y_test=[0, 1]), saved)


@pytest.mark.covering
@pytest.mark.parametrize("sequence", [0, 3, 11, 19])
@pytest.mark.parametrize("form", ["dense", "padded", "flat"])
@pytest.mark.parametrize(("value", "missing"), [(np.nan, "error"), (np.inf, "mean")])
def test_broken_inputs_are_named_by_their_place_in_the_file(
    tmp_path, sequence, form, value, missing
):
    lengths = np.arange(20) % 4 + 3
    x = np.zeros((20, 6, 2))
    x[sequence, 2, 1] = value
    arrays = {"x": x, "y": np.arange(20) % 2}
    if form == "padded":
        arrays["lengths"] = lengths
        x[0, 3:] = np.nan  # padding may hold anything
    if form == "flat":
        arrays["x"] = x[np.arange(6) < lengths[:, None]]
        arrays["offsets"] = np.cumsum([0, *lengths])
    place = rf"got {value} at sequence {sequence}, step 2, channel 1 \(1 such entries\)"
    for seed in (0, 1):
        with pytest.raises(ValueError, match=place):
            FileTask(save(tmp_path, **arrays), missing=missing, split_seed=seed)


def test_gaps_are_named_by_their_part_and_filled_if_wanted(tmp_path):
    x = numbered(20)
    x[7:9, 1] = x[15, 0] = np.nan
    given = {"x_test": numbered(3), "y_test": [0, 1, 0], "y_train": np.arange(20) % 2}
    path = save(tmp_path, x_train=x, **given)
    said = r"\(train\) must be finite; got nan at sequence 7, step 1, .*\(3 such"
    with pytest.raises(ValueError, match=said):
        FileTask(path)
    assert all(part.x.isfinite().all() for part in FileTask(path, missing="mean").splits())


def test_classes_too_rare_for_every_part_are_warned_of(tmp_path):
    y = ["a"] * 10 + ["b"] * 7 + ["lone"] + ["two"] * 2
    said = (
        r"every class in mine.npz must have at least 3 sequences to be in train, valid and test; "
        r"got 1 of class 'lone', 2 of class 'two'; add sequences of these classes"
    )
    with pytest.warns(UserWarning, match=said):
        assert FileTask(save(tmp_path, x=numbered(20), y=y)).output_size == 4
    x = {"x_train": numbered(20), "x_test": numbered(2), "y_test": ["a", "b"]}
    with pytest.warns(UserWarning, match=r"at least 2 .* in train and valid; got 1 of class 'lon"):
        FileTask(save(tmp_path, **x, y_train=y))
    many = [*("a" * 13), *"bcdefgh"]
    with pytest.warns(UserWarning, match=r"1 of class 'f', few of 2 more classes; add"):
        FileTask(save(tmp_path, x=numbered(20), y=many))


def test_no_warning_where_every_class_has_enough_or_the_split_is_given(tmp_path):
    given = {f"x_{part}": numbered(3) for part in PARTS}
    given |= {f"y_{part}": [*"abb"] for part in PARTS}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FileTask(save(tmp_path, x=numbered(20), y=["a"] * 17 + ["b"] * 3))
        FileTask(save(tmp_path, x=numbered(20), y=np.arange(20.0)))
        assert FileTask(save(tmp_path, **given)).summary().endswith("\nclasses a 3, b 6")


def test_summary(tmp_path):
    lengths, y = np.arange(60) % 15 + 5, np.array(["a", "b", "c"] * 20)
    offsets = np.cumsum([0, *lengths])
    task = FileTask(save(tmp_path, x=np.zeros((sum(lengths), 2)), y=y, offsets=offsets))
    assert task.hint == "" and task.summary() == (
        "mine.npz: 60 sequences (42 train, 9 valid, 9 test), 5 to 19 steps, 2 channels, "
        "3 classes per sequence\nclasses a 20, b 20, c 20; split at random"
    )
    x = numbered(10)
    assert "1 value per sequence" in FileTask(save(tmp_path, x=x, y=x[:, 0])).summary()
    assert "2 values per step" in FileTask(save(tmp_path, x=x, y=np.zeros((10, 4, 2)))).summary()
    x[0, :2] = np.nan
    known = {"x": x, "y": np.arange(10) % 2, "groups": [*"abcdeabcde"]}
    groups = FileTask(save(tmp_path, **known), missing="mean", test_groups=["a", "b"])
    assert groups.summary().endswith(
        "classes 0 5, 1 5; 5 % of the inputs missing (mean); split by groups (5, a and b for test)"
    )
    series = np.arange(90.0)[None]
    said = FileTask(save(tmp_path, x=series), horizon=3, window=8).summary()
    assert said.endswith(
        "8 steps, 1 channel, the next 3 steps of 1 channel\n"
        "windows of 8 steps of 1 recording; split by time"
    )
    series[0, 30] = np.nan  # an answer of three windows
    said = FileTask(save(tmp_path, x=series), horizon=3, window=8, missing="mean").summary()
    assert "of 1 recording, 3 windows left out for missing values to forecast; " in said


def test_hint_that_values_may_be_classes(tmp_path):
    x, y = numbered(12), np.arange(12.0) % 3
    path = save(tmp_path, x=x, y=y)
    assert FileTask(path).hint == (
        "y in mine.npz is taken as values, but holds only 3 distinct whole numbers; "
        "target=class makes them classes."
    )
    classes, values = FileTask(path, target="class"), FileTask(path, target="value")
    assert (classes.output_size, values.output_size, values.metric) == (3, 1, "rmse")
    assert classes.hint == values.hint == ""
    for other in (y + 0.5, np.arange(12.0), np.ones(12), np.stack([y, y], 1), np.ones((12, 4, 1))):
        assert FileTask(save(tmp_path, x=x, y=other)).hint == ""


def test_hint_that_a_class_may_mean_unknown(tmp_path):
    x, names = numbered(12), np.array(["up", "?", "down", "None"] * 3)
    assert FileTask(save(tmp_path, x=x, y=names)).hint == (
        "'?' in mine.npz is taken as a class. If it means that the class is not known, leave those "
        "cells empty."
    )
    assert FileTask(save(tmp_path, x=x, y=np.where(names == "?", "side", names))).hint == ""


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    def refused(said, **arrays):
        with pytest.raises(ValueError, match=said):
            FileTask(save(tmp_path, **arrays))

    x = {"x_train": numbered(4), "x_test": numbered(2), "y_train": [0, 1, 0, 1]}
    refused(r"of one kind in all parts; got {'train': 'int64 \[4\]', 'test", **x, y_test=[0.5, 2])
    wide = {"x_train": np.zeros((4, 2, 3)), "x_test": np.zeros((2, 2, 2)), "y_test": [0, 1]}
    refused(r"channels of x in .* must be 3, as in training; got 2", **(x | wide))
    one = {"x_train": [[1.0]], "y_train": [0.5], "x_test": [[1.0]], "y_test": [0.5]}
    refused("at least 2, to be cut into train, valid; got 1", **one)
    refused(r"at least 3, .* train, valid, test; got 2; add", x=numbered(2), y=[0, 1])


def test_option_errors(tmp_path):
    path = save(tmp_path, x=numbered(10), y=np.arange(10) % 2)
    with pytest.raises(ValueError, match="target must be one of 'auto', 'class', 'value'"):
        FileTask(path, target="classes")
    with pytest.raises(ValueError, match="split_seed must be"):
        FileTask(path, split_seed=-1)


def test_groups_of_the_file_stay_whole(tmp_path):
    x, y = numbered(40), np.arange(40) % 2
    task = FileTask(save(tmp_path, x=x, y=y, groups=np.arange(40) // 4), standardise=False)
    held = [set((part.x[:, 0, 0] // 4).tolist()) for part in task.splits()]
    assert sum(map(len, held)) == len(set.union(*held)) == 10
    named = FileTask(task.path, standardise=False, test_groups=["3", "9"])
    assert set((named.splits().test.x[:, 0, 0] // 4).tolist()) == {3, 9}


def test_more_channels(tmp_path):
    x = np.random.default_rng(0).random((20, 6, 2))
    x[:, 2, 1] = np.nan
    path = save(tmp_path, x=x, y=np.arange(20) % 2)
    task = FileTask(path, missing="mask", difference=True)
    assert task.input_size == 5 and task.loaders(0, 4).train(0)[0].x.shape == (4, 6, 5)
    assert read_inputs(path, as_saved(task)).dataset.x.shape == (20, 6, 5)


def test_a_table_says_what_its_columns_were_taken_for(tmp_path):
    pytest.importorskip("pyarrow")
    rows = "".join(f"{i % 4},{i / 9},1.5,2,{'up' if i % 2 else 'down'}\n" for i in range(24))
    (tmp_path / "mine.csv").write_text("who,v0,v1,v2,state\n" + rows)
    task = FileTask(tmp_path / "mine.csv", target_column="state", group_column="who")
    first, second, third = task.summary().split("\n")
    assert "24 sequences" in first and task.class_names == ("down", "up")
    assert third == "classes down 12, up 12; split by groups (4)"
    assert "'state'" in second and "'who'" in second and "wide" in second
    assert task.sizes["train"] % 6 == 0  # whole groups of six


def pumps(path, column="pump"):
    """Write five recordings of uneven times; return the file."""
    rng, rows = np.random.default_rng(0), [f"time,{column},flow,state"]
    for name in "ABCDE":
        times = np.cumsum(rng.exponential(1.0, 60) + 0.2)
        for i, time in enumerate(times):
            rows.append(f"{time:.3f},{name},{np.sin(time):.4f},{'on' if i // 10 % 2 else 'off'}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("pump", {"group_column": "pump", "window": 8}),
        ("group", {"window": 8}),
        ("pump", {"id_column": "pump", "group_column": "pump", "window": 8}),
        ("pump", {"group_column": "pump", "horizon": 3, "window": 8, "ignore": ["state"]}),
        ("group", {"split": "groups", "horizon": 3, "window": 8, "ignore": ["state"]}),
    ],
)
def test_recordings_of_one_table_can_be_held_out(tmp_path, column, given):
    pytest.importorskip("pyarrow")
    task = FileTask(pumps(tmp_path / "a.csv", column), elapsed="ignore", **given)
    assert "split by groups (5)" in task.summary()
    assert "id column" in task.summary() and f"group column '{column}'" in task.summary()
    named = FileTask(task.path, test_groups=["E"], elapsed="ignore", **given)
    assert "split by groups (5, E for test)" in named.summary()
    again = read_parts(task.path, targets=False, columns=named.columns)["all"]
    assert again.ids.tolist() == again.groups.tolist() == [*"ABCDE"]


def test_recordings_of_a_folder_can_be_held_out_of_a_forecast(tmp_path):
    for name in "ABCDE":
        np.save(tmp_path / f"{name}-1.npy", np.sin(np.arange(60.0)))
    given = {"horizon": 3, "window": 8, "test_groups": ["E"]}
    with pytest.raises(ValueError, match=r"hold groups for test_groups; .* --group-pattern"):
        FileTask(tmp_path, **given)
    by_path = FileTask(tmp_path, group_pattern="^(.)-", **given)
    assert "split by groups (5, E for test)" in by_path.summary()
    rows = "".join(f"{name}-1.npy,{name}\n" for name in "ABCDE")
    (tmp_path / "labels.csv").write_text("file,group\n" + rows)
    assert "split by groups (5, E for test)" in FileTask(tmp_path, **given).summary()


def test_a_forecast_splits_by_time_unless_groups_are_asked_for(tmp_path):
    pytest.importorskip("pyarrow")
    path, given = pumps(tmp_path / "a.csv", "group"), {"horizon": 3, "ignore": ["state"]}
    assert "split by time" in FileTask(path, **given).summary()
    assert "split by time" in FileTask(path, split="time", group_column="group", **given).summary()
    seasonal = FileTask(path, split="groups", season=6, **given)
    assert len(seasonal.seasonal) == seasonal.sizes["test"]


def test_times_ahead_do_not_depend_on_the_other_series_of_a_file(tmp_path):
    pytest.importorskip("pyarrow")
    path = pumps(tmp_path / "a.csv")
    task = FileTask(path, horizon=2, id_column="pump", ignore=["state"])
    lines = path.read_text().splitlines()
    alone, even = tmp_path / "alone.csv", tmp_path / "even.csv"
    alone.write_text("\n".join(line for line in lines if ",D," in line or "time" in line))
    steady = [f"{40 * i},F,{i % 3},on" for i in range(60)]  # a series with equal steps
    even.write_text("\n".join([*lines, *steady]))
    kept = as_saved(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one, whole, more = (read_inputs(p, kept, task.columns).times for p in (alone, path, even))
    assert np.allclose(one[0], whole[3], atol=1e-3) and np.allclose(more[:5], whole, atol=1e-3)
    assert np.allclose(np.diff(whole), kept.interval) and more[5].tolist() == [2400.0, 2440.0]


def test_windows_of_one_recording(tmp_path):
    path = save(tmp_path, x=np.arange(400.0)[None], y=np.arange(400)[None] % 3)
    task = FileTask(path, standardise=False, window=20, stride=10)
    assert task.sizes == {"train": 27, "valid": 3, "test": 3}  # side by side where it is tested
    assert (task.target, task.readout, task.output_size) == ("class", "all", 3)
    spans = [(part.x.min(), part.x.max()) for part in task.splits()]
    assert spans == [(0, 279), (280, 339), (340, 399)]
    assert all(torch.equal(part.y, part.x[:, :, 0].long() % 3) for part in task.splits())


def test_forecasts(tmp_path):
    t = np.arange(200.0)
    path = save(tmp_path, x=np.stack([t, 100 - 2 * t], axis=1)[None], channels=["up", "down"])
    task = FileTask(path, horizon=3, window=5, forecast=["down"])
    assert (task.target, task.readout, task.metric) == ("value", "last", "rmse")
    assert (task.input_size, task.output_size) == (2, 3)
    assert task.sizes == {"train": 133, "valid": 28, "test": 28}
    for part in task.splits():
        batch = part.take(torch.arange(4))
        # An output of 0 means the last known value.
        assert torch.allclose(batch.select(torch.zeros(4, 3)), (batch.y[:, :1] + 2).expand(4, 3))
        scale = np.sqrt((4 + 16 + 36) / 3)
        output = torch.tensor([[-2.0, -4.0, -6.0]]).expand(4, 3) / scale
        assert torch.allclose(batch.select(output), batch.y, atol=1e-3)
    bare = FileTask(path, horizon=4)
    assert (bare.preprocessing.window, bare.output_size) == (16, 8)
    saved = as_saved(task)
    assert saved == task.preprocessing
    ahead = read_inputs(path, saved).dataset.take(torch.tensor([0]))
    assert ahead.x.shape == (1, 5, 2) and ahead.select(torch.zeros(1, 3)).tolist() == [[-298] * 3]


def test_what_is_far_from_training_is_said(tmp_path):
    rng = np.random.default_rng(0)
    x, elapsed = rng.normal(10, 2, (30, 8, 2)), np.tile([0.0, *[0.5] * 7], (30, 1))
    known = {"channels": ["speed", "height"], "elapsed": elapsed}
    task = FileTask(save(tmp_path, x=x, y=np.arange(30) % 2, **known), elapsed="step")

    def read(**arrays):
        np.savez(tmp_path / "new.npz", **{"elapsed": elapsed, **arrays})
        read_inputs(tmp_path / "new.npz", as_saved(task))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(x=x + 3)
    with pytest.warns(UserWarning, match=r"new.npz should .* channel height has mean .* units"):
        read(x=x * [1, 1000])
    with pytest.warns(UserWarning, match=r"channel speed has .* deviation 0.00"):
        read(x=10 + (x - 10) * [0.001, 1])
    with pytest.warns(UserWarning, match=r"median time is 500 between samples, in training 0.5"):
        read(x=x, elapsed=1000 * elapsed)
    with pytest.raises(ValueError, match=r"channels of x in new.npz must be \['speed', 'height'\]"):
        read(x=x, channels=["height", "speed"])
