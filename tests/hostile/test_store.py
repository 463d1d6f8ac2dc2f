"""Damaged and hostile saved models: one clear error, nothing is run, no memory is taken."""

import json
import os
import pickle
import shutil
import struct
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import anharmonic as ah

WEIGHTS, CONFIG, BIAS = "model.safetensors", "config.json", "linear.bias"


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "m"
    ah.save_pretrained(ah.SequenceModel("LEM", 2, 3, hidden_size=4, dt=0.5), folder)
    return folder


def weights(change, folder):
    path = folder / WEIGHTS
    path.write_bytes(change(path.read_bytes()))


def header(text, body=b""):
    return partial(weights, lambda whole: struct.pack("<Q", len(text)) + text + body)


def tensors(change, folder):
    found = {name: value.clone() for name, value in ah.from_pretrained(folder).state_dict().items()}
    save_file(change(found), folder / WEIGHTS)


def text(change, folder):
    new = change(json.dumps(json.loads((folder / CONFIG).read_text())))
    (folder / CONFIG).write_bytes(new if isinstance(new, bytes) else new.encode())


def hidden(number):
    return partial(text, lambda t: t.replace('"hidden_size": 4', f'"hidden_size": {number}'))


def config(**changes):
    return partial(text, lambda whole: json.dumps({**json.loads(whole), **changes}))


def argument(**changes):
    def change(whole):
        found = json.loads(whole)
        return json.dumps({**found, "arguments": {**found["arguments"], **changes}})

    return partial(text, change)


def place(name, make, folder):
    (folder / name).unlink()
    make(folder / name)


ONE = b'"dtype":"F32","shape":[1],"data_offsets":[0,4]'
HUGE = b'"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]'
PASSWORDS, ZEROS = (lambda path, to=to: path.symlink_to(to) for to in ("/etc/passwd", "/dev/zero"))
DAMAGE = {
    "weights cut": partial(weights, lambda whole: whole[:-7]),
    "weights empty": partial(weights, lambda whole: b""),
    "weights with a huge header": partial(weights, lambda whole: b"\xff" * 8 + b"{}"),
    "weights with a header of 2**62": partial(weights, lambda whole: struct.pack("<Q", 2**62)),
    "weights past the end": header(b'{"a":{%s}}' % HUGE),
    "weights that overlap": header(b'{"a":{%s},"b":{%s}}' % (ONE, ONE), b"0000"),
    "weights with a nested header": header(b"[" * 100_000),
    "weights with more at the end": partial(weights, lambda whole: whole + b"0" * 8),
    "tensors of int": partial(tensors, lambda found: {k: v.long() for k, v in found.items()}),
    "a tensor of int": partial(tensors, lambda found: {**found, BIAS: found[BIAS].char()}),
    "tensors of float8": partial(
        tensors, lambda found: {k: v.to(torch.float8_e4m3fn) for k, v in found.items()}
    ),
    "a tensor missing": partial(tensors, lambda found: dict([*found.items()][1:])),
    "a tensor too many": partial(tensors, lambda found: {**found, "extra": torch.ones(2)}),
    "a tensor's shape": partial(tensors, lambda found: {**found, BIAS: torch.ones(9)}),
    "config a list": partial(text, lambda whole: "[]"),
    "config cut": partial(text, lambda whole: whole[:30]),
    "config nested": partial(text, lambda whole: "[" * 100_000),
    "config with a nested value": partial(
        text, lambda whole: whole.replace('"LEM"', "[" * 50_000 + "]" * 50_000)
    ),
    "config in Latin-1": partial(text, lambda whole: b'{"model": "\xe9"}'),
    "a number of 5000 digits": hidden("9" * 5000),
    "an infinite number": hidden("1e400"),
    "NaN": hidden("NaN"),
    "unknown model": config(model="Evil"),
    "model a path": config(model="../../evil"),
    "model a list": config(model=["LEM"]),
    "model of another class": config(model="LEM"),
    "arguments a list": config(arguments=[1, 2]),
    "no arguments": config(arguments={}),
    "unknown argument": argument(width=3),
    "dtype": argument(dtype="float16"),
    "device": argument(device="cuda"),
    "self": argument(self=1),
    **{f"hidden {size}": argument(hidden_size=size) for size in ("4", -1, 5, 10**18, 10**30)},
    "output 10**9": argument(output_size=10**9),
    "input 10**9": argument(input_size=10**9),
    "layers 10**6": argument(num_layers=10**6),
    "unknown layer": argument(layer="Evil"),
    "layer null": argument(layer=None),
    "dt null": argument(dt=None),
    "weights a folder": partial(place, WEIGHTS, lambda path: path.mkdir()),
    "no weights": partial(place, WEIGHTS, lambda path: None),
    "no config": partial(place, CONFIG, lambda path: None),
    "weights a pipe": partial(place, WEIGHTS, os.mkfifo),
    "config a pipe": partial(place, CONFIG, os.mkfifo),
    "weights another file": partial(place, WEIGHTS, PASSWORDS),
    "config another file": partial(place, CONFIG, PASSWORDS),
    "config without end": partial(place, CONFIG, ZEROS),
    "a huge config": lambda folder: os.truncate(folder / CONFIG, 8 << 30),
}


def test_damaged_models_are_refused(saved, in_child):
    def outcomes():
        found = {}
        for number, (name, change) in enumerate(DAMAGE.items()):
            print(name)  # for one that ends the process
            folder = Path(shutil.copytree(saved, str(number)))
            change(folder)
            try:
                found[name] = repr(ah.from_pretrained(folder))
            except (ValueError, FileNotFoundError) as error:
                found[name] = str(error)
        return found

    what, found = in_child(outcomes)
    assert what == "returned" and len(found) == len(DAMAGE), found
    assert not {name: said for name, said in found.items() if "; got " not in said}
    places = {name: said for name, said in found.items() if name.startswith(("weights", "config"))}
    assert not {
        name: said for name, said in places.items() if WEIGHTS not in said and CONFIG not in said
    }


def test_a_pickle_as_weights(saved, evil, refused):
    for write in (
        lambda path: path.write_bytes(pickle.dumps(evil)),
        lambda path: torch.save({"a": evil}, path),
    ):
        write(saved / WEIGHTS)
        refused(lambda: ah.from_pretrained(saved), names=WEIGHTS)


def test_other_paths(tmp_path, refused):
    refused(lambda: ah.from_pretrained("nowhere"), FileNotFoundError, names="nowhere")
    (tmp_path / "f").write_text("x")
    refused(lambda: ah.from_pretrained("f"), FileNotFoundError)
    name = "Ünï ✓ 'x' \"y\" z"
    ah.save_pretrained(ah.LEM(2, 3), name)
    assert isinstance(ah.from_pretrained(name), ah.LEM)
    refused(lambda: ah.CoRNN.from_pretrained(name), names="LEM")
    refused(lambda: ah.save_pretrained(ah.LEM(2, 3), "f"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    refused(lambda: ah.save_pretrained(ah.LEM(2, 3), "full"))
    assert (tmp_path / "full" / "thesis.tex").read_text() == "x"
    ah.save_pretrained(ah.LEM(1, 1), tmp_path / "run" / "best")
    refused(lambda: ah.from_pretrained(tmp_path / "run"), FileNotFoundError, names="run/best")
