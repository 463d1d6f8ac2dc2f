"""Bad input to estimators, resonators, exports, diagnostics, suites and data classes."""

from pathlib import Path

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic import diagnostics as looks
from anharmonic.data import Columns, file_digest, make_task, read_parts, sequences_from
from anharmonic.nn import ResonatorFeatures
from anharmonic.testing import check_graph_layer, check_sequence_layer, check_task
from anharmonic.train import Range, Run, RunEnvironment, compare, search

nan, inf = float("nan"), float("inf")
X = np.random.default_rng(0).standard_normal((12, 2, 9)).astype(np.float32)
Y = np.arange(12) % 2


def labelled(kind="ResonatorClassifier", **options):
    pytest.importorskip("sklearn")
    from anharmonic import estimators

    return getattr(estimators, kind)(**options)


def few(**options):
    return labelled(**{"num_oscillators": 20, "random_state": 0, **options})


def fitted():
    return few().fit(X, Y)


def with_one(value):
    x = X.copy()
    x[3, 1, 4] = value
    return x


ESTIMATORS = {
    "X None": lambda: few().fit(None, Y),
    "X a number": lambda: few().fit(3.0, Y),
    "X text": lambda: few().fit("x", Y),
    "X of words": lambda: few().fit(np.full((12, 2, 9), "a"), Y),
    "X four axes": lambda: few().fit(X[None], Y),
    "X no steps": lambda: few().fit(X[:, :, :0], Y),
    "X no channels": lambda: few().fit(X[:, :0], Y),
    "X beyond float32": lambda: few().fit(with_one(1.0).astype(np.float64) * 1e300, Y),
    "X a list of mixed channels": lambda: few().fit([X[0], X[1, :1], *X[2:]], Y),
    "X a list with an empty series": lambda: few().fit([X[0, :, :0], *X[1:]], Y),
    "X a list of numbers": lambda: few().fit([1, 2, 3], [0, 1, 0]),
    "y short": lambda: few().fit(X, Y[:5]),
    "y nan": lambda: few().fit(X, np.where(Y, nan, 1.0)),
    "y two columns": lambda: few().fit(X, np.stack([Y, Y], 1)),
    "y numbers": lambda: few().fit(X, np.linspace(0, 1, 12)),
    "oscillators -3": lambda: few(num_oscillators=-3).fit(X, Y),
    "oscillators 2.5": lambda: few(num_oscillators=2.5).fit(X, Y),
    "oscillators text": lambda: few(num_oscillators="20").fit(X, Y),
    "biases 0": lambda: few(num_biases=0).fit(X, Y),
    "biases text": lambda: few(num_biases="two").fit(X, Y),
    "pools unknown": lambda: few(pools=["most"]).fit(X, Y),
    "pools none": lambda: few(pools=[]).fit(X, Y),
    "pools text": lambda: few(pools="end").fit(X, Y),
    "random_state text": lambda: few(random_state="a").fit(X, Y),
    "alphas negative": lambda: few(alphas=[-1.0]).fit(X, Y),
    "alphas empty": lambda: few(alphas=[]).fit(X, Y),
    "predict nothing": lambda: fitted().predict(X[:0]),
    "regressor words": lambda: few(kind="ResonatorRegressor").fit(X, np.full(12, "a")),
    "regressor inf": lambda: few(kind="ResonatorRegressor").fit(X, np.full(12, inf)),
    "trained device": lambda: labelled("SequenceClassifier", device="gpu").fit(X, Y),
    "trained option": lambda: labelled(
        "SequenceClassifier", model_options={"width": 3}, max_steps=1
    ).fit(X, Y),
    "trained inf": lambda: labelled("SequenceRegressor", max_steps=1).fit(with_one(inf), Y * 1.0),
    "forecaster share": lambda: labelled("SequenceForecaster", valid_share=1.0).fit(X),
    "forecaster inf": lambda: labelled("SequenceForecaster", max_steps=1).fit(with_one(inf)),
}


@pytest.mark.slow
@pytest.mark.parametrize("call", ESTIMATORS.values(), ids=ESTIMATORS)
def test_estimators(call):
    """Some of these are scikit-learn's own errors, whose words are its own."""
    from sklearn.exceptions import NotFittedError

    with pytest.raises((ValueError, TypeError, NotFittedError)) as caught:
        call()
    assert "broadcast" not in str(caught.value) and "subscript" not in str(caught.value)
    assert len(str(caught.value)) > 20, str(caught.value)


SERIES = X.transpose(0, 2, 1)


def stream(**options):
    features = ResonatorFeatures(num_oscillators=20, **options).fit(SERIES)
    return features, features.stream(num_streams=2)


