import pytest

import scaling


@pytest.mark.slow
def test_a_quick_run_shows_costs_and_computed_gains(in_this_process, quick, environment):
    cases = scaling.cases(quick)
    names = ["shards, first run", "shards, second run", "a training step"]
    found = [{"case": name, **cases[name](), **environment} for name in names]
    tables = scaling.tables(found)
    assert tables["shards"].count(" ms |") == 6
    assert "| 64 cores |" in tables["speed-up"] and "| one GPU |" in tables["cost"]


def test_one_process_gains_nothing_and_a_share_of_one_sequence_is_the_end():
    assert scaling.speed_up(1, 64, 1.0, 0.1, 0.0) == pytest.approx(1)
    most = (1 + 0.1 * 64) / (1 + 0.1)
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(128, 64, 1.0, 0.1, 0.0) == pytest.approx(most)
    assert scaling.speed_up(64, 64, 1.0, 0.1, 0.5) < most


def test_a_ring_pays_for_each_process_and_a_tree_for_each_doubling():
    assert scaling.reduce_formula(2, 0, 1.0, 1.0) == 2
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0) == 2046
    assert scaling.reduce_formula(1024, 0, 1.0, 1.0, tree=True) == 20
