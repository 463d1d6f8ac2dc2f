"""torch.export: the saved program is the model, for any length and batch."""

import shutil

import pytest
import torch

import anharmonic as ah
from anharmonic.export import write_torch

SIZES = ((1, 1), (77, 2), (200, 300), (1000, 5))  # steps and sequences


def states_of(layer, batch):
    state = layer(torch.zeros(1, batch, 3))[1]
    return [0.3 * torch.randn(part.shape) for part in state]


def layer_of(name, **options):
    torch.manual_seed(0)
    return getattr(ah, name)(3, 8, **options).eval()


@pytest.mark.fast("LEM-options0", "UnICORNN-options2", "SkewRNN-options4")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LEM", {"num_layers": 2}),
        ("CoRNN", {"bidirectional": True}),
        ("UnICORNN", {"num_layers": 2}),
        ("NeuralOscillator", {}),
        ("SkewRNN", {}),
        ("ResonatorBank", {}),
        ("FastGRNN", {}),
    ],
)
def test_any_length_and_batch_with_states(tmp_path, name, options):
    layer = layer_of(name, **options)
    program = torch.export.load(write_torch(layer, tmp_path / "layer.pt2")).module()
    for steps, batch in SIZES:
        x, state = torch.randn(steps, batch, 3), states_of(layer, batch)
        with torch.no_grad():
            output, end = layer(x, layer.state_type(*state))
            found = program(x, *state)
        for one, wanted in zip(found, (output, *end), strict=True):
            torch.testing.assert_close(one, wanted, atol=1e-5, rtol=0)


def test_a_portable_program_needs_pytorch_alone(tmp_path, monkeypatch, run_python):
    monkeypatch.chdir(tmp_path)
    layer = layer_of("LEM")
    x, state = torch.randn(20, 300, 3), states_of(layer, 300)
    torch.save((x, *state, layer(x, layer.state_type(*state))[0]), tmp_path / "case.pt")
    write_torch(layer, tmp_path / "layer.pt2", portable=True)
    code = (
        "import sys, torch\n"
        "*inputs, wanted = torch.load('case.pt')\n"
        "found = torch.export.load('layer.pt2').module()(*inputs)[0]\n"
        "assert 'anharmonic' not in sys.modules\n"
        "torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_one_import_loads_the_operator(tmp_path, monkeypatch, run_python):
    monkeypatch.chdir(tmp_path)
    layer = layer_of("CoRNN")
    torch.save((torch.ones(9, 2, 3), *states_of(layer, 2)), tmp_path / "case.pt")
    write_torch(layer, tmp_path / "layer.pt2")
    code = (
        "import anharmonic.ops, torch\n"
        "inputs = torch.load('case.pt')\n"
        "print(torch.export.load('layer.pt2').module()(*inputs)[0].shape)\n"
    )
    done = run_python(code)
    assert done.stdout.strip() == "torch.Size([9, 2, 8])", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("name", "options"), [("LEM", {"num_layers": 2}), ("CoRNN", {})])
def test_inductor_compiles_the_program(tmp_path, name, options, ahead):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    layer = layer_of(name, **options)
    program = torch.export.load(write_torch(layer, tmp_path / "layer.pt2"))
    with torch.no_grad():
        if ahead:
            path = str(tmp_path / "compiled.pt2")
            torch._inductor.aoti_compile_and_package(program, package_path=path)
            compiled = torch._inductor.aoti_load_package(path)
        else:
            compiled = torch.compile(program.module(), fullgraph=True, dynamic=True)
        for steps, batch in SIZES:
            x, state = torch.randn(steps, batch, 3), states_of(layer, batch)
            output, end = layer(x, layer.state_type(*state))
            for one, wanted in zip(compiled(x, *state), (output, *end), strict=True):
                torch.testing.assert_close(one, wanted, atol=1e-6, rtol=0)


@pytest.mark.fast("options1", "options3")
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
    model = ah.SequenceModel("LEM", 3, 4, hidden_size=8, **options)
    program = torch.export.load(write_torch(model, tmp_path / "model.pt2")).module()
    assert model.training  # as it was
    model.eval()
    carries = not {"patch", "bidirectional"} & set(options) and options["readout"] != "mean"
    for steps, batch in SIZES[1 if "patch" in options else 0 :]:  # not of one patch only
        x = torch.randn(batch, steps, 3)
        state = [torch.zeros(options.get("num_layers", 1), batch, 8)] * 2 if carries else []
        found = program(x, *state)[0]
        torch.testing.assert_close(found, model(x), atol=1e-5, rtol=0)


def test_a_step(tmp_path):
    layer = layer_of("UnICORNN", num_layers=2)
    program = torch.export.load(write_torch(layer, tmp_path / "step.pt2", step=True)).module()
    x, state = torch.randn(7, 3), states_of(layer, 7)
    output, end = layer.step(x, layer.state_type(*state))
    for found, wanted in zip(program(x, *state), (output, *end), strict=True):
        torch.testing.assert_close(found, wanted)


def test_what_it_cannot_write_is_said(tmp_path):
    with pytest.raises(TypeError, match=r"SequenceModel"):
        write_torch(torch.nn.Linear(2, 2), tmp_path / "x.pt2")
    for wrong in (ah.LSTM(3, 4), ah.SequenceModel("GRU", 3, 4, hidden_size=4)):
        with pytest.raises(ValueError, match=r"layer .*torch.nn.*(LSTM|GRU).*write_c"):
            write_torch(wrong, tmp_path / "x.pt2")
    with pytest.raises(FileNotFoundError, match="folder"):
        write_torch(ah.LEM(2, 2), tmp_path / "none" / "x.pt2")
    with pytest.raises(ValueError, match="step"):
        write_torch(ah.SequenceModel("LEM", 2, 2, hidden_size=3), tmp_path / "x.pt2", step=True)
    assert not list(tmp_path.iterdir())
