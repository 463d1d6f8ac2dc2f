"""ONNX and torch.export: a saved graph computes what the model computes, for any length and batch.

The graphs of onnxruntime and of PyTorch are called alike: tensors in, a list of tensors out.
"""

import json
import shutil

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.export import write_onnx, write_torch

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
