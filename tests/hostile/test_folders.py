"""Damaged run folders, resume files and result lines: reported, kept, and never executed.

test_saved_folders.py changes one value after the other of a run's JSON files.
"""

import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import anharmonic as ah

WEIGHTS = "best/model.safetensors"
ADDING = ("train", "lem", "adding", "--length", "8", "--steps-per-epoch", "2", "--valid-size", "16")


def task(change):
    def of(run):
        path = run / "task.json"
        content = json.loads(path.read_text())
        text = change(content)
        path.write_text(text if isinstance(text, str) else json.dumps(content))

    return of


def not_a_number(run):
    model = ah.from_pretrained(run / "best")
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    ah.save_pretrained(model, run / "best")


def other_channels(run):
    np.savez("d.npz", x=np.ones((20, 5, 1), np.float32))


def other_outputs(run):
    ah.save_pretrained(ah.SequenceModel("LEM", 2, 9, hidden_size=3), run / "best")


def a_file_for_best(run):
    shutil.rmtree(run / "best")
    (run / "best").write_text("x")


PREDICT = {
    "weights cut": lambda r: (r / WEIGHTS).write_bytes((r / WEIGHTS).read_bytes()[:-9]),
    "task cut": task(lambda c: "{"),
    "task nested": task(lambda c: "[" * 100_000),
    "task huge": lambda r: os.truncate(r / "task.json", 8 << 30),
    "best a file": a_file_for_best,
    "other channels": other_channels,
    "another model": lambda r: ah.save_pretrained(ah.LEM(2, 3), r / "best"),
    "other outputs": other_outputs,
    "NaN weights": not_a_number,
}
QUICK = ("weights cut", "NaN weights", "task nested")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(case, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, case in PREDICT.items()
    ],
)
def test_predict(change, trained, refused_by_command):
    change(trained)
    refused_by_command("predict", trained, "d.npz")
    assert not Path("predictions.csv").exists()


DIAGNOSE = {
    "weights empty": lambda r: (r / WEIGHTS).write_bytes(b""),
    "no file": lambda r: Path("d.npz").unlink(),
    "another file": lambda r: np.savez("d.npz", x=np.ones((20, 5, 2)), y=np.arange(20) % 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", DIAGNOSE.values(), ids=DIAGNOSE)
def test_diagnose(change, trained, refused_by_command):
    change(trained)
    refused_by_command("diagnose", trained, "--file", "d.npz")


RUN = {"task": "adding", "model": "LEM", "task_options": {}, "model_options": {}, "epochs": 1}
RUNS = {
    "empty": "",
    "list": "[]",
    "nested": "[" * 100_000,
    "no UTF-8": b"\xff\xfe{",
    "unknown key": {"evil": 1},
    "epochs true": {"epochs": True},
    "option a list": {"model_options": {"hidden_size": [1]}},
    "task a path": {"task": "../../etc/passwd"},
    "length 10**12": {"task_options": {"length": 10**12}},
    "hidden 10**15": {"model_options": {"hidden_size": 10**15}},
    "options null": {"task_options": None},
    "twice": '{"task":1,"task":2}',
    "file without a digest": {"task": "file"},
}


@pytest.mark.parametrize("content", RUNS.values(), ids=RUNS)
def test_run_json(content, refused_by_command):
    if isinstance(content, dict):
        content = json.dumps({**RUN, **content})
    Path("run.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused_by_command("train", "--run", "run.json", "--no-progress")


@pytest.fixture
def half(cli, tiny):
    """A folder as an interrupted run leaves it, but for its resume file: that and the words."""
    words = (*ADDING, "--test-size", "16", *tiny)
    assert cli(*words)[0] == 0
    folder = next(path for path in Path("runs").iterdir() if path.is_dir())
    Path("runs/results.jsonl").unlink()
    (folder / "result.json").unlink()
    shutil.rmtree(folder / "best")
    return folder / "resume.ckpt", words


def gigabytes(path, evil):
    """Four gigabytes of zeros in four megabytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("archive/data.pkl", "w", force_zip64=True) as content:
            for _ in range(250):
                content.write(bytes(16 * 10**6))


RESUME = {
    "random": lambda path, evil: path.write_bytes(os.urandom(3000)),
    "code": lambda path, evil: torch.save({"state_dict": evil}, path),
    "another": lambda path, evil: torch.save({"state_dict": {}}, path),
    "gigabytes": gigabytes,
    "a folder": lambda path, evil: path.mkdir(),
}


@pytest.mark.parametrize(
    "write", [pytest.param(v, id=k, marks=pytest.mark.slow) for k, v in RESUME.items()]
)
def test_resume_files(write, half, evil, refused_by_command):
    path, words = half
    write(path, evil)
    refused_by_command(*words, names="resume")


LINES = {
    "garbage": b"garbage\n",
    "cut": b'{"run": {"task"\n',
    "null": b"null\n",
    "list": b"[]\n",
    "other keys": b'{"a": 1}\n',
    "nested": b"[" * 100_000 + b"\n",
    "wrong types": b'{"run": 3, "hash": 4}\n',
    "blank": b"\n\n\n",
    "5000 digits": b'{"test": ' + b"9" * 5000 + b"}\n",
    "NUL": b"\0" * 4096,
    "no end": b'{"run": {"ta',
    "half a character": "é".encode()[:1],
    "CRLF": b"garbage\r\n",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is skipped:UserWarning")
@pytest.mark.parametrize("more", LINES.values(), ids=LINES)
def test_bad_result_lines_are_told_and_kept(more, cli, tiny):
    words = (*ADDING, "--test-size", "16", *tiny)
    assert cli(*words)[0] == 0
    path = Path("runs/results.jsonl")
    before = path.read_bytes() + more
    path.write_bytes(before)
    code, _, error = cli(*words, "--seed", "1")
    assert code == 0 and "Traceback" not in error, error
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.count(b'"hash":"') == before.count(b'"hash":"') + 1


@pytest.mark.slow
def test_a_lost_result_line_is_written_again(cli, tiny):
    words = (*ADDING, "--test-size", "16", *tiny)
    assert cli(*words)[0] == 0
    path = Path("runs/results.jsonl")
    before = path.read_text()
    path.unlink()
    assert cli(*words)[0] == 0
    assert path.read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut", "nested"])
def test_a_damaged_result_file_is_told(text, cli, tiny):
    words = (*ADDING, "--test-size", "16", *tiny)
    assert cli(*words)[0] == 0
    folder = next(path for path in Path("runs").iterdir() if path.is_dir())
    Path("runs/results.jsonl").unlink()
    (folder / "result.json").write_text(text)
    code, _, error = cli(*words)
    assert code in (0, 1, 2) and "Traceback" not in error and "unexpected" not in error, error
    assert code == 0 or "; got " in error
