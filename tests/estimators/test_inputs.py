import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anharmonic.data import Columns
from anharmonic.estimators import (
    ResonatorClassifier,
    ResonatorRegressor,
    ResonatorTransformer,
    SequenceClassifier,
    inputs,
)
from anharmonic.estimators.inputs import read_sequences


class Reader:
    """An estimator that only reads."""

    def __init__(self, **parameters):
        vars(self).update(parameters)

    def __sklearn_tags__(self):
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


RAGGED = [np.arange(3.0), np.arange(5.0)]
AS_OBJECTS = np.empty(2, object)
AS_OBJECTS[:] = RAGGED


@pytest.mark.parametrize(
    ("x", "lengths", "channels"),
    [
        (np.zeros((4, 3)), [3] * 4, 1),
        ([[1, 2, 3], [4, 5, 6]], [3, 3], 1),
        (np.zeros((4, 2, 3)), [3] * 4, 2),
        (RAGGED, [3, 5], 1),
        ([[1, 2, 3], [4, 5]], [3, 2], 1),
        (AS_OBJECTS, [3, 5], 1),
        (pd.Series(RAGGED), [3, 5], 1),
        ([np.zeros((2, 3)), np.zeros((2, 4))], [3, 4], 2),
        (pd.DataFrame(np.zeros((4, 3))), [3] * 4, 1),
        (pd.DataFrame({"a": RAGGED, "b": RAGGED}), [3, 5], 2),
    ],
)
def test_forms(x, lengths, channels):
    reader = Reader()
    part, y = read_sequences(reader, x, reset=True)
    assert y is None
    assert part.lengths.tolist() == lengths
    assert (part.x.shape[1], reader.n_channels_) == (channels, channels)
    again, _ = read_sequences(reader, x, reset=False)
    assert (again.x == part.x).all()


X = np.random.default_rng(0).normal(size=(4, 2, 3)).astype("f4")
LONG = pd.DataFrame(X.transpose(0, 2, 1).reshape(-1, 2), columns=["a", "b"])
LONG = LONG.assign(id=np.repeat(range(4), 3), time=[0, 1, 2] * 4)
SERIES = {name: [pd.Series(v) for v in X[:, i]] for i, name in enumerate("ab")}


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(list(X), id="list"),
        pytest.param(pd.DataFrame({"a": list(X[:, 0]), "b": list(X[:, 1])}), id="nested"),
        pytest.param(pd.DataFrame(SERIES), id="nested in series"),
        pytest.param(LONG, id="a row per step"),
        pytest.param(pa.Table.from_pandas(LONG), id="Arrow"),
    ],
)
def test_every_form_of_several_channels_is_the_same(form):
    reader = Reader()
    for reset in (True, False):
        part, _ = read_sequences(reader, form, reset=reset)
        np.testing.assert_array_equal(part.x, LONG[["a", "b"]])
        assert part.lengths.tolist() == [3] * 4


@pytest.mark.parametrize(
    ("first", "second", "reset", "lengths"),
    [
        pytest.param(np.zeros((4, 3)), np.zeros((4, 2, 3)), True, [3] * 4, id="flat before"),
        pytest.param(RAGGED, np.zeros((1, 7)), False, [7], id="one channel in another form"),
        pytest.param([np.arange(3.0)] * 2, [np.arange(5.0)], False, [5], id="other lengths"),
    ],
)
def test_one_form_after_another(first, second, reset, lengths):
    reader = Reader()
    read_sequences(reader, first, reset=True)
    assert hasattr(reader, "n_features_in_") == isinstance(first, np.ndarray)
    part, _ = read_sequences(reader, second, reset=reset)
    assert part.lengths.tolist() == lengths and not hasattr(reader, "n_features_in_")


