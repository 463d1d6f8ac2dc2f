"""ONNX and torch.export: a saved graph prepares and computes as its model, at any length and batch.

The graphs of onnxruntime and of PyTorch are called alike: tensors in, a list of tensors out.
"""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.sequences import Sequences
from anharmonic.export import write_onnx, write_torch
from anharmonic.export.graph import RunProgram
from anharmonic.export.prepared import Prepared
from anharmonic.ops import use_backend
from anharmonic.ops.reference import as_scan

SIZES = ((1, 2), (77, 1), (200, 300))  # steps and sequences
LAYERS = ["LEM", "CoRNN", "UnICORNN", "NeuralOscillator", "MultiLayerNeuralOscillator"]
LAYERS += ["SkewRNN", "ResonatorBank", "FastGRNN"]
FORMATS = {"onnx": write_onnx, "pt2": write_torch}


@pytest.fixture(autouse=True)
def onnx(request):
    """Skips cases in ONNX without its packages."""
    if "onnx" in request.node.name:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed (extra onnx)")
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")


def onnx_session(path):
    import onnxruntime as runtime

    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def saved(form, module, folder, **options):
    """The module written in a format, as a function."""
    path = FORMATS[form](module, folder / f"graph.{form}", **options)
    if form == "pt2":
        program = torch.export.load(path).module()
        return lambda *inputs: list(program(*inputs))
    loaded = onnx_session(path)
    names = [one.name for one in loaded.get_inputs()]

    def run(*inputs):
        # Without a state that the graph asks for, or with one that it has not, this raises.
        given = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
        return [torch.from_numpy(found) for found in loaded.run(None, given)]

    return run


def layer_of(name, **options):
    torch.manual_seed(0)
    return getattr(ah, name)(3, 8, **options).eval().requires_grad_(False)


def states_of(layer, batch):
    state = layer(torch.zeros(1, batch, 3))[1]
    return [0.3 * torch.randn(part.shape) for part in state]


def assert_near(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def assert_runs_as(layer, graph):
    """At any length and batch, from any state."""
    for steps, batch in SIZES:
        x, state = torch.randn(steps, batch, 3), states_of(layer, batch)
        output, end = layer(x, layer.state_type(*state))
        assert_near(graph(x, *state), (output, *end))


@pytest.mark.fast(
    "onnx-LEM-two layers", "pt2-UnICORNN-two layers", "pt2-SkewRNN-default",
    "pt2-CoRNN-bidirectional",
)  # fmt: skip
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2}, {"bidirectional": True}],
    ids=["default", "two layers", "bidirectional"],
)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("form", FORMATS)
def test_any_length_and_batch_with_states(tmp_path, form, name, options):
    layer = layer_of(name, **options)
    assert_runs_as(layer, saved(form, layer, tmp_path))


