import pytest

from anharmonic.train.learned import has_learned


@pytest.mark.parametrize(
    ("given", "learned"),
    [
        ((56.0, 55.0, "accuracy", True), False),  # 1 of 45 points
        ((60.0, 55.0, "accuracy", True), True),
        ((60.0, 55.0, "accuracy", True, 6.0), False),  # within its spread
        ((90.0, 100.0, "accuracy", True), False),  # the baseline is perfect
        ((0.5, 1.0, "mse", False), True),
        ((0.96, 1.0, "mse", False), False),
        ((1.5, 1.0, "mse", False), False),
        ((0.9, 0.5, "r2", True), True),
    ],
)
def test_more_than_a_little_of_the_way_to_a_perfect_answer(given, learned):
    assert has_learned(*given) is learned
