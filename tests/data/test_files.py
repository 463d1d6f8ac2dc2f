import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anharmonic.data.own import FileTask, read_inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import file_digest

HEADER = "@univariate true\n@classLabel true a b\n@data\n"


def save(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "mine.npz", **arrays)
    return folder / "mine.npz"


def numbered(count: int, steps: int = 4) -> np.ndarray:
    """Sequences that say which they are."""
    return np.repeat(np.arange(float(count))[:, None], steps, axis=1)


def test_classes_are_split_in_their_share(tmp_path: Path) -> None:
    y = np.array(["yes", "no"] * 50)
    task = FileTask(save(tmp_path, x=numbered(100), y=y), standardise=False)
    assert task.sizes == {"train": 70, "valid": 15, "test": 15}
    assert (task.target, task.readout, task.metric) == ("class", "last", "accuracy")
    assert (task.class_names, task.output_size, task.input_size) == (("no", "yes"), 2, 1)
    seen = []
    for part in task.splits():
        assert part is not None
        assert part.x.shape[1:] == (4, 1)
        counts = torch.bincount(part.y)
        assert abs(int(counts[0] - counts[1])) <= 1
        # An even number is "yes", that is class 1, and stays so.
        assert torch.equal(part.y, 1 - part.x[:, 0, 0].long() % 2)
        seen += part.x[:, 0, 0].tolist()
    assert sorted(seen) == list(range(100))


def test_split_depends_on_its_seed_only(tmp_path: Path) -> None:
    path = save(tmp_path, x=numbered(40), y=np.arange(40) % 2)

    def test_part(seed: int) -> list[float]:
        return FileTask(path, split_seed=seed).splits().test.x[:, 0, 0].tolist()

    assert test_part(0) == test_part(0)
    assert test_part(0) != test_part(1)


