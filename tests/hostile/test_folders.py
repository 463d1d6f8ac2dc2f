"""Damaged and changed run folders, resume files and result lines: told, kept and never executed.

Every JSON file of a run's folder is judged by type, range and consistency with the model.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

import anharmonic as ah
from anharmonic.train import predict, trained

LARGE, nan, inf = 10**18, float("nan"), float("inf")


CASES = {
    ("classes", "task.json"): {
        "": [[], None, 3],
        "class_names": ["ab", ["a"], ["a", "a"], [1, 2], {}, []],
        "output_size": [LARGE, 0, 2.0, "2", True, 3],
        "input_size": [LARGE, 3, 0],
        "target": ["value", "label", "node", None],
        "readout": ["all", "ab", None],
        "task": ["adding", "shards", None],
        "file": [7],
        "columns": ["ab", [], {"x": 1}, {"values": "ab"}, {"width": LARGE}],
        "preprocessing": [None, "ab", {}],
        "preprocessing.std": [[-1, 1], [0, 1], [1], [1e39, 1], ["1", 1], [1, nan], [1, True]],
        "preprocessing.mean": [[], [1], [1, 1e39], [[1], 1], KeyError],
        "preprocessing.missing": ["ab", None, KeyError],
        "preprocessing.standardise": [1, None],
        "preprocessing.masked": [[0], [2], [-1], [0.0], "0"],
        "preprocessing.difference": [[1, 1], [1], [0, 0]],
        "preprocessing.elapsed": ["ab", "channel"],
        "preprocessing.nominal": [0, -1, 10**400],
        "preprocessing.window": [-1, 2**32, 1.5],
        "preprocessing.horizon": [1, LARGE],
        "preprocessing.channels": ["ab", ["a"]],
        "preprocessing.level_scale": [[1] * 4, [1]],
        "preprocessing.target_scale": [[1], [1, 1]],
        "preprocessing.unknown": [1],
    },
    ("forecast", "task.json"): {
        "preprocessing.horizon": [0, 2, LARGE],
        "preprocessing.forecast": [[], [0, 0], [0, 2], [-1, 0]],
        "preprocessing.target_scale": [[], [1], [0, 1], [1, -1]],
        "preprocessing.target_shift": [[1], [1, 1]],
        "preprocessing.window": [0, KeyError],
        "columns.values": ["ab", ["c", "d"]],
        "columns.layout": ["deep"],
        "columns.date_format": [7],
    },
    ("classes", "run.json"): {
        "": [[], None],
        "model": ["CoRNN", "GraphCON", "ab", None, KeyError],
        "task": ["adding", "shards", KeyError],
        "model_options.hidden_size": [3, "2", LARGE],
        "task_options.valid_share": ["ab", -1, 2],
        "task_options.missing": ["ab", 1],
        "task_options.test_groups": ["ab", 3],
        "epochs": [0, 10**30, "1", 1.0],
        "batch_size": [0, 10**22],
        "patch": [2, 0],
        "lr": [nan, -1, "0.1"],
        "readout": ["mean"],
        "unknown": [1],
    },
    # What no model has: test_store.py. Here it is a model, but not that of the run.
    ("classes", "best/config.json"): {
        "anharmonic": [1, None],
        "arguments.output_size": [3, "2", 2.0],
        "arguments.patch": [2, LARGE],
        "arguments.dt": [-1, inf],
        "arguments.bias": [1, False],
    },
    ("resonators", "best/config.json"): {
        "arguments.alphas": ["ab", ["a"], [0], [nan], {"a": 1}],
        "arguments.num_oscillators": [LARGE, 6, -1, None],
        "arguments.pools": ["share", [], ["ab"]],
        "arguments.target": ["value", "ab"],
        "arguments.input_size": [10**12],
    },
}
CHANGES = [
    pytest.param(run, name, place, new, id=f"{run} {name} {place} {str(new)[:20]}")
    for (run, name), places in CASES.items()
    for place, values in places.items()
    for new in values
]


@pytest.mark.parametrize("run, name, place, new", CHANGES)
def test_a_changed_file_is_refused(run, name, place, new, made, refused):
    """`new` stands at a place of a JSON file; KeyError means that nothing does."""
    whole, data = made[run]
    folder = Path(shutil.copytree(whole, "run"))
    values = {"": json.loads((folder / name).read_text())}
    *before, last = f".{place}".split(".") if place else [""]
    part = values
    for key in before:
        part = part[key]
    if new is KeyError:
        del part[last]
    else:
        part[last] = new
    (folder / name).write_text(json.dumps(values[""]))
    refused(lambda: predict(folder, data))


def byte(name, at):
    def change(folder):
        content = bytearray((folder / name).read_bytes())
        content[at] = 0xFF
        (folder / name).write_bytes(content)

    return change


def unfinite(folder):
    model = ah.from_pretrained(folder / "best")
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    ah.save_pretrained(model, folder / "best")


def a_file_for_best(folder):
    shutil.rmtree(folder / "best")
    (folder / "best").write_text("x")


FILES = {
    **{f"{name} {at}": byte(name, at) for name in ("task.json", "run.json") for at in (0, 10, -3)},
    "task cut": lambda r: (r / "task.json").write_text("{"),
    "task nested": lambda r: (r / "task.json").write_text("[" * 100_000),
    "task huge": lambda r: os.truncate(r / "task.json", 8 << 30),
    "best a file": a_file_for_best,
    "another model": lambda r: ah.save_pretrained(ah.LEM(2, 3), r / "best"),
    "other outputs": lambda r: ah.save_pretrained(
        ah.SequenceModel("LEM", 2, 9, hidden_size=3), r / "best"
    ),
    "NaN weights": unfinite,
}


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_folder_is_refused(name, made, refused_by_command):
    whole, data = made["classes"]
    folder = Path(shutil.copytree(whole, "run"))
    FILES[name](folder)
    refused_by_command("predict", folder, data, names=name.split()[0] if ".json" in name else "")
    assert not Path("predictions.csv").exists()


@pytest.mark.parametrize("run", ["classes", "forecast", "resonators"])
def test_whole_folders_are_read(run, made):
    folder, data = made[run]
    assert trained(folder).run.task == "file"
    assert len(predict(folder, data).values)


def test_sizes_are_compared_before_memory_is_taken(made, in_child):
    folder = Path(shutil.copytree(made["classes"][0], "run"))
    values = json.loads((folder / "task.json").read_text())
    change = {"class_names": [], "output_size": LARGE}
    (folder / "task.json").write_text(json.dumps(values | change))
    what, text = in_child(lambda: trained(folder) and None, megabytes=200)
    assert what == "ValueError" and "output_size" in text, (what, text)
