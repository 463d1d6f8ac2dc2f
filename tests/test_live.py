"""The live example: streams of watch recordings are classified far better than by chance."""

import runpy
from pathlib import Path

import pytest

LIVE = Path(__file__).parents[1] / "examples" / "live.py"
MARGIN = 0.5
"""Share of right answers above the trivial one (1 in 7), after five seconds and more."""


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
