import gc

import pytest

from harness import speed


def turns_of(seconds):
    """A clock, and per name a turn that takes so many seconds, one after the other."""
    now = [0.0]

    def turn(left):
        now[0] += left.pop(0)

    turns = {name: lambda left=list(left): turn(left) for name, left in seconds.items()}
    return (lambda: now[0]), turns


def test_turns_alternate_without_garbage_and_the_first_does_not_count():
    order = []
    turns = {name: lambda name=name: order.append((name, gc.isenabled())) for name in "ab"}
    taken = speed.take_turns(turns, lambda number: number < 3)
    assert order == [("a", False), ("b", False)] * 3 and gc.isenabled()
    assert {name: len(times) for name, times in taken.items()} == {"a": 2, "b": 2}


def test_a_disturbance_hits_all_and_medians_ignore_it():
    clock, turns = turns_of({"ours": [9.0, 0.2, 7.0, 0.2], "theirs": [9.0, 2.0, 2.0, 8.0]})
    found = speed.medians(turns, 3, clock=clock)
    assert found == {"ours": pytest.approx(0.2), "theirs": pytest.approx(2.0)}


def test_slow_ones_take_two_turns_after_the_warm_up():
    clock, turns = turns_of({"fast": [1.0] * 8, "slow": [1.0] * 3})
    taken = speed.take_turns(turns, lambda number: number < 8, slow=("slow",), clock=clock)
    assert len(taken["fast"]) == 7 and len(taken["slow"]) == 2
