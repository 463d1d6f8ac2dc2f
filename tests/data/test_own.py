"""Own data, in files and in memory: parts, options, and what is said of them."""

import contextlib
import dataclasses

import numpy as np
import pytest
import torch

from anharmonic.data import (
    DataOptions,
    FileTask,
    SequencesTask,
    file_digest,
    read_parts,
    save_npz,
    sequences_from,
)
from anharmonic.data.answers import Windowed, answers, constant_answer, trivial_score
from anharmonic.data.base import Batch, Batches
from anharmonic.data.own import checked_inputs, inputs_of, read_inputs
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.registry import task_options

HEADER = "@univariate true\n@classLabel true a b\n@data\n"
PARTS = ("train", "valid", "test")
RNG = np.random.default_rng


def numbered(count, steps=4):
    """Sequences that say which they are."""
    return np.repeat(np.arange(float(count))[:, None], steps, axis=1)


def parted(train, test, **more):
    """Arrays of parts: x, and y, of two classes in turn unless given."""
    given = {"train": train, "test": test} | more
    arrays = {f"x_{part}": x for part, x in given.items()}
    return arrays | {f"y_{part}": np.arange(len(x)) % 2 for part, x in given.items()}


@pytest.fixture
def make(tmp_path):
    """Makes the task of a file of arrays, or of the text of a table."""

    def task(content, **options):
        path = tmp_path / ("mine.csv" if isinstance(content, str) else "mine.npz")
        if isinstance(content, str):
            path.write_text(content)
        else:
            np.savez(path, **content)
        return FileTask(path, **options)

    return task


@pytest.fixture
def part():
    rng = RNG(0)
    x = [rng.random((steps, 2)) for steps in rng.integers(5, 9, 30)]
    return sequences_from(x, np.tile(["a", "b", "c"], 10))


def as_saved(task):
    """The preprocessing as a run keeps it."""
    return Preprocessing.from_dict(task.preprocessing.to_dict())


TEN = {"x": numbered(10), "y": np.arange(10) % 2}
CUT = parted(numbered(20), numbered(5))
HUNDRED = {"x": numbered(100), "y": np.array(["yes", "no"] * 50)}
UPWARDS = {"x": np.arange(21.0), "y": 10 * np.arange(21.0)}
UPWARDS["offsets"] = np.cumsum([0, 2, 5, 3, 4, 1, 6])
TWENTY = {
    f"{key}_{part}": numbered(20) if key == "X" else np.arange(20) % 2
    for key in "XY"
    for part in ("train", "val", "test")
}
COUNTED = {"x": np.arange(400.0)[None], "y": np.arange(400)[None] % 3}
WAVES = {"x": RNG(0).random((20, 6, 2)), "y": np.arange(20) % 2}
WAVES["x"][:, 2, 1] = np.nan
T200 = np.arange(200.0)
FALLING = {"x": np.stack([T200, 100 - 2 * T200], axis=1)[None], "channels": ["up", "down"]}


@pytest.mark.parametrize(
    ("arrays", "options", "sizes", "right"),
    [
        (HUNDRED, {}, (70, 15, 15), {
            "target": "class", "readout": "last", "metric": "accuracy",
            "class_names": ("no", "yes"), "output_size": 2, "input_size": 1}),
        (UPWARDS, {}, (4, 1, 1), {"target": "value", "readout": "all", "metric": "rmse"}),
        # A validation part is cut from training data, or left out.
        (CUT, {}, (17, 3, 5), {}),
        (CUT, {"valid_share": 0.0}, (20, 0, 5), {}),
        (WAVES, {"missing": "mask", "difference": True}, (14, 3, 3), {"input_size": 5}),
        (TWENTY, {}, (20, 20, 20), {}),  # names of arrays that other packages use
        # Windows are side by side where they are tested.
        (COUNTED, {"window": 20, "stride": 10}, (27, 3, 3),
         {"target": "class", "readout": "all", "output_size": 3}),
        (FALLING, {"horizon": 3, "window": 5, "forecast": ["down"]}, (133, 28, 28), {
            "target": "value", "readout": "last", "metric": "rmse",
            "input_size": 2, "output_size": 3}),
    ],
)  # fmt: skip
def test_what_a_task_says_of_itself(make, arrays, options, sizes, right):
    task = make(arrays, **options)
    assert tuple(task.sizes.values()) == sizes and list(task.sizes) == list(PARTS)
    assert {name: getattr(task, name) for name in right} == right


