"""The demo, streams of watch recordings, and the page for the browser do what they say."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
LIVE = EXAMPLES / "live.py"
MARGIN = 0.5
"""Share of right answers above the trivial one (1 in 7), after five seconds and more."""


def test_the_demo_writes_a_page_on_both_sets(tmp_path, capsys):
    demo = runpy.run_path(str(EXAMPLES / "minutes" / "demo.py"))
    small = {"length": 8, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    width = {"model_options": {"hidden_size": 4}, "epochs": 1, "batch_size": 400}
    given = {"adding": {**width, "task_options": small}, "digits": width}
    sets = {task: {**options, "given": given[task]} for task, options in demo["SETS"].items()}
    found = demo["run"](tmp_path, sets, jobs=1)
    assert [one.plan.title for one in found] == ["adding", "digits"]
    assert [len(one.standings) for one in found] == [2, 5]
    assert not any(one.failures for one in found)
    assert "Learning" not in (page := (tmp_path / "report.html").read_text())
    assert "adding" in page and "digits" in page and "wrote" in capsys.readouterr().out


def check(right, trivial):
    assert 0.1 < trivial < 0.2
    assert right[5.0] > trivial + MARGIN and right[10.0] > trivial + MARGIN
    assert right[2.0] > trivial + 0.4  # two seconds are little of an exercise


def test_made_up_recordings(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.delenv("ANHARMONIC_DATA", raising=False)
    check(*runpy.run_path(str(LIVE))["main"]())
    assert "microseconds a sample" in capsys.readouterr().out


@pytest.mark.slow  # the same on measured recordings
def test_recordings_of_watches(real_data):
    pytest.importorskip("sklearn")
    check(*runpy.run_path(str(LIVE))["main"](real_data("watch_imu.npz")))


@pytest.mark.slow
def test_the_page_says_what_the_model_says(tmp_path, monkeypatch):
    """Built by emscripten, run in Chromium, equal to PyTorch."""
    if not (shutil.which("emcc") and shutil.which("chromium")):
        pytest.skip("needs emcc (emscripten) and chromium")
    monkeypatch.syspath_prepend(str(EXAMPLES / "browser"))
    sys.modules.pop("build", None)
    import build

    page = tmp_path / "page.html"
    model = build.build(page, updates=100)
    x, classes = build.recording()
    samples = 170
    done = subprocess.run(
        [
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom",
            "--virtual-time-budget=1000", f"{page.as_uri()}?samples={samples}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r'data-scores="(\[.*?\])"', done.stdout)
    assert found, done.stdout[-500:] + done.stderr[-500:]
    said = json.loads(found[1])
    # As the page has it: rounded to three digits.
    with torch.no_grad():
        wanted = model(torch.from_numpy(x[:samples].round(3))[None])[0]
    np.testing.assert_allclose(said, wanted, atol=0.02)  # tanh comes from a table
    assert int(np.argmax(said)) == classes[samples - 1]
    assert re.search(r"Right so far[^<]*: \d+ %", done.stdout)
