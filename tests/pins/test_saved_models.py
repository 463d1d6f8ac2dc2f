"""Models saved before load and compute what they did; new ones start as they did."""

import json

import pytest
import torch
from pinned import DATA, FORWARD, SOLVED, ah, close, computed, read_lines, tensors
from safetensors.torch import load_file

GRAPH = {"GraphCONNetwork", "GradientGatingNetwork", "PlainGNN", "GCNII"}
LINES = read_lines("models.jsonl")
pytestmark = pytest.mark.papers  # models of theirs are among them
both = pytest.mark.parametrize("backend", ["auto", "reference"], indirect=True)
every = pytest.mark.parametrize("line", LINES, ids=lambda line: line["folder"])


def saved(line):
    """The folder of a saved model, and the model."""
    folder = DATA / "models" / line["folder"]
    name = json.loads((folder / "config.json").read_text())["model"]
    if name in GRAPH:
        pytest.importorskip("torch_geometric", reason="convolutions by name are PyG's")
    model = ah.from_pretrained(folder)
    assert type(model).__name__ == name
    return folder, model


@both
@every
def test_a_saved_model_computes_what_it_did(line):
    folder, model = saved(line)
    if "NeuralODE" in line["folder"]:
        pytest.importorskip("torchdiffeq", reason="its solvers")
    expected = load_file(f"{folder}.safetensors")
    inputs = [expected.pop(key) for key in sorted(expected) if key.startswith("input.")]
    found = computed(model, inputs)
    is_adaptive = model.config().get("solver") == "dopri5"
    assert found.keys() == expected.keys()
    for kind in ("output", "gradient"):
        # Some gradients are zero but for rounding: they are measured by the others.
        group = {key: tensor for key, tensor in expected.items() if key.startswith(kind)}
        scale = max(float(tensor.abs().max()) for tensor in group.values())
        for key, tensor in group.items():
            close(found[key], tensor, SOLVED if is_adaptive else FORWARD, scale)


@every
def test_a_new_model_starts_as_it_did(line):
    folder, model = saved(line)
    torch.manual_seed(line["seed"])
    new = type(model)(*line["sizes"], **line["options"])
    weights = tensors(folder)
    assert new.state_dict().keys() == weights.keys()
    for name, tensor in new.state_dict().items():
        close(tensor, weights[name], FORWARD)


@every
def test_options_keep_their_defaults(line):
    _, model = saved(line)
    bare = type(model)(*line["sizes"], **line["required"])
    assert bare.config() | line["defaults"] == bare.config()