def test_values_per_step_of_ragged_data(make):
    parts = make(UPWARDS, standardise=False).splits()
    batches = [batch for part in parts for batch in part.batches(2)]
    assert all(torch.equal(batch.y, 10 * batch.x) for batch in batches)
    assert sum(int(batch.x.sum()) for batch in batches) == 210


def test_standardise_is_learnt_from_training_only_and_validation_may_lack(make):
    task = make(parted(numbered(4), 100 + numbered(2), valid=numbered(2)))
    train, _, test = task.splits()
    assert float(train.x.mean()) == pytest.approx(0, abs=1e-6)
    assert float(train.x.std(correction=0)) == pytest.approx(1, abs=1e-6)
    assert float(test.x.mean()) > 50 and task.preprocessing.mean == (1.5,)
    task = make(CUT, valid_share=0.0)
    assert task.splits().valid is None and list(task.loaders(0, 4).valid) == []


def test_ts_pair(tmp_path):
    rows = "".join(f"{i},{i},{i}:{'ab'[i % 2]}\n" for i in range(20))
    train, test = tmp_path / "Small_TRAIN.ts", tmp_path / "Small_TEST.ts"
    train.write_text(HEADER + rows)
    test.write_text(HEADER + "5,6:b\n7:a\n")
    for path in (train, test):
        task = FileTask(path, standardise=False)
        assert task.sizes == {"train": 17, "valid": 3, "test": 2}
        assert task.splits().test.y.tolist() == [1, 0] and task.class_names == ("a", "b")
    before = file_digest(train)
    assert before == file_digest(test)
    test.write_text(HEADER + "5,6:b\n8:a\n")
    assert file_digest(train) != before
    assert FileTask(train, sha256=file_digest(test)).sizes["test"] == 2
    test.unlink()
    with pytest.raises(FileNotFoundError, match=r"existing file; got .*Small_TEST.ts"):
        FileTask(train)


def test_new_data_are_prepared_as_in_training(make, tmp_path):
    saved = as_saved(make(TEN))
    expected = (np.arange(3) - saved.mean[0]) / saved.std[0]
    np.savez(tmp_path / "new.npz", x=numbered(3))
    batch = read_inputs(tmp_path / "new.npz", saved).dataset.take(torch.arange(3))
    np.testing.assert_allclose(batch.x[:, 0, 0].numpy(), expected, rtol=1e-6)
    assert batch.y.shape == (3, 0)
    (tmp_path / "new.ts").write_text(HEADER + "0,0,0,0:a\n1,1:b\n")
    ragged = read_inputs(tmp_path / "new.ts", saved).dataset
    assert ragged.lengths.tolist() == [4, 2]
    np.testing.assert_allclose(ragged.x[-1, 0].numpy(), expected[1], rtol=1e-6)
    with pytest.raises(ValueError, match=r"keys of mine.npz must be x; got .*x_train.*; store"):
        read_inputs(make(CUT).path, saved)


def test_gaps_of_new_data_that_training_had_none_of_are_filled_and_said(part):
    new, how = part.select(np.array([0, 1])), SequencesTask({"all": part}).preprocessing
    every = torch.arange(2)
    new.x[2, 0] = new.x[1, 0]
    expected = inputs_of(new, how).dataset.take(every).x
    new.x[2, 0] = np.nan
    with pytest.warns(UserWarning, match="1 of the values in x .* last known value"):
        assert torch.equal(inputs_of(new, how).dataset.take(every).x, expected)