RESONATORS = {
    "oscillators 0": lambda: ResonatorFeatures(num_oscillators=0),
    "oscillators text": lambda: ResonatorFeatures(num_oscillators="9"),
    "biases text": lambda: ResonatorFeatures(num_biases="two"),
    "scaling": lambda: ResonatorFeatures(scaling="most").fit(SERIES),
    "fit nan": lambda: ResonatorFeatures(num_oscillators=9).fit(SERIES * nan),
    "fit inf": lambda: ResonatorFeatures(num_oscillators=9).fit(SERIES + inf),
    "fit nothing": lambda: ResonatorFeatures(num_oscillators=9).fit(SERIES[:0]),
    "fit of mixed channels": lambda: ResonatorFeatures(num_oscillators=9).fit(
        [np.zeros((3, 2)), np.zeros((3, 1))]
    ),
    "fit of an empty series": lambda: ResonatorFeatures(num_oscillators=9).fit([np.zeros((0, 2))]),
    "fit of one axis": lambda: ResonatorFeatures(num_oscillators=9).fit([np.zeros(3)]),
    "streams of scaled series": lambda: stream(scaling="series"),
    "transform before fit": lambda: ResonatorFeatures(num_oscillators=9).transform(SERIES),
    "transform other channels": lambda: stream()[0].transform(SERIES[:, :, :1]),
    "transform nan": lambda: stream()[0].transform(SERIES * nan),
    "streams 0": lambda: stream()[0].stream(num_streams=0),
    "streams text": lambda: stream()[0].stream(num_streams="2"),
    "sample of another shape": lambda: stream()[1].update(np.ones((3, 2))),
    "sample of one axis": lambda: stream()[1].update(np.ones(2)),
    "sample nan": lambda: stream()[1].update(np.full((2, 2), nan)),
    "sample inf": lambda: stream()[1].update(np.full((2, 2), inf)),
    "sample None": lambda: stream()[1].update(None),
    "sample words": lambda: stream()[1].update([["a", "b"], ["c", "d"]]),
    "elapsed nan": lambda: stream()[1].update(np.ones((2, 2)), elapsed=nan),
    "elapsed text": lambda: stream()[1].update(np.ones((2, 2)), elapsed="1"),
    "features before a sample": lambda: stream()[1].features(),
    "bank of q 0": lambda: ah.ResonatorBank(2, 4, q=0),
    "bank of q nan": lambda: ah.ResonatorBank(2, 4, q=nan),
}


@pytest.mark.parametrize("call", RESONATORS.values(), ids=RESONATORS)
def test_resonators(call, refused):
    refused(call, ValueError, TypeError, RuntimeError)


def c_of(model, *place, **options):
    from anharmonic.export import write_c

    return write_c(model, *(place or ("out",)), **options)


def onnx_of(model, path="m.onnx", **options):
    pytest.importorskip("onnxscript")
    from anharmonic.export import write_onnx

    return write_onnx(model, path, **options)


def model(layer="LEM", **options):
    return ah.SequenceModel(layer, 2, 3, hidden_size=4, **options)


def unfinite():
    made = model()
    with torch.no_grad():
        made.linear.weight.fill_(nan)
    return made


def a_file():
    Path("taken").write_text("x")
    return "taken"


EXPORTS = {
    "C of None": lambda: c_of(None),
    "C of a layer of torch": lambda: c_of(torch.nn.Linear(2, 2)),
    "C of no folder": lambda: c_of("nowhere"),
    "C of a bidirectional model": lambda: c_of(model(bidirectional=True)),
    "C of an embedding": lambda: c_of(
        ah.SequenceModel("LEM", 9, 3, hidden_size=4, embedding_size=2)
    ),
    "C of NaN": lambda: c_of(unfinite()),
    "C of weights": lambda: c_of(model(), weights="int4"),
    "C without calibration": lambda: c_of(model(), weights="int8"),
    "C calibration empty": lambda: c_of(model(), weights="int8", calibration=[]),
    "C calibration nan": lambda: c_of(
        model(), weights="int8", calibration=[np.full((9, 2), nan, np.float32)]
    ),
    "C calibration of other width": lambda: c_of(
        model(), weights="int8", calibration=[np.ones((9, 5), np.float32)]
    ),
    "C calibration text": lambda: c_of(model(), weights="int8", calibration="none.npz"),
    "C class names": lambda: c_of(model(), class_names=["a"]),
    "C class names numbers": lambda: c_of(model(), class_names=[1, 2, 3]),
    "C into a file": lambda: c_of(model(), a_file()),
    "C examples of other width": lambda: c_of(model(), examples=[np.ones((9, 5))]),
    "C examples nan": lambda: c_of(model(), examples=[np.full((9, 2), nan)]),
    "ONNX of None": lambda: onnx_of(None),
    "ONNX of no folder": lambda: onnx_of("nowhere"),
    "ONNX of an LSTM": lambda: onnx_of(model("LSTM")),
    "ONNX into no folder": lambda: onnx_of(model(), "nowhere/m.onnx"),
    "ONNX step of a model": lambda: onnx_of(model(), step=True),
}