@pytest.mark.fast("pt2-mean, bidirectional", "pt2-mean, patch")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"readout": "last"}, id="last"),
        pytest.param({"readout": "all", "num_layers": 2}, id="all, two layers"),
        pytest.param({"readout": "mean", "bidirectional": True}, id="mean, bidirectional"),
        pytest.param({"readout": "mean", "patch": 3}, id="mean, patch"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_models(tmp_path, form, options):
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", 3, 4, hidden_size=8, **options)
    graph = saved(form, model, tmp_path)
    assert model.training  # as it was
    model.eval().requires_grad_(False)
    for steps, batch in ((9, 5), (10, 5), (60, 5)):
        x = torch.randn(batch, steps, 3)
        state = [torch.zeros(options.get("num_layers", 1), batch, 8)] * 2
        carries_state = options["readout"] != "mean"
        assert_near(graph(x, *state if carries_state else ())[:1], [model(x)])


@pytest.mark.fast("pt2")
@pytest.mark.parametrize("form", FORMATS)
def test_a_step(tmp_path, form):
    layer = layer_of("UnICORNN", num_layers=2)
    graph = saved(form, layer, tmp_path, step=True)
    x, state = torch.randn(7, 3), states_of(layer, 7)
    output, end = layer.step(x, layer.state_type(*state))
    assert_near(graph(x, *state), (output, *end))


def test_blocks_at_any_length_and_their_running_statistics(tmp_path):
    model = ah.SequenceModel("LinOSSNetwork", 3, 2, hidden_size=4, num_layers=1, norm="batch")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    graph, start = saved("pt2", model, tmp_path), torch.zeros(1, 2, 4)
    after = model.state_dict()
    assert model.training and all(torch.equal(after[name], before[name]) for name in before)
    model.eval()
    for steps in (1, 9):
        x = torch.randn(2, steps, 3)
        assert_near(graph(x, start, start)[:1], [model(x).detach()])


def test_a_run_in_onnx_takes_samples_as_they_are(tmp_path, cli, trained):
    x = 50 + 9 * np.random.default_rng(0).random((40, 12, 2)).astype("f4")
    arrays = {"x": x, "y": np.where(x.mean((1, 2)) > 54.5, "high", "low")}
    file, folder = trained("lem", arrays, "--readout", "mean", "--patch", 3)
    code, out, err = cli("export", folder, "--onnx", "model.onnx")
    assert (code, out) == (0, "wrote model.onnx\n"), err
    loaded = onnx_session(tmp_path / "model.onnx")
    wanted = ah.train.predict(folder, file)
    name = loaded.get_inputs()[0].name
    np.testing.assert_allclose(loaded.run(None, {name: x})[0], wanted.values, atol=1e-5)
    kept = json.loads(loaded.get_modelmeta().custom_metadata_map["class_names"])
    assert tuple(kept) == wanted.class_names


def test_a_run_on_a_graph_is_refused(cli, trained):
    pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    ring, y = np.arange(20), np.array(["a", "b"] * 10)
    arrays = {"x": np.eye(20), "edge_index": [ring, np.roll(ring, 1)], "y": y}
    code, _, err = cli("export", trained("plaingnn", arrays)[1], "--torch", "model.pt2")
    assert code == 2 and "a SequenceModel; got 'PlainGNN'; pass anharmonic.from_pretrained" in err


def test_a_portable_program_needs_pytorch_alone_and_others_one_import(tmp_path, run_python):
    layer = layer_of("LEM")
    x, state = torch.randn(20, 9, 3), states_of(layer, 9)
    torch.save((x, *state, layer(x, layer.state_type(*state))[0]), tmp_path / "case.pt")
    write_torch(layer, tmp_path / "portable.pt2", portable=True)
    write_torch(layer, tmp_path / "layer.pt2")
    done = run_python(f"""
import os, sys, torch
os.chdir({str(tmp_path)!r})
*inputs, wanted = torch.load("case.pt")
for name in ("portable.pt2", "layer.pt2"):
    found = torch.export.load(name).module()(*inputs)[0]
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    assert ("anharmonic" in sys.modules) == (name == "layer.pt2")
    import anharmonic.ops
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("name", "options"), [("LEM", {"num_layers": 2}), ("CoRNN", {})])
def test_inductor_compiles_the_program(tmp_path, name, options, ahead):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    layer = layer_of(name, **options)
    program = torch.export.load(write_torch(layer, tmp_path / "layer.pt2"))
    if ahead:
        path = str(tmp_path / "compiled.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(program.module(), fullgraph=True, dynamic=True)
    assert_runs_as(layer, compiled)


KINDS = {
    "nothing": {"standardise": False, "missing": "error"},
    "forward": {"missing": "forward", "difference": True},
    "mask": {"missing": "mask", "difference": True, "elapsed": "channel"},
    "mean, each": {"missing": "mean", "scale_each": True},
    "step": {"missing": "mask", "elapsed": "step"},
}


def samples(missing):
    rng = np.random.default_rng(0)
    x = rng.normal([1.0, 5000.0], [2.0, 0.1], (5, 12, 2)).astype(np.float32)
    if missing != "error":
        x[rng.random(x.shape) < 0.3] = np.nan
        x[0, :3], x[1, :, 1] = np.nan, np.nan
    x[4, :, 0] = 1.3  # constant
    elapsed = rng.uniform(0.5, 1.5, (5, 12)).astype(np.float32)
    elapsed[:, 0] = 0
    return x, elapsed


def fitted(kind):
    options = {"standardise": True, **KINDS[kind]}
    x, elapsed = samples(options["missing"])
    flat = Sequences(
        "here", x.reshape(-1, 2), 12 * np.arange(6), elapsed=elapsed.ravel(), y=np.zeros((5, 1))
    )
    made = Preprocessing.fit(flat, options.pop("standardise"), options.pop("missing"), **options)
    return made, flat, torch.from_numpy(x), torch.from_numpy(elapsed)


@pytest.mark.covering
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scans", [False, True])
def test_samples_are_prepared_as_in_training(kind, scans):
    made, flat, x, elapsed = fitted(kind)
    prepared = Prepared(made)
    wanted = made.transform(flat).reshape(5, 12, -1)
    if scans:
        with use_backend("reference"), as_scan():
            found = prepared(x, prepared.steps(elapsed))
    else:
        found = prepared(x, prepared.steps(elapsed))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_constant_in_every_sequence_is_what_training_makes_of_it():
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=(7, 30)), np.repeat(rng.normal(size=(7, 1)), 30, 1)], 2)
    flat = Sequences("here", x.reshape(-1, 2).astype(np.float32), 30 * np.arange(8))
    made = Preprocessing.fit(flat, True, "error", scale_each=True)
    found = Prepared(made)(torch.from_numpy(flat.x).reshape(7, 30, 2))
    np.testing.assert_allclose(found.reshape(210, -1), made.transform(flat), atol=1e-4)


def test_a_forecast_goes_on_from_the_last_known_values_in_the_units_of_its_channels():
    made, flat, x, _ = fitted("forward")
    made = dataclasses.replace(made, forecast=(1, 0), horizon=3, target_scale=(2.0, 5.0))
    last = Prepared(made).last_known(x)
    np.testing.assert_allclose(last, made.last_known(flat, (1, 0)))
    model = ah.SequenceModel("LEM", made.size, 6, hidden_size=4)
    with torch.no_grad():
        model.linear.weight.zero_()
        model.linear.bias.fill_(1.0)
        (found,) = RunProgram(model, made, "value")(x)
    torch.testing.assert_close(found.reshape(5, 3, 2)[:, 2], last + torch.tensor([2.0, 5.0]))
