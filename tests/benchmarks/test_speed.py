import gc

import pytest

from harness import speed


class Clock:
    """Seconds that turns make up."""

    def __init__(self):
        self.now = 0.0

    def turn(self, seconds):
        left = list(seconds)

        def turn():
            self.now += left.pop(0)

        return turn, left

    def __call__(self):
        return self.now


def test_turns_alternate_and_the_first_does_not_count():
    order = []
    turns = {name: lambda name=name: order.append(name) for name in "ab"}
    taken = speed.take_turns(turns, lambda number: number < 3)
    assert order == list("ababab") and {name: len(v) for name, v in taken.items()} == {
        "a": 2,
        "b": 2,
    }


def test_a_disturbance_hits_all_and_medians_ignore_it():
    clock = Clock()
    ours, left = clock.turn([9.0, 0.2, 7.0, 0.2])
    theirs, _ = clock.turn([9.0, 2.0, 2.0, 8.0])
    found = speed.medians({"ours": ours, "theirs": theirs}, 3, clock=clock)
    assert found == {"ours": pytest.approx(0.2), "theirs": pytest.approx(2.0)} and not left


def test_slow_ones_take_two_turns_after_the_warm_up():
    clock = Clock()
    (fast, _), (slow, left) = clock.turn([1.0] * 8), clock.turn([1.0] * 8)
    taken = speed.take_turns({"f": fast, "s": slow}, lambda n: n < 8, slow=("s",), clock=clock)
    assert len(taken["f"]) == 7 and len(taken["s"]) == 2 and len(left) == 5


def test_garbage_is_not_collected_during_turns():
    states = []
    speed.take_turns({"a": lambda: states.append(gc.isenabled())}, lambda number: number < 2)
    assert states == [False, False] and gc.isenabled()