@pytest.mark.slow
def test_onnx_onto_a_folder(refused):
    Path("d.onnx").mkdir()
    refused(lambda: onnx_of(model(), "d.onnx"), ValueError, OSError)


@pytest.mark.parametrize("call", EXPORTS.values(), ids=EXPORTS)
def test_exports(call, refused):
    refused(call, ValueError, TypeError, OSError)
    assert not Path("out/model.c").exists() and not Path("m.onnx").exists()


def lem():
    return ah.LEM(2, 3)


ones = torch.ones(5, 2, 2)
LOOKS = {
    "gradients of None": lambda: looks.state_gradients(None, ones),
    "gradients of a Linear": lambda: looks.state_gradients(torch.nn.Linear(2, 3), ones),
    "gradients of another width": lambda: looks.state_gradients(lem(), torch.ones(5, 2, 3)),
    "gradients of nan": lambda: looks.state_gradients(lem(), ones * nan),
    "gradients of float64": lambda: looks.state_gradients(lem(), ones.double()),
    "gradients of numpy": lambda: looks.state_gradients(lem(), ones.numpy()),
    "gradients of nothing": lambda: looks.state_gradients(lem(), ones[:0]),
    "gates of another shape": lambda: looks.gates(lem(), torch.ones(5, 2)),
    "histogram of negatives": lambda: looks.scale_histogram(-torch.ones(9)),
    "histogram of nan": lambda: looks.scale_histogram(torch.full((9,), nan)),
    "histogram of nothing": lambda: looks.scale_histogram(torch.ones(0)),
    "histogram of 0 bins": lambda: looks.scale_histogram(torch.ones(9), bins=0),
    "distance beyond": lambda: looks.mean_average_distance(
        torch.ones(3, 2), torch.tensor([[0], [7]])
    ),
    "grid text": lambda: looks.grid_graph("3", 3),
}


@pytest.mark.parametrize("call", LOOKS.values(), ids=LOOKS)
def test_diagnostics(call, refused):
    refused(call)


class Zero(torch.nn.Module):
    """No layer at all."""

    def forward(self, *words, **options):
        return torch.zeros(1)


SUITES = {
    "layer None": lambda: check_sequence_layer(None),
    "layer of None": lambda: check_sequence_layer(lambda *sizes, **options: None),
    "layer of nothing": lambda: check_sequence_layer(lambda *sizes, **options: Zero()),
    "graph layer of None": lambda: check_graph_layer(lambda: None, width=4),
    "graph layer of nothing": lambda: check_graph_layer(lambda: Zero(), width=4),
    "task of None": lambda: check_task(lambda: None),
}


@pytest.mark.parametrize("call", SUITES.values(), ids=SUITES)
def test_suites_fail_where_there_is_nothing_to_test(call):
    with pytest.raises((AssertionError, TypeError, ValueError, AttributeError)):
        call()