def test_a_column_of_a_frame_can_be_the_target():
    rng = np.random.default_rng(0)
    steps = [np.sin(np.arange(30) * (0.3 + 0.9 * (k % 2)) + rng.uniform(0, 6)) for k in range(12)]
    frame = pd.DataFrame({
        "case": np.repeat([f"c{k:02}" for k in range(12)], 30), "time": np.tile(np.arange(30), 12),
        "v": np.concatenate(steps), "kind": np.repeat(["slow", "fast"] * 6, 30),
        "grade": np.repeat([0, 1] * 6, 30),
    })  # fmt: skip
    columns = Columns(id="case", ignore=("grade",))
    model = ResonatorClassifier(20, columns=columns, random_state=0)
    kinds = ["slow", "fast"] * 6
    expected = model.fit(frame, kinds).predict_proba(frame)
    named = model.fit(frame, "kind")
    assert (named.predict_proba(frame) == expected).all()
    assert (named.predict_proba(frame.drop(columns="kind")) == expected).all()
    truth = ["slow"] * 3 + ["fast"] * 9
    assert named.score(frame) == named.score(frame, "kind") == named.score(frame, kinds) == 1.0
    assert named.score(frame, truth) == np.mean(np.array(truth) == kinds) < 1
    wide = pd.DataFrame(np.array(steps)).rename(columns=str)
    for name, values in (("kind", kinds), ("grade", [0, 1] * 6)):
        given, flat = wide.assign(**{name: values}), ResonatorClassifier(20, random_state=0)
        assert flat.fit(given, name).score(given) == flat.score(given, name) == 1.0
        assert (flat.predict(given) == flat.predict(wide)).all()
    assert flat.fit(wide, kinds).score(wide, kinds) == 1.0 and flat.n_features_in_ == 30
    speeds = ResonatorRegressor(20, columns=Columns(id="case", ignore=("kind",)), random_state=0)
    assert speeds.fit(frame, "grade").score(frame) > 0.9
    trained = SequenceClassifier("CoRNN", max_steps=2, columns=columns, random_state=0)
    trained.partial_fit(frame, "kind", classes=["fast", "slow"]).partial_fit(frame, "kind")
    assert trained.classes_.tolist() == ["fast", "slow"]
    with pytest.raises(ValueError, match="X must be a frame with the column y='kind'; got 'list'"):
        model.fit(steps, "kind")
    with pytest.raises(ValueError, match="y must be passed, or a column of the frame X; got None"):
        named.score(steps)


def test_resonators_say_that_they_do_not_read_uneven_times():
    times = np.tile([0.0, 1.0, 2.0, 3.0, 5.5, 6.0], 4)
    frame = pd.DataFrame({"id": np.repeat(range(4), 6), "time": times, "v": np.sin(times)})
    model, said = ResonatorClassifier(5, random_state=0), "times of X are uneven, but resonators"
    for call in (lambda: model.fit(frame, [0, 1] * 2), lambda: model.score(frame, [0, 1] * 2)):
        with pytest.warns(UserWarning, match=said) as caught:
            call()
        assert [one.filename for one in caught] == [__file__]
    with pytest.warns(UserWarning, match=said) as caught:
        ResonatorTransformer(5, random_state=0).fit_transform(frame)
    assert caught[0].filename == __file__


def test_a_score_reads_a_frame_once(monkeypatch):
    frame = pd.DataFrame({"id": np.repeat(range(6), 5), "v": np.arange(30.0) % 7})
    frame["kind"] = np.repeat([*"ababab"], 5)
    model = ResonatorClassifier(5, random_state=0).fit(frame, "kind")
    read, calls = inputs._from_frame, []
    monkeypatch.setattr(inputs, "_from_frame", lambda *a: calls.append(a) or read(*a))
    labels = frame.groupby("id")["kind"].first()
    right = np.mean(model.predict(frame) == labels)
    calls.clear()
    for y in (None, "kind", labels):
        assert model.score(frame, y) == right
    assert len(calls) == 3


