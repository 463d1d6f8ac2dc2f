"""Damaged and hostile saved models: one clear error, nothing is run, no memory is taken."""

import json
import os
import pickle
import struct

import pytest
import torch
from safetensors.torch import save_file

import anharmonic as ah

WEIGHTS, CONFIG = "model.safetensors", "config.json"


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "m"
    ah.save_pretrained(ah.SequenceModel("LEM", 2, 3, hidden_size=4, dt=0.5), folder)
    return folder


def header(text, body=b""):
    return struct.pack("<Q", len(text)) + text + body


BYTES = {
    "cut": lambda whole: whole[:-7],
    "empty": lambda whole: b"",
    "cut in the header": lambda whole: whole[:20],
    "a huge header": lambda whole: b"\xff" * 8 + b"{}",
    "a header of 2**62": lambda whole: struct.pack("<Q", 2**62),
    "past the end": lambda whole: header(
        b'{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}'
    ),
    "overlapping": lambda whole: header(
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        b"0000",
    ),
    "a nested header": lambda whole: header(b"[" * 100_000),
    "random": lambda whole: os.urandom(5000),
    "more at the end": lambda whole: whole + b"0" * 8,
}


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_bytes_of_weights(saved, change, refused):
    path = saved / WEIGHTS
    path.write_bytes(change(path.read_bytes()))
    refused(lambda: ah.from_pretrained(saved), names="model.safetensors")


def test_a_pickle_as_weights(saved, evil, refused):
    (saved / WEIGHTS).write_bytes(pickle.dumps(evil))
    refused(lambda: ah.from_pretrained(saved), names="model.safetensors")
    torch.save({"a": evil}, saved / WEIGHTS)
    refused(lambda: ah.from_pretrained(saved), names="model.safetensors")


