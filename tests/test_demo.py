"""The demo runs in small, and streams of watch recordings are classified better than by chance."""

import runpy
from pathlib import Path

import pytest

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
