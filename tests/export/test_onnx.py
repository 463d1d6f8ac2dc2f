"""ONNX: what onnxruntime computes is what the model computes, for any length and batch."""

import json

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.export import write_onnx

pytest.importorskip("onnxscript", reason="onnxscript is not installed (extra onnx)")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")

LAYERS = ("LEM", "CoRNN", "UnICORNN", "NeuralOscillator", "SkewRNN", "ResonatorBank")


def session(path):
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def run(loaded, *inputs):
    names = [one.name for one in loaded.get_inputs()]
    return loaded.run(None, {n: np.asarray(v) for n, v in zip(names, inputs, strict=True)})


def layer_of(name, **options):
    torch.manual_seed(0)
    return getattr(ah, name)(3, 8, **options).eval()


def states_of(layer, batch):
    state = layer(torch.zeros(1, batch, 3))[1]
    return [0.3 * torch.randn(part.shape) for part in state]


@pytest.mark.fast("LEM-options1")
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True}])
@pytest.mark.parametrize("name", LAYERS)
def test_any_length_and_batch_with_states(tmp_path, name, options):
    layer = layer_of(name, **options)
    loaded = session(write_onnx(layer, tmp_path / "layer.onnx"))
    fields = layer.state_type._fields
    assert [one.name for one in loaded.get_inputs()] == ["x", *fields]
    assert [one.name for one in loaded.get_outputs()] == ["output", *(f"{n}_end" for n in fields)]
    for steps, batch in ((1, 2), (77, 1), (200, 5)):
        x, state = torch.randn(steps, batch, 3), states_of(layer, batch)
        with torch.no_grad():
            output, end = layer(x, layer.state_type(*state))
        for found, wanted in zip(run(loaded, x, *state), (output, *end), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow  # test_any_length_and_batch_with_states begins with states
@pytest.mark.parametrize("name", ["LEM", "UnICORNN"])
def test_two_halves_and_single_steps_are_the_whole(tmp_path, name):
    layer = layer_of(name)
    loaded = session(write_onnx(layer, tmp_path / "layer.onnx"))
    one = session(write_onnx(layer, tmp_path / "step.onnx", step=True))
    x, state = torch.randn(50, 2, 3).numpy(), [part.numpy() for part in states_of(layer, 2)]
    whole, *end = run(loaded, x, *state)
    first, *middle = run(loaded, x[:20], *state)
    second, *last = run(loaded, x[20:], *middle)
    np.testing.assert_allclose(np.concatenate([first, second]), whole, atol=1e-6)
    for found, wanted in zip(last, end, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    for k in range(3):
        output, *state = run(one, x[k], *state)
        np.testing.assert_allclose(output, whole[k], atol=1e-6)


@pytest.mark.slow  # test_torch_program.py has the graphs of models
@pytest.mark.parametrize(
    "options",
    [
        {"readout": "last"},
        {"readout": "all", "num_layers": 2},
        {"readout": "mean", "bidirectional": True},
        {"readout": "mean", "patch": 3},
    ],
)
def test_models(tmp_path, options):
    torch.manual_seed(0)
    model = ah.SequenceModel("LEM", 3, 4, hidden_size=8, **options).eval()
    loaded = session(write_onnx(model, tmp_path / "model.onnx"))
    carried = [torch.zeros(len(model.layer(torch.zeros(1, 1, 3 * model.patch))[1][0]), 5, 8)] * 2
    carried = carried if len(loaded.get_inputs()) > 1 else []
    for steps in (9, 60):
        x = torch.randn(5, steps, 3)
        with torch.no_grad():
            np.testing.assert_allclose(run(loaded, x, *carried)[0], model(x), atol=1e-5)


def test_a_run_takes_samples_as_they_are(tmp_path, cli):
    rng = np.random.default_rng(0)
    x = 50 + 9 * rng.random((40, 12, 2)).astype("f4")
    np.savez(tmp_path / "mine.npz", x=x, y=np.where(x.mean((1, 2)) > 54.5, "high", "low"))
    words = ("--epochs", "1", "--hidden-size", "4", "--threads", "1", "--no-progress")
    code, out, err = cli("train", "lem", "mine.npz", *words)
    assert code == 0, err
    folder = out.split("run folder")[1].split()[0]
    code, out, err = cli("export", folder, "--onnx", "model.onnx")
    assert (code, out) == (0, "wrote model.onnx\n"), err
    loaded = session(tmp_path / "model.onnx")
    wanted = ah.train.predict(folder, "mine.npz")
    np.testing.assert_allclose(run(loaded, x)[0], wanted.values, atol=1e-5)
    kept = json.loads(loaded.get_modelmeta().custom_metadata_map["class_names"])
    assert tuple(kept) == wanted.class_names


def test_what_cannot_be_exported_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"none of torch\.nn.*'LSTM'.*write_c"):
        write_onnx(ah.LSTM(2, 3), tmp_path / "a.onnx")
    with pytest.raises(TypeError, match="pass a recurrent layer"):
        write_onnx(torch.nn.Linear(2, 3), tmp_path / "a.onnx")
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        write_onnx(ah.LEM(2, 3), tmp_path / "none" / "a.onnx")
    assert not list(tmp_path.iterdir())
