"""Early answers: when a threshold stops, and what the tables say."""

import numpy as np
import pytest

import early

pytest.importorskip("sklearn")


def test_a_series_is_answered_at_the_first_sure_share_or_at_the_end():
    sure, unsure = [0.05, 0.95], [0.55, 0.45]
    chances = np.array([[unsure, unsure]] * 3 + [[sure, unsure]] * 7)
    found = early.answers(chances, np.array(["a", "b"]), np.array(["b", "a"]))
    assert found["accuracy"] == [0.5] * 3 + [1.0] * 7
    assert found["stops"]["0.9"] == {"accuracy": 1.0, "seen": pytest.approx((0.4 + 1.0) / 2)}
    assert found["stops"]["0.5"] == {"accuracy": 0.5, "seen": pytest.approx(0.1)}


def test_sets_are_measured_and_shown(tmp_path, waves, measured):
    waves("Trace", 20)
    (ours,) = measured("early", "Trace, resonators")
    assert ours["stream equals pieces"]
    assert all(ours[kind]["accuracy"][-1] > 0.9 for kind in early.KINDS)
    teaser = {**ours, "case": "Trace, TEASER", "accuracy": 0.8, "seen": 0.5, "seconds": 2.0}
    text = early.tables([ours, teaser])["early"]
    assert "| TEASER | 80.0 % | 50 % | 0.615 | 2 |" in text and "give the same" in text
    early.draw([ours, teaser]).savefig(tmp_path / "early.png")
    assert (tmp_path / "early.png").stat().st_size > 1000