ELAPSED, FAR = np.tile([0.0, *[0.5] * 7], (30, 1)), RNG(0).normal(10, 2, (30, 8, 2))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ({"x": FAR + 3}, None),
        ({"x": FAR * [1, 1000]}, r"new.npz should .* channel height has mean .* units"),
        ({"x": 10 + (FAR - 10) * [0.001, 1]}, r"channel speed has .* deviation 0.00"),
        ({"x": FAR, "elapsed": 1000 * ELAPSED}, "time is 500 between samples, in training 0.5"),
    ],
)
def test_what_is_far_from_training_is_said(make, tmp_path, new, said):
    known = {"channels": ["speed", "height"], "elapsed": ELAPSED}
    saved = as_saved(make({"x": FAR, "y": np.arange(30) % 2, **known}, elapsed="step"))
    np.savez(tmp_path / "new.npz", **{"elapsed": ELAPSED, **new})
    with pytest.warns(UserWarning, match=said) if said else contextlib.nullcontext():
        read_inputs(tmp_path / "new.npz", saved)
    np.savez(tmp_path / "new.npz", x=FAR, elapsed=ELAPSED, channels=["height", "speed"])
    with pytest.raises(ValueError, match=r"channels of x in new.npz must be \['speed', 'height'\]"):
        read_inputs(tmp_path / "new.npz", saved)


def test_sequences_much_shorter_than_in_training_are_said():
    x, short = RNG(0).normal(size=(20, 50, 1)), RNG(0).normal(size=(20, 5, 1))
    long = sequences_from(x, ["a", "b"] * 10)
    how = Preprocessing.from_dict(SequencesTask({"all": long}).preprocessing.to_dict())
    checked_inputs(sequences_from(short), how)
    said = "should be like.*4 steps in sequence 0 and 19 more, in training at least 50"
    with pytest.warns(UserWarning, match=said):
        checked_inputs(sequences_from(short[:, :4]), how)


GAPS = parted(numbered(20), numbered(3))
GAPS["x_train"][7:9, 1] = GAPS["x_train"][15, 0] = np.nan
LENGTHS, BROKEN = np.arange(20) % 4 + 3, np.zeros((20, 6, 2))
BROKEN[11, 2, 1] = np.inf
PLACE = r"got {} at sequence 11, step 2, channel 1 \(1 such entries\)"
PADDING = np.where(BROKEN == np.inf, np.nan, BROKEN)
PADDING[0, 3:] = np.nan  # which may hold anything
TWENTY_Y = {"y": np.arange(20) % 2}
STEPS = np.full((20, 6, 1), np.nan)
STEPS[0] = 1.0
LATE = np.repeat([[0, 1]], 50, axis=1)[..., None]
REFUSED = [
    (GAPS, {}, r"\(train\) must be finite; got nan at sequence 7, step 1, .*\(3 such"),
    # Places are those in the file, whatever the split.
    ({"x": PADDING, "lengths": LENGTHS, **TWENTY_Y}, {"split_seed": 1}, PLACE.format("nan")),
    ({"x": BROKEN[np.arange(6) < LENGTHS[:, None]], "offsets": np.cumsum([0, *LENGTHS]),
      **TWENTY_Y}, {"split_seed": 2}, PLACE.format("inf")),
    (CUT | {"y_test": np.arange(5) / 2}, {}, r"kind in all parts; got {'train': 'int64 \[20\]'"),
    (CUT | {"x_train": np.zeros((20, 2, 3)), "x_test": np.zeros((5, 2, 2))}, {},
     "channels of x in .* must be 3, as in training; got 2"),
    (parted(numbered(1), numbered(1)) | {"y_train": [0.5], "y_test": [0.5]}, {},
     "at least 2, to be cut into train, valid; got 1"),
    ({"x": numbered(2), "y": [0, 1]}, {}, "at least 3, .* train, valid, test; got 2; add"),
    ({"x": np.zeros((20, 6, 2)), "y": STEPS}, {}, r"targets of the \w+ part of mine.npz must be k"),
    ({"x": RNG(0).normal(size=(1, 100, 1)), "y": LATE}, {"window": 4, "valid_share": 0.4},
     "two classes or more.*only '0', none of 1.*in its end"),
    (TEN, {"target": "classes"}, "target must be one of 'auto', 'class', 'value'"),
    (TEN, {"split_seed": -1}, "split_seed must be"),
    (TEN, {"sha256": "abc"}, r"sha256 of mine.npz must be abc; got '[0-9a-f]{64}'; gi"),
    (TEN | {"y": np.arange(10) / 7}, {"metric": "balanced_accuracy"},
     "metric for targets that are a value.*rmse, mse or mae"),
    ({"x": np.arange(99.0)[None]}, {"season": 12}, "season.*pass horizon"),
    # Options that contradict each other.
    (TEN, {"scale_each": True, "horizon": 3}, "scale_each with horizon must be None"),
    (TEN, {"split": "random", "horizon": 3}, "split with horizon must be auto, time or"),
    (TEN, {"horizon": 3, "quantiles": 0.5}, r"quantiles must be a list; got 0\.5"),
    (TEN, {"stride": 2}, "stride must be None without window"),
    (TEN, {"forecast": ("a",)}, "forecast must be left out without horizon"),
    (TEN, {"window": 0}, "window must be an int >= 1"),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "options", "said"), REFUSED)