RUNS = {
    "task": lambda: Run("bogus", "LEM"),
    "task a number": lambda: Run(3, "LEM"),
    "model": lambda: Run("adding", "Evil"),
    "model a class": lambda: Run("adding", ah.LEM),
    "options a list": lambda: Run("adding", "LEM", []),
    "options of numbers": lambda: Run("adding", "LEM", {1: 2}),
    "model option": lambda: Run("adding", "LEM", {}, {"width": 3}),
    "epochs 0": lambda: Run("adding", "LEM", epochs=0),
    "batch 0": lambda: Run("adding", "LEM", batch_size=0),
    "seed -1": lambda: Run("adding", "LEM", seed=-1),
    "clip nan": lambda: Run("adding", "LEM", clip_norm=nan),
    "smoothing 2": lambda: Run("adding", "LEM", label_smoothing=2.0),
    "schedule": lambda: Run("adding", "LEM", schedule="most"),
    "optimizer": lambda: Run("adding", "LEM", optimizer="most"),
    "patience 0": lambda: Run("adding", "LEM", patience=0),
    "batch_first option": lambda: Run("adding", "LEM", {}, {"batch_first": True}),
    "dtype option": lambda: Run("adding", "LEM", {}, {"dtype": "x"}),
    "option a set": lambda: Run("adding", "LEM", {"length": {1}}),
    "option nan": lambda: Run("adding", "LEM", {}, {"dropout": nan}),
    "lr 0": lambda: Run("adding", "LEM", lr=0.0),
    "lr 11": lambda: Run("adding", "LEM", lr=11),
    "clip 0": lambda: Run("adding", "LEM", clip_norm=0),
    "drop epoch 0": lambda: Run("adding", "LEM", lr_drop_epoch=0),
    "weight decay -0.1": lambda: Run("adding", "LEM", weight_decay=-0.1),
    "environment a TPU": lambda: RunEnvironment(device="tpu"),
    "environment a GPU": lambda: RunEnvironment(device="gpu"),
    "environment many threads": lambda: RunEnvironment(threads=100_000),
    "environment out": lambda: RunEnvironment(out=None),
    "environment data": lambda: RunEnvironment(data_dir=3),
    "environment progress": lambda: RunEnvironment(progress="yes"),
    "environment logger": lambda: RunEnvironment(logger="tensorbord"),
    "environment threads": lambda: RunEnvironment(threads=0),
    "environment devices": lambda: RunEnvironment(devices=0),
    "environment device": lambda: RunEnvironment(device="most"),
    "range turned": lambda: Range(1.0, 0.5),
    "range of logarithms": lambda: Range(0.0, 1.0, log=True),
    "range empty": lambda: Range(1.0, 1.0),
    "range nan": lambda: Range(nan, 1.0),
    "search nothing": lambda: search(Run("adding", "LEM"), {}, 1, RunEnvironment(), Path("s")),
    "search trials": lambda: search(
        Run("adding", "LEM"), {"lr": Range(1e-3, 1e-2)}, 0, RunEnvironment(), Path("s")
    ),
    "search name": lambda: search(
        Run("adding", "LEM"), {"width": Range(1, 2)}, 1, RunEnvironment(), Path("s")
    ),
    "search sampler": lambda: search(
        Run("adding", "LEM"), {"lr": Range(1e-3, 1e-2)}, 1, RunEnvironment(), Path("s"),
        sampler="most",
    ),
    "compare nothing": lambda: compare("bogus"),
    "compare no file": lambda: compare("none.csv"),
    "compare models": lambda: compare("digits", models=["Evil"]),
    "compare no models": lambda: compare("digits", models=[]),
    "compare seeds": lambda: compare("digits", seeds=[]),
    "compare folds": lambda: compare("digits", folds=1),
    "task name": lambda: make_task("bogus", {}),
    "task option": lambda: make_task("adding", {"width": 3}),
    "task path": lambda: make_task("digits", {"data_dir": "x"}),
    "task without its file": lambda: make_task("file", {}),
    "task with another's file": lambda: make_task("adding", {}, file=Path("mine.npz")),
    "task length 1": lambda: make_task("adding", {"length": 1}),
    "task valid_size": lambda: make_task("adding", {"valid_size": 0}),
    "task test_size": lambda: make_task("adding", {"test_size": 0}),
    "task steps": lambda: make_task("adding", {"steps_per_epoch": 0}),
    "task data_seed": lambda: make_task("adding", {"data_seed": -1}),
    "task length text": lambda: make_task("adding", {"length": "9"}),
    "digest of nothing": lambda: file_digest("none.npz"),
    "frame None": lambda: sequences_from(None, None),
}  # fmt: skip


@pytest.mark.parametrize("call", RUNS.values(), ids=RUNS)
def test_runs_and_tasks(call, refused):
    refused(call, ValueError, TypeError, OSError)


def table(text, name="d.csv", **columns):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_parts(name, columns=Columns(**columns) if columns else None)


WIDE = "label,a,b,c\n" + "".join(f"{'xy'[i % 2]},{i},{i + 1},2\n" for i in range(8))
TABLES = {
    "empty": lambda: table(""),
    "header only": lambda: table("label,a,b\n"),
    "no numbers": lambda: table("label,a\nx,y\nz,w\n"),
    "a word": lambda: table(WIDE + "x,1,word,3\n"),
    "a row short": lambda: table(WIDE + "x,1\n"),
    "a row long": lambda: table(WIDE + "x,1,2,3,4\n"),
    "twice a name": lambda: table(WIDE.replace("a,b", "a,a", 1)),
    "open quote": lambda: table(WIDE + 'x,"1,2,3\n'),
    "NUL": lambda: table(WIDE + "x,\0,2,3\n"),
    "binary": lambda: table(bytes(range(256)) * 9),
    "no column of that name": lambda: table(WIDE, group="nobody"),
    "no target": lambda: table(WIDE, target="volume"),
    "time of words": lambda: table(
        "id,time,u,label\n1,now,2,x\n1,then,3,x\n", time="time", id="id"
    ),
    "parquet of text": lambda: table(WIDE, "d.parquet"),
    "arff of the archives": lambda: table("@relation x\n@attribute a real\n@data\n1\n", "d.arff"),
    "target without a name": lambda: table(WIDE, target=""),
    "id that is not there": lambda: table(WIDE, id="nobody"),
    "time that is not there": lambda: table(WIDE, time="never"),
    "target a number": lambda: table(WIDE, target=3),
}


@pytest.mark.parametrize("call", TABLES.values(), ids=TABLES)
def test_tables(call, refused):
    refused(call, ValueError, TypeError)