def test_values_per_step_of_ragged_data(tmp_path: Path) -> None:
    lengths = np.array([2, 5, 3, 4, 1, 6])
    x = np.arange(21.0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    path = save(tmp_path, x=x, y=10 * x, offsets=offsets)
    task = FileTask(path, standardise=False)
    assert (task.target, task.readout, task.metric) == ("value", "all", "rmse")
    assert task.sizes == {"train": 4, "valid": 1, "test": 1}
    total = 0
    for part in task.splits():
        assert part is not None
        for batch in part.batches(2):
            assert torch.equal(batch.y, 10 * batch.x)
            total += int(batch.x.sum())
    assert total == 210


def test_values_with_several_outputs(tmp_path: Path) -> None:
    y = np.random.default_rng(0).random((10, 3))
    task = FileTask(save(tmp_path, x=numbered(10), y=y))
    assert (task.output_size, task.metric, task.readout) == (3, "rmse", "last")
    assert task.class_names == ()
    assert task.loaders(0, 4).train(0)[0].y.shape == (4, 3)


def test_standardise_is_learnt_from_training_only(tmp_path: Path) -> None:
    given = {"x_train": numbered(4), "y_train": [0, 1, 0, 1], "x_valid": numbered(2)}
    given |= {"y_valid": [0, 1], "x_test": 100 + numbered(2), "y_test": [1, 0]}
    task = FileTask(save(tmp_path, **given))
    train, valid, test = task.splits()
    assert train is not None
    assert float(train.x.mean()) == pytest.approx(0, abs=1e-6)
    assert float(train.x.std(correction=0)) == pytest.approx(1, abs=1e-6)
    assert float(test.x.mean()) > 50
    assert task.preprocessing.mean == (1.5,)
    assert len(valid) == 2


def test_given_parts_without_validation(tmp_path: Path) -> None:
    given = {"x_train": numbered(20), "y_train": np.arange(20) % 2}
    given |= {"x_test": numbered(5), "y_test": np.arange(5) % 2}
    task = FileTask(save(tmp_path, **given), standardise=False)
    assert task.sizes == {"train": 17, "valid": 3, "test": 5}
    assert task.splits().test.x[:, 0, 0].tolist() == [0, 1, 2, 3, 4]


def test_target_option(tmp_path: Path) -> None:
    path = save(tmp_path, x=numbered(10), y=np.arange(10) % 3)
    assert FileTask(path).output_size == 3
    assert FileTask(path, target="value").output_size == 1
    assert FileTask(path, target="value").metric == "rmse"


def test_ts_pair(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i},{i}:{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "Small_TRAIN.ts").write_text(HEADER + rows)
    (tmp_path / "Small_TEST.ts").write_text(HEADER + "5,6:b\n7:a\n")
    train, test = tmp_path / "Small_TRAIN.ts", tmp_path / "Small_TEST.ts"
    for path in (train, test):
        task = FileTask(path, standardise=False)
        assert task.sizes == {"train": 17, "valid": 3, "test": 2}
        assert task.splits().test.y.tolist() == [1, 0]
        assert task.class_names == ("a", "b")
        lengths = task.loaders(0, 2).test[0].lengths
        assert lengths is not None
        assert lengths.tolist() == [2, 1]
    assert file_digest(train) == file_digest(test)
    before = file_digest(train)
    test.write_text(HEADER + "5,6:b\n8:a\n")
    assert file_digest(train) != before
    test.unlink()
    with pytest.raises(FileNotFoundError, match=r"existing file; got .*Small_TEST.ts"):
        FileTask(train)


def test_single_ts(tmp_path: Path) -> None:
    path = tmp_path / "mine.ts"
    path.write_text(HEADER + "".join(f"{i},{i}:{'ab'[i % 2]}\n" for i in range(20)))
    assert FileTask(path).sizes == {"train": 14, "valid": 3, "test": 3}


def test_digest(tmp_path: Path) -> None:
    path = save(tmp_path, x=numbered(10), y=np.arange(10) % 2)
    digest = file_digest(path)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert FileTask(path, sha256=digest).sizes["test"] == 2
    with pytest.raises(
        ValueError, match=r"sha256 of mine.npz must be abc; got '[0-9a-f]{64}'; give the file"
    ):
        FileTask(path, sha256="abc")


def test_read_inputs_does_as_in_training(tmp_path: Path) -> None:
    task = FileTask(save(tmp_path, x=numbered(10), y=np.arange(10) % 2))
    saved = Preprocessing.from_dict(task.preprocessing.to_dict())
    np.savez(tmp_path / "new.npz", x=numbered(3))
    data = read_inputs(tmp_path / "new.npz", saved).dataset
    batch = data.take(torch.arange(3))
    expected = (np.arange(3) - saved.mean[0]) / saved.std[0]
    np.testing.assert_allclose(batch.x[:, 0, 0].numpy(), expected, rtol=1e-6)
    assert batch.y.shape == (3, 0)
    (tmp_path / "new.ts").write_text(HEADER + "0,0,0,0:a\n1,1:b\n")
    ragged = read_inputs(tmp_path / "new.ts", saved).dataset
    assert ragged.lengths is not None
    assert ragged.lengths.tolist() == [4, 2]
    np.testing.assert_allclose(ragged.x[-1, 0].numpy(), expected[1], rtol=1e-6)


def test_missing_values(tmp_path: Path) -> None:
    x = numbered(10)
    x[3, 2] = np.nan
    path = save(tmp_path, x=x, y=np.arange(10) % 2)
    with pytest.raises(
        ValueError, match=r"must be finite; got nan at sequence 3, step 2, channel 0"
    ):
        FileTask(path)
    for part in FileTask(path, missing="mean").splits():
        assert part is not None
        assert part.x.isfinite().all()


@pytest.mark.covering
@pytest.mark.parametrize("sequence", [0, 3, 11, 19])
@pytest.mark.parametrize("form", ["dense", "padded", "flat"])
@pytest.mark.parametrize(("value", "missing"), [(np.nan, "error"), (np.inf, "mean")])
def test_broken_inputs_are_named_by_their_place_in_the_file(
    tmp_path: Path, sequence: int, form: str, value: float, missing: Any
) -> None:
    lengths = np.arange(20) % 4 + 3
    x = np.zeros((20, 6, 2))
    x[sequence, 2, 1] = value
    arrays: dict[str, Any] = {"x": x, "y": np.arange(20) % 2}
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


def test_broken_inputs_of_a_part_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    x = numbered(20)
    x[7:9, 1] = np.nan
    x[15, 0] = np.nan
    given = {"x_test": numbered(3), "y_test": [0, 1, 0]}
    path = save(tmp_path, x_train=x, y_train=np.arange(20) % 2, **given)
    with pytest.raises(
        ValueError, match=r"\(train\) must be finite; got nan at sequence 7, step 1, .*\(3 such"
    ):
        FileTask(path)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"x": numbered(4), "y": [1, 1, 1, 1]}, "two or more; got ..1..; add"),
        ({"x": numbered(2), "y": [0, 1]}, r"at least 3, .* train, valid, test; got 2; add"),
        ({"x": numbered(4), "y": [0.0, 1.0, np.inf, 0.0]}, "y in mine.npz must be finite; got inf"),
        (
            {"x": numbered(4) + 0j, "y": [0, 1, 0, 1]},
            "x in mine.npz must be .*real numbers; got .complex128",
        ),
        (
            {"x": numbered(4), "y": np.zeros((4, 3), int)},
            r"y in mine.npz must be \[N\] for classes.*T at least 4; got",
        ),
    ],
)
def test_errors(tmp_path: Path, arrays: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        FileTask(save(tmp_path, **arrays))


def test_classes_too_rare_for_every_part_are_warned_of(tmp_path: Path) -> None:
    y = ["a"] * 10 + ["b"] * 7 + ["lone"] + ["two"] * 2
    expected = (
        r"every class in mine.npz must have at least 3 sequences to be in train, valid and test; "
        r"got 1 of class 'lone', 2 of class 'two'; add sequences of these classes"
    )
    with pytest.warns(UserWarning, match=expected):
        assert FileTask(save(tmp_path, x=numbered(20), y=y)).output_size == 4
    x = {"x_train": numbered(20), "x_test": numbered(2), "y_test": ["a", "b"]}
    with pytest.warns(
        UserWarning, match=r"at least 2 .* in train and valid; got 1 of class 'lone';"
    ):
        FileTask(save(tmp_path, **x, y_train=y))
    many = [*("a" * 13), *"bcdefgh"]
    with pytest.warns(UserWarning, match=r"1 of class 'f', few of 2 more classes; add"):
        FileTask(save(tmp_path, x=numbered(20), y=many))


def test_no_warning_where_every_class_has_enough_or_the_split_is_given(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FileTask(save(tmp_path, x=numbered(20), y=["a"] * 17 + ["b"] * 3))
        FileTask(save(tmp_path, x=numbered(20), y=np.arange(20.0)))
        given = {f"x_{part}": numbered(3) for part in ("train", "valid", "test")}
        given |= {f"y_{part}": np.array([0, 1, 1]) for part in ("train", "valid", "test")}
        FileTask(save(tmp_path, **given))


def test_summary(tmp_path: Path) -> None:
    lengths = np.arange(60) % 15 + 5
    offsets, y = np.cumsum([0, *lengths]), np.array(["a", "b", "c"] * 20)
    task = FileTask(save(tmp_path, x=np.zeros((sum(lengths), 2)), y=y, offsets=offsets))
    assert task.summary() == (
        "mine.npz: 60 sequences (42 train, 9 valid, 9 test), 5 to 19 steps, 2 channels, "
        "3 classes per sequence\nclasses a 20, b 20, c 20; split at random"
    )
    assert task.hint == ""
    x = numbered(10)
    assert FileTask(save(tmp_path, x=x, y=x[:, 0])).summary() == (
        "mine.npz: 10 sequences (6 train, 2 valid, 2 test), 4 steps, 1 channel, "
        "1 value per sequence\nsplit at random"
    )
    stepped = FileTask(save(tmp_path, x=x, y=np.zeros((10, 4, 2))))
    assert "2 values per step" in stepped.summary()
    x[0, :2] = np.nan
    known = {"x": x, "y": np.arange(10) % 2, "groups": [*"abcdeabcde"]}
    groups = FileTask(save(tmp_path, **known), missing="mean", test_groups=["a", "b"])
    assert groups.summary().endswith(
        "classes 0 5, 1 5; 5 % of the inputs missing (mean); split by groups (5, a and b for test)"
    )
    series = FileTask(save(tmp_path, x=np.arange(90.0)[None]), horizon=3, window=8)
    first, second = series.summary().split("\n")
    assert first.endswith("8 steps, 1 channel, the next 3 steps of 1 channel")
    assert second == "windows of 8 steps of 1 recording; split by time"
    gap = np.arange(90.0)[None]
    gap[0, 30] = np.nan  # an answer of three windows
    second = FileTask(save(tmp_path, x=gap), horizon=3, window=8, missing="mean").summary()
    assert "of 1 recording, 3 windows left out for missing values to forecast; " in second
    given = {f"x_{part}": numbered(4) for part in ("train", "valid", "test")}
    given |= {f"y_{part}": np.array([0, 1, 1, 0]) for part in ("train", "valid", "test")}
    assert FileTask(save(tmp_path, **given)).summary().endswith("\nclasses 0 6, 1 6")


def test_hint_that_values_may_be_classes(tmp_path: Path) -> None:
    x, y = numbered(12), np.arange(12.0) % 3
    path = save(tmp_path, x=x, y=y)
    assert FileTask(path).hint == (
        "y in mine.npz is taken as values, but holds only 3 distinct whole numbers; "
        "target=class makes them classes."
    )
    assert FileTask(path, target="class").hint == FileTask(path, target="value").hint == ""
    for other in (y + 0.5, np.arange(12.0), np.ones(12), np.stack([y, y], 1), np.ones((12, 4, 1))):
        assert FileTask(save(tmp_path, x=x, y=other)).hint == ""


def test_errors_between_parts(tmp_path: Path) -> None:
    x = {"x_train": numbered(4), "x_test": numbered(2)}
    with pytest.raises(ValueError, match=r"classes only in test of mine.npz .*got ..2..; add"):
        FileTask(save(tmp_path, **x, y_train=[0, 1, 0, 1], y_test=[0, 2]))
    with pytest.raises(
        ValueError, match=r"of one kind in all parts; got {'train': 'int64 \[4\]', 'test"
    ):
        FileTask(save(tmp_path, **x, y_train=[0, 1, 0, 1], y_test=[0.5, 2]))
    wide = {"x_train": np.zeros((4, 2, 3)), "x_test": np.zeros((4, 2, 2))}
    with pytest.raises(ValueError, match=r"channels of x in .* must be 3, as in training; got 2"):
        FileTask(save(tmp_path, **wide, y_train=[0, 1, 0, 1], y_test=[0, 1, 0, 1]))
    with pytest.raises(ValueError, match="at least 2, to be cut into train, valid; got 1"):
        FileTask(save(tmp_path, x_train=[[1.0]], y_train=[0.5], x_test=[[1.0]], y_test=[0.5]))


def test_option_errors(tmp_path: Path) -> None:
    path = save(tmp_path, x=numbered(10), y=np.arange(10) % 2)
    with pytest.raises(ValueError, match="target must be one of 'auto', 'class', 'value'"):
        FileTask(path, target="classes")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="standardise must be True or False"):
        FileTask(path, standardise=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="missing must be one of 'error', 'mean'"):
        FileTask(path, missing="zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="split_seed must be"):
        FileTask(path, split_seed=-1)
    with pytest.raises(FileNotFoundError, match="must be an existing file"):
        FileTask(tmp_path / "none.npz")
    other = tmp_path / "mine.xls"
    other.write_text("1,2")
    with pytest.raises(ValueError, match=r"ending of the file must be one of '.npz', .*'.xls'"):
        FileTask(other)
    given = {"x_train": numbered(4), "y_train": [0, 1, 0, 1]}
    parts = save(tmp_path, **given, x_test=numbered(2), y_test=[0, 1])
    with pytest.raises(ValueError, match=r"keys of mine.npz must be x; got .*x_train.*; store"):
        read_inputs(parts, Preprocessing((0.0,), (1.0,), True, "error"))


def test_groups_of_the_file_stay_whole(tmp_path: Path) -> None:
    x, y = numbered(40), np.arange(40) % 2
    task = FileTask(save(tmp_path, x=x, y=y, groups=np.arange(40) // 4), standardise=False)
    held = [set((part.x[:, 0, 0] // 4).tolist()) for part in task.splits() if part is not None]
    assert sum(map(len, held)) == len(set.union(*held)) == 10
    named = FileTask(task.path, standardise=False, test_groups=["3", "9"])
    assert set((named.splits().test.x[:, 0, 0] // 4).tolist()) == {3, 9}


def test_no_validation_part(tmp_path: Path) -> None:
    task = FileTask(save(tmp_path, x=numbered(20), y=np.arange(20) % 2), valid_share=0.0)
    assert task.sizes == {"train": 17, "valid": 0, "test": 3}
    assert task.splits().valid is None
    assert len(task.loaders(0, 4).valid) == 0
    assert list(task.loaders(0, 4).valid) == []
    assert "17 train" in task.summary()


def test_more_channels(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((20, 6, 2))
    x[:, 2, 1] = np.nan
    path = save(tmp_path, x=x, y=np.arange(20) % 2)
    task = FileTask(path, missing="mask", difference=True)
    assert task.input_size == 5
    assert task.loaders(0, 4).train(0)[0].x.shape == (4, 6, 5)
    new = read_inputs(path, Preprocessing.from_dict(task.preprocessing.to_dict())).dataset
    assert new.x.shape == (20, 6, 5)


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


def test_columns_are_of_tables_only(tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.zeros((9, 2)), y=np.arange(9) % 2)
    with pytest.raises(ValueError, match=r"mine.npz .*'target_column': 'label'"):
        FileTask(tmp_path / "mine.npz", target_column="label")


def test_windows_of_one_recording(tmp_path: Path) -> None:
    path = save(tmp_path, x=np.arange(400.0)[None], y=np.arange(400)[None] % 3)
    task = FileTask(path, standardise=False, window=20, stride=10)
    assert task.sizes == {"train": 27, "valid": 3, "test": 3}  # side by side where it is tested
    assert (task.target, task.readout, task.output_size) == ("class", "all", 3)
    spans = [(part.x.min(), part.x.max()) for part in task.splits() if part is not None]
    assert spans == [(0, 279), (280, 339), (340, 399)]
    for part in task.splits():
        assert part is not None
        assert torch.equal(part.y, part.x[:, :, 0].long() % 3)


def test_forecasts(tmp_path: Path) -> None:
    t = np.arange(200.0)
    path = save(tmp_path, x=np.stack([t, 100 - 2 * t], axis=1)[None], channels=["up", "down"])
    task = FileTask(path, horizon=3, window=5, forecast=["down"])
    assert (task.target, task.readout, task.metric) == ("value", "last", "rmse")
    assert (task.input_size, task.output_size) == (2, 3)
    assert task.sizes == {"train": 133, "valid": 28, "test": 28}
    for part in task.splits():
        assert part is not None
        batch = part.take(torch.arange(4))
        last = batch.y[:, :1] + 2
        # An output of 0 means the last known value.
        assert torch.allclose(batch.select(torch.zeros(4, 3)), last.expand(4, 3))
        scale = np.sqrt((4 + 16 + 36) / 3)
        output = torch.tensor([[-2.0, -4.0, -6.0]]).expand(4, 3) / scale
        assert torch.allclose(batch.select(output), batch.y, atol=1e-3)
    bare = FileTask(path, horizon=4)
    assert (bare.preprocessing.window, bare.output_size) == (16, 8)
    saved = Preprocessing.from_dict(task.preprocessing.to_dict())
    assert saved == task.preprocessing
    ahead = read_inputs(path, saved).dataset.take(torch.tensor([0]))
    assert ahead.x.shape == (1, 5, 2)
    assert ahead.select(torch.zeros(1, 3)).tolist() == [[-298] * 3]


def test_what_is_far_from_training_is_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, elapsed = rng.normal(10, 2, (30, 8, 2)), np.tile([0.0, *[0.5] * 7], (30, 1))
    known = {"channels": ["speed", "height"], "elapsed": elapsed}
    task = FileTask(save(tmp_path, x=x, y=np.arange(30) % 2, **known), elapsed="step")
    saved = Preprocessing.from_dict(task.preprocessing.to_dict())

    def read(**arrays: Any) -> None:
        np.savez(tmp_path / "new.npz", **{"elapsed": elapsed, **arrays})
        read_inputs(tmp_path / "new.npz", saved)

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