def test_what_does_not_fit_is_refused(make, arrays, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make(arrays, **options)


RARE = ["a"] * 10 + ["b"] * 7 + ["lone"] + ["two"] * 2


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": numbered(20), "y": RARE},
         r"every class in mine.npz must have at least 3 sequences to be in train, valid and test; "
         r"got 1 of class 'lone', 2 of class 'two'; add sequences of these classes"),
        (CUT | {"y_train": RARE, "y_test": [*"ababa"]},
         r"at least 2 .* in train and valid; got 1 of class 'lon"),
        ({"x": numbered(20), "y": [*("a" * 13), *"bcdefgh"]}, "'f', few of 2 more classes; add"),
    ],
)  # fmt: skip
def test_classes_too_rare_for_every_part_are_warned_of(make, arrays, said):
    with pytest.warns(UserWarning, match=said):
        assert make(arrays).output_size == len(set(arrays.get("y", RARE)))


KNOWN = numbered(10)
KNOWN[0, :2] = np.nan
RAMP, HOLE = np.arange(90.0)[None], np.arange(90.0)[None]
HOLE[0, 30] = np.nan  # an answer of three windows
RAGGED = {"x": np.zeros((720, 2)), "offsets": np.cumsum([0, *(np.arange(60) % 15 + 5)])}
SHORT = {"x": np.zeros(220), "offsets": np.cumsum([0, *[6, 16] * 10]), "y": ["a", "b"] * 10}
DAYS = np.arange("2020-01-01", "2020-04-10", dtype="M8[D]")
ODD = "date,load,flat,total\n" + "".join(f"{d},{i**0.5},7,{3 * i}\n" for i, d in enumerate(DAYS))
SUMMARIES = [
    (RAGGED | {"y": ["a", "b", "c"] * 20}, {},
     "mine.npz: 60 sequences (42 train, 9 valid, 9 test), 5 to 19 steps, 2 channels, "
     "one of 3 classes per sequence\nclasses a 20, b 20, c 20; split at random"),
    (TEN | {"x": KNOWN, "groups": [*"abcdeabcde"]}, {"missing": "mean", "test_groups": ["a", "b"]},
     "classes 0 5, 1 5; 5 % of the inputs missing (mean); split by groups (5, a and b for test)"),
    ({"x": RAMP}, {"horizon": 3, "window": 8},
     "test), 8 steps, 1 channel, the next 3 steps of 1 channel\n"
     "windows of 8 steps of 1 recording; split by time"),
    ({"x": HOLE}, {"horizon": 3, "window": 8, "missing": "mean"},
     "of 1 recording, 3 windows left out for missing values to forecast; "),
    (parted(*[numbered(3)] * 2, valid=numbered(3)), {"valid_share": 0.0},
     "the validation part of the file is used for training"),
    (SHORT, {"window": 8},
     "mine.npz: 20 recordings (14 train, 3 valid, 3 test), 6 to 16 steps, 1 channel, one of 2 "
     "classes per sequence\n21 training windows of 8 steps, 10 recordings are shorter than that"),
    (SHORT, {"window": 100}, "every recording is shorter than that and not cut"),
    (ODD, {"horizon": 2}, "constant: flat; rising by the same at every step: total"),
    (ODD.replace(",7,", ",-999,", 9).replace("-999,", "7,", 4), {"horizon": 2},
     "if it means missing, leave it empty: flat (-999)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "options", "said"), SUMMARIES)
def test_summary(make, given, options, said):
    summary = make(given, **options).summary()
    assert said in summary and summary.count("leave it empty") == said.count("leave it empty")
    assert "split" not in summary or "x_valid" not in given


TWELVE, THREE = numbered(12), np.arange(12.0) % 3
NAMES = np.array(["up", "?", "down", "None"] * 3)
MAY_BE = "y in mine.npz is taken as values, but holds only 3 distinct whole numbers; "
CHANNELS = {"x": RNG(0).normal(size=(20, 3, 100)), "y": ["a", "b"] * 10}


@pytest.mark.parametrize(
    ("arrays", "options", "hint"),
    [
        ({"x": TWELVE, "y": THREE}, {}, MAY_BE + "--target class (target='class') makes"),
        *(({"x": TWELVE, "y": THREE}, {"target": kind}, "") for kind in ("class", "value")),
        *(({"x": TWELVE, "y": y}, {}, "") for y in (THREE + 0.5, np.arange(12.0), np.ones(12))),
        *(({"x": TWELVE, "y": y}, {}, "") for y in (numbered(12, 2), np.ones((12, 4, 1)))),
        ({"x": TWELVE, "y": NAMES}, {},
         "'?' in mine.npz is taken as a class. If it means that the class is not known, leave "
         "those cells empty."),
        (CHANNELS, {}, "x.transpose(0, 2, 1)"),
        (CHANNELS | {"x": CHANNELS["x"].transpose(0, 2, 1)}, {}, ""),
        (TEN | {"y": [*"aAbbbaAaAb"]}, {}, "'A' and 'a' in mine.npz differ"),
        ({"x": TWELVE, "y": np.eye(3)[np.arange(12) % 3]}, {}, "a single 1 in every row. If it"),
        ({"x": np.where(np.arange(4) < 2 + np.arange(12)[:, None] % 3, TWELVE, np.nan),
          "y": np.arange(12) % 3},
         {"missing": "mean"}, "8 sequences of mine.npz end with missing values."),
    ],
)  # fmt: skip
def test_hints(make, arrays, options, hint):
    found = make(arrays, **options).hint
    assert hint in found and bool(hint) == bool(found)


RATES = RNG(0)
PUMPS = "time,pump,flow,state\n" + "".join(
    f"{time:.3f},{name},{np.sin(time):.4f},{'on' if i // 10 % 2 else 'off'}\n"
    for name in "ABCDE"
    for i, time in enumerate(np.cumsum(RATES.exponential(1.0, 60) + 0.2))
)
GROUPS = PUMPS.replace("pump", "group")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (PUMPS, {"group_column": "pump", "window": 8}),
        (GROUPS, {"window": 8}),
        (PUMPS, {"group_column": "pump", "horizon": 3, "window": 8, "ignore": ["state"]}),
        (GROUPS, {"split": "groups", "horizon": 3, "window": 8, "ignore": ["state"]}),
    ],
)
def test_recordings_of_one_table_can_be_held_out(make, text, given):
    task = make(text, elapsed="ignore", **given)
    assert "split by groups (5)" in task.summary() and "id column" in task.summary()
    assert f"group column '{'pump' if text == PUMPS else 'group'}'" in task.summary()
    named = make(text, test_groups=["E"], elapsed="ignore", **given)
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