def test_targets_of_a_frame():
    frame = pd.DataFrame({"case": [7, 7, 3], "v": [1.0, 2, 3], "kind": ["b", "b", "a"]})
    reader = Reader(columns=Columns(id="case", target="kind"))
    part, y = read_sequences(reader, frame, reset=True, wanted=True)
    assert y.tolist() == ["b", "a"] and part.y is None
    assert part.x[:, 0].tolist() == [1, 2, 3]
    _, y = read_sequences(reader, frame, ["u", "v"], reset=True, wanted=True)
    assert y == ["u", "v"]
    part, y = read_sequences(reader, frame.drop(columns="kind"), reset=False)
    assert y is None and len(part) == 2


@pytest.mark.parametrize("names", [["b", "c", "a"], [1, 2, 0]])
def test_targets_by_the_names_of_sequences_must_have_their_order(names):
    frame = pd.DataFrame({"id": np.repeat(names, 2), "v": range(6), "kind": [*"xxyyzz"]})
    x, rows = frame.drop(columns="kind"), frame.groupby("id")["kind"]
    for y in (rows.first(), rows.first().rename_axis(None), rows.first().to_frame()):
        with pytest.raises(ValueError, match=r"y must .* order .*; pass y.loc\[X\['id'\].unique"):
            read_sequences(Reader(), x, y, reset=True)
        read_sequences(Reader(), x, y.loc[x["id"].unique()], reset=True)
    read_sequences(Reader(), x, frame.drop_duplicates("id")["kind"], reset=True)
    read_sequences(Reader(), x, pd.Series([*"xyz"]), reset=True)
    model = ResonatorClassifier(3, random_state=0)
    with pytest.raises(ValueError, match="sample_weight must have the sequences in the order"):
        model.fit(x, [*"xyz"], sample_weight=rows.size())
    with pytest.raises(ValueError, match="y must have the sequences in the order"):
        model.fit(x, [*"xyz"]).score(x, rows.first())


A_STEP = "y must have one target per sequence; got a target for"
NAMED = pd.DataFrame({"id": [1, 1, 2, 2], "v": [1.0, 2, 3, 4], "label": [*"abba"]})


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (np.zeros((4, 3)), None, "Reader requires y to be passed"),
        (np.zeros((4, 3)), [1, 2], "inconsistent"),
        (np.zeros((1, 2, 3)), [1], "sequences of X must be at least 2"),
        ([np.zeros((2, 3)), np.zeros((3, 3))], None, "channels of sequence 1"),
        (pd.DataFrame({"id": [], "time": [], "v": []}), None, "rows in the table must be"),
        ([np.array(["a", "b"]), np.array(["c"])], None, "sequence 0 of x"),
        (RAGGED, [np.array([*"aab"]), np.array([*"abbbb"])], A_STEP),
        (RAGGED, [np.zeros((3, 1)), np.zeros((5, 1))], A_STEP),
        (np.zeros((2, 1, 3)), [["a", "b", "a"], ["a", "a", "b"]], A_STEP),
        (NAMED, None, A_STEP),
    ],
)
def test_wrong_use_is_said(x, y, words):
    with pytest.raises(ValueError, match=words):
        read_sequences(Reader(), x, y, reset=True, wanted=True, least=2)


def test_several_numbers_or_labels_per_sequence_may_be_as_many_as_the_steps():
    for y in (np.zeros((4, 3)), np.zeros((4, 3), bool), [[1.0, 2.0, 3.0]] * 4):
        assert read_sequences(Reader(), np.zeros((4, 1, 3)), y, reset=True, wanted=True)[1] is y


def test_missing_values_name_the_way_out():
    x = np.zeros((4, 3))
    x[1, 1] = np.nan
    with pytest.raises(ValueError, match=r'contains NaN.*missing="forward"'):
        read_sequences(Reader(missing="error"), x, reset=True)
    part, _ = read_sequences(Reader(missing="forward"), np.ma.masked_invalid(x), reset=True)
    assert np.isnan(part.x).sum() == 1


@pytest.mark.parametrize("shape", [(4, 3), (4, 1, 3)])
def test_numbers_that_float32_makes_coarse_are_warned_of(shape):
    x = 1e9 + np.arange(12.0).reshape(shape)
    with pytest.warns(UserWarning, match="kept in float32, in steps of 64"):
        read_sequences(Reader(), x, reset=True)