TENSORS = {
    "none": lambda w: {},
    "other names": lambda w: {"x": torch.ones(3)},
    "int": lambda w: {k: v.long() for k, v in w.items()},
    "float8": lambda w: {k: v.to(torch.float8_e4m3fn) for k, v in w.items()},
    "one missing": lambda w: dict(list(w.items())[1:]),
    "one too many": lambda w: {**w, "extra": torch.ones(2)},
    "another shape": lambda w: {**w, "linear.bias": torch.ones(9)},
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_tensors(saved, change, refused):
    weights = {k: v.clone() for k, v in ah.from_pretrained(saved).state_dict().items()}
    save_file(change(weights), saved / WEIGHTS)
    refused(lambda: ah.from_pretrained(saved))


TEXTS = {
    "empty": lambda text: " ",
    "list": lambda text: "[]",
    "null": lambda text: "null",
    "number": lambda text: "3",
    "cut": lambda text: text[:30],
    "nested": lambda text: "[" * 100_000,
    "nested value": lambda text: text.replace('"LEM"', "[" * 50_000 + "]" * 50_000),
    "a number of 5000 digits": lambda text: text.replace(
        '"hidden_size": 4', '"hidden_size": ' + "9" * 5000
    ),
    "infinite": lambda text: text.replace('"hidden_size": 4', '"hidden_size": 1e400'),
    "NaN": lambda text: text.replace('"hidden_size": 4', '"hidden_size": NaN'),
}


@pytest.mark.parametrize("change", TEXTS.values(), ids=TEXTS)
def test_text_of_the_config(saved, change, refused):
    path = saved / CONFIG
    path.write_text(change(json.dumps(json.loads(path.read_text()))))
    refused(lambda: ah.from_pretrained(saved))


@pytest.mark.parametrize("raw", [b'{"model": "\xe9"}', '{"model": "LEM"}'.encode("utf-16")])
def test_config_in_another_encoding(saved, raw, refused):
    (saved / CONFIG).write_bytes(raw)
    refused(lambda: ah.from_pretrained(saved), names=CONFIG)


CONFIGS = {
    "unknown model": {"model": "Evil"},
    "model a path": {"model": "../../evil"},
    "model of a module": {"model": "os.system"},
    "model null": {"model": None},
    "model a list": {"model": ["LEM"]},
    "model of another class": {"model": "LEM"},
    "arguments a list": {"arguments": [1, 2]},
    "arguments null": {"arguments": None},
    "arguments a text": {"arguments": "abc"},
    "no arguments": {"arguments": {}},
}


@pytest.mark.parametrize("change", CONFIGS.values(), ids=CONFIGS)
def test_config(saved, change, refused):
    path = saved / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    refused(lambda: ah.from_pretrained(saved))


ARGUMENTS = {
    "unknown": {"width": 3},
    "dtype": {"dtype": "float16"},
    "device": {"device": "cuda"},
    "self": {"self": 1},
    "hidden text": {"hidden_size": "4"},
    "hidden -1": {"hidden_size": -1},
    "hidden 5": {"hidden_size": 5},
    "hidden 20000": {"hidden_size": 20_000},
    "hidden 10**18": {"hidden_size": 10**18},
    "hidden 10**30": {"hidden_size": 10**30},
    "output 10**9": {"output_size": 10**9},
    "input 10**9": {"input_size": 10**9},
    "layers 10**6": {"num_layers": 10**6},
    "unknown layer": {"layer": "Evil"},
    "layer null": {"layer": None},
    "dt a list": {"dt": [1]},
    "dt null": {"dt": None},
}


def test_arguments(saved, in_child):
    path = saved / CONFIG
    config = json.loads(path.read_text())

    def outcomes():
        found = {}
        for name, change in ARGUMENTS.items():
            path.write_text(json.dumps({**config, "arguments": {**config["arguments"], **change}}))
            try:
                ah.from_pretrained(saved)
                found[name] = "returned"
            except ValueError as error:
                found[name] = str(error)
        return found

    what, found = in_child(outcomes)
    assert what == "returned", found
    assert not {name: text for name, text in found.items() if "; got " not in text}


PLACES = {
    "weights a folder": lambda m: ((m / WEIGHTS).unlink(), (m / WEIGHTS).mkdir()),
    "no weights": lambda m: (m / WEIGHTS).unlink(),
    "no config": lambda m: (m / CONFIG).unlink(),
    "weights a pipe": lambda m: ((m / WEIGHTS).unlink(), os.mkfifo(m / WEIGHTS)),
    "config a pipe": lambda m: ((m / CONFIG).unlink(), os.mkfifo(m / CONFIG)),
    "weights another file": lambda m: (
        (m / WEIGHTS).unlink(),
        (m / WEIGHTS).symlink_to("/etc/passwd"),
    ),
    "config another file": lambda m: (
        (m / CONFIG).unlink(),
        (m / CONFIG).symlink_to("/etc/passwd"),
    ),
    "config without end": lambda m: ((m / CONFIG).unlink(), (m / CONFIG).symlink_to("/dev/zero")),
    "a dangling link": lambda m: ((m / WEIGHTS).unlink(), (m / WEIGHTS).symlink_to("nowhere")),
    "a huge config": lambda m: os.truncate(m / CONFIG, 8 << 30),
}


@pytest.mark.parametrize("change", PLACES.values(), ids=PLACES)
def test_places(saved, change, in_child):
    change(saved)
    what, text = in_child(lambda: ah.from_pretrained(saved) and None)
    assert what in ("ValueError", "FileNotFoundError") and "; got " in text, (what, text)


def test_other_paths(tmp_path, refused):
    refused(lambda: ah.from_pretrained("nowhere"), FileNotFoundError, names="nowhere")
    (tmp_path / "f").write_text("x")
    refused(lambda: ah.from_pretrained("f"), FileNotFoundError)
    ah.save_pretrained(ah.LEM(2, 3), "lem")
    refused(lambda: ah.CoRNN.from_pretrained("lem"), names="LEM")
    refused(lambda: ah.save_pretrained(ah.LEM(2, 3), "f"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    refused(lambda: ah.save_pretrained(ah.LEM(2, 3), "full"))
    assert (tmp_path / "full" / "thesis.tex").read_text() == "x"


def test_odd_names_of_folders():
    name = "Ünï ✓ 'x' \"y\" z"
    ah.save_pretrained(ah.LEM(2, 3), name)
    assert isinstance(ah.from_pretrained(name), ah.LEM)