def test_a_forecast_splits_by_time_unless_groups_are_asked_for(make):
    given = {"horizon": 3, "ignore": ["state"]}
    for more in ({}, {"split": "time", "group_column": "group"}):
        assert "split by time" in make(GROUPS, **more, **given).summary()
    seasonal = make(GROUPS, split="groups", season=6, **given)
    assert len(seasonal.seasonal) == seasonal.sizes["test"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_times_ahead_do_not_depend_on_the_other_series_of_a_file(make, tmp_path):
    task, lines = make(PUMPS, horizon=2, id_column="pump", ignore=["state"]), PUMPS.splitlines()
    alone, even = tmp_path / "alone.csv", tmp_path / "even.csv"
    alone.write_text("\n".join(line for line in lines if ",D," in line or "time" in line))
    steady = [f"{40 * i},F,{i % 3},on" for i in range(60)]  # a series with equal steps
    even.write_text("\n".join([*lines, *steady]))
    kept, paths = as_saved(task), (alone, task.path, even)
    one, whole, more = (read_inputs(path, kept, task.columns).times for path in paths)
    assert np.allclose(one[0], whole[3], atol=1e-3) and np.allclose(more[:5], whole, atol=1e-3)
    assert np.allclose(np.diff(whole), kept.interval) and more[5].tolist() == [2400.0, 2440.0]


FOUR = torch.arange(4)


def test_forecasts(make):
    task, scale = make(FALLING, horizon=3, window=5, forecast=["down"]), np.sqrt((4 + 16 + 36) / 3)
    output = torch.tensor([[-2.0, -4.0, -6.0]]).expand(4, 3) / scale
    for part in task.splits():
        batch = part.take(FOUR)
        # An output of 0 means the last known value.
        assert torch.allclose(batch.select(torch.zeros(4, 3)), (batch.y[:, :1] + 2).expand(4, 3))
        assert torch.allclose(batch.select(output), batch.y, atol=1e-3)
    ahead = read_inputs(task.path, as_saved(task)).dataset.take(torch.tensor([0]))
    assert ahead.x.shape == (1, 5, 2) and ahead.select(torch.zeros(1, 3)).tolist() == [[-298] * 3]
    bare = make(FALLING, horizon=4)
    assert (bare.preprocessing.window, bare.output_size) == (16, 8)


def are_equal(one, other):
    mine, its = ([part.take(FOUR) for part in task.splits()] for task in (one, other))
    same = [torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in zip(mine, its, strict=True)]
    return all(same)


def test_data_in_memory_are_those_of_a_file_with_the_same_options(part, tmp_path):
    names = [entry.name for entry in dataclasses.fields(DataOptions)]
    assert list(task_options("file")) == ["sha256", *names]
    options = {"difference": True, "split_seed": 3, "valid_share": 0.2}
    here = SequencesTask({"all": part}, **options)
    there = FileTask(save_npz(tmp_path / "mine.npz", part), **options)
    assert here.sizes == there.sizes and here.class_names == there.class_names
    assert here.preprocessing == there.preprocessing and are_equal(here, there)
    with pytest.raises(ValueError, match="classes of y in my arrays"):
        SequencesTask({"all": part.with_targets(np.zeros(30, int))}, source="my arrays")


def test_other_options_are_another_task_on_the_same_data(part):
    task = SequencesTask({"all": part})
    folds = [task.with_options({"folds": 5, "fold": fold}) for fold in range(5)]
    assert sum(one.sizes["valid"] for one in folds) == 30 - task.sizes["test"]
    assert are_equal(folds[2], SequencesTask({"all": part}, folds=5, fold=2))
    assert task.with_options({"folds": 5, "fold": 4}) is folds[4]  # the newest is kept
    with pytest.raises(ValueError, match="columns of data that were read"):
        task.with_options({"target_column": "y"})


@pytest.mark.parametrize("kind", ["class", "labels"])
def test_windows_are_answered_once_for_every_recording_by_their_mean_probability(kind):
    y = [*"ab"] * 10 if kind == "class" else np.tile([[0.0, 1.0], [1.0, 0.0]], (10, 1))
    recordings = sequences_from(RNG(0).normal(size=(20, 60, 1)), y)
    task = SequencesTask({"all": recordings}, window=20, stride=5, target=kind)
    assert task.sizes["train"] == 14 * 9 and task.sizes["test"] == 3
    test = task.loaders(0, 4).test

    def guess(batch):  # the first value of a window
        return 9 * torch.stack([batch.x[:, 0, 0], -batch.x[:, 0, 0]], 1)

    def shares(scores):
        return scores.softmax(1) if kind == "class" else scores.sigmoid()

    ((scores, batch),) = answers(test, guess, kind)
    assert scores.shape == (3, 2) and len(batch.y) == 3
    windows = torch.cat([shares(guess(one)) for one in test]).reshape(3, 3, 2)
    torch.testing.assert_close(shares(scores), windows.mean(1))


def test_windows_are_answered_once_for_every_step():
    part = sequences_from(np.zeros((1, 200, 1)), np.tile([0.0, 1.0], 100).reshape(1, 200, 1))
    test = SequencesTask({"all": part}, window=16, stride=2).loaders(0, 2).test
    ((values, batch),) = answers(test, lambda one: one.y, "value")
    assert values.shape == (1, 30, 1)  # 15 % of the steps, each once
    assert torch.equal(batch.y[0, :, 0], torch.tensor([0.0, 1.0] * 15))
    # The mean over many windows is exact.
    many = Windowed(torch.zeros(100_000, dtype=torch.int64), torch.ones(100_000))
    whole = Batch(torch.zeros(100_000, 1, 1), torch.zeros(100_000, 1), None)
    test = Batches(1, lambda i: whole, many)
    ((values, _),) = answers(test, lambda one: torch.full_like(one.y, 0.9), "value")
    torch.testing.assert_close(values, torch.tensor([[0.9]]))


def test_metric_and_class_weights_are_chosen(part):
    task = SequencesTask({"all": part}, metric="balanced_accuracy", class_weights=[1, 2, 3])
    assert task.metric == "balanced_accuracy" and not task.is_unbalanced
    assert task.class_weights == (1.0, 2.0, 3.0)
    assert trivial_score(task, task.loaders(0, 8)) == pytest.approx(100 / 3)
    usual = SequencesTask({"all": part.with_targets(np.array(["a"] * 26 + ["b"] * 4))})
    assert usual.metric == "accuracy" and usual.is_unbalanced
    values = part.with_targets(np.arange(30.0) / 7)
    assert SequencesTask({"all": values}, metric="mae").metric == "mae"
    with pytest.raises(ValueError, match=r"class_weights.*3 numbers.*\[1, 2\]"):
        SequencesTask({"all": part}, class_weights=[1, 2])
    with pytest.raises(ValueError, match="class_weights"):
        SequencesTask({"all": values}, class_weights=[1.0])


def seasonal(steps, season=12):
    rng = RNG(0)
    again = np.tile(rng.normal(size=season) * 5, steps // season + 1)[:steps]
    return {"all": sequences_from((again + rng.normal(size=steps))[None])}


@pytest.mark.parametrize("quantiles", [(), (0.1, 0.5, 0.9)], ids=["values", "quantiles"])
def test_forecasts_are_compared_with_the_season_too(quantiles):
    task = SequencesTask(seasonal(600), horizon=3, quantiles=quantiles)
    assert "12 steps before (found in the training part)" in task.summary()
    both, task.seasonal = baseline(task), None
    # The difference of two standard normal values: its deviation, and its mean pinball loss.
    expected = np.sqrt(2) * (1 if not quantiles else (2 * 0.1755 + 0.3989) / 3)
    assert both < 0.5 * baseline(task) and both == pytest.approx(expected, rel=0.2)
    given = SequencesTask(seasonal(600, 7), horizon=2, season=14)
    assert given.preprocessing.season == 14 and "(given)" in given.summary()
    walk = sequences_from(RNG(0).normal(size=(1, 400)).cumsum(1))
    noise = SequencesTask({"all": walk}, horizon=3)
    assert noise.seasonal is None and noise.preprocessing.season == 0


def test_unknown_float32_targets_stay_unknown_when_the_data_are_prepared_again():
    y = RNG(0).normal(size=(20, 6, 1)).astype(np.float32)
    y[:, 2] = np.nan
    task = SequencesTask({"all": sequences_from(np.zeros((20, 6, 2)), y)})
    assert np.isnan(y[:, 2]).all()
    again = task.with_options({"valid_share": 0.0}).splits().train
    assert again.known[:, 2].sum() == 0 and again.known.sum() == 5 * len(again)


def baseline(task):
    return trivial_score(task, task.loaders(0, 4))


VOTES = parted(*[np.zeros((10, 4, 1))] * 2, valid=np.zeros((10, 4, 1)))
VOTES |= {"y_train": [0, 1, 1, 1, 0, 1, 1, 2, 1, 1], "y_test": [1, 1, 0, 0, 0, 2, 0, 0, 1, 0]}
VOTES["y_valid"] = VOTES["y_train"]
PADDED = {"x": np.zeros((20, 5)), "y": np.tile([1, 0, 1, 0, 0], (20, 1))}


@pytest.mark.parametrize(
    ("arrays", "options", "expected"),
    [
        (VOTES, {}, 30.0),
        # Of the 3 real steps 2 are of class 1; the rest is padding.
        (PADDED | {"lengths": [3] * 20}, {}, 200 / 3),
        # The last value of a ramp is wrong by 1, then by 2.
        ({"x": np.arange(100.0)[None]}, {"horizon": 2}, np.sqrt(2.5)),
    ],
)
def test_the_most_frequent_class_or_the_last_value_is_the_baseline(make, arrays, options, expected):
    assert baseline(make(arrays, **options)) == pytest.approx(expected)


def test_the_mean_median_or_most_frequent_labels_are_the_baseline(make):
    rng, parts, lengths = RNG(0), {}, [5, 4, 3, 2, 5, 1]
    for part in PARTS:
        parts |= {f"x_{part}": rng.random((6, 5, 1)), f"y_{part}": rng.random((6, 5, 2))}
        parts[f"lengths_{part}"] = np.array(lengths)
    real = np.arange(5) < np.array(lengths)[:, None]
    train, test = parts["y_train"][real], parts["y_test"][real]
    expected = np.sqrt(((test - train.mean(0)) ** 2).mean())
    assert baseline(make(parts)) == pytest.approx(expected, rel=1e-5)
    labels, values = torch.tensor([[1.0, 0], [1, 0], [0, 0]]), torch.tensor([[1.0], [2.0], [9.0]])
    assert (constant_answer("labels", labels, 2) > 0).tolist() == [True, False]
    assert constant_answer("value", values, 1, "mae").tolist() == [2.0]  # the median
    assert constant_answer("value", values, 1).tolist() == [4.0]


def test_as_many_numbers_as_steps_are_doubtful(tmp_path):
    x = RNG(0).normal(size=(40, 9, 1)).astype("f4")
    np.savez(tmp_path / "mine.npz", x=x, y=x[:, :, 0])
    with pytest.warns(UserWarning, match=r"read as 9 numbers per sequence.*\[N, T, 1\]"):
        assert FileTask(tmp_path / "mine.npz").readout == "last"
    np.savez(tmp_path / "steps.npz", x=x, y=x)
    assert FileTask(tmp_path / "steps.npz").readout == "all"
