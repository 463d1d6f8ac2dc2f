import pytest

from anharmonic_papers.tasks.official_split import official_sizes


def test_validation_is_taken_from_training():
    assert official_sizes(60, 10, 3, None, None) == {"train": 57, "valid": 3, "test": 10}
    assert official_sizes(60, 10, 3, 5, 2) == {"train": 5, "valid": 3, "test": 2}


def test_errors():
    for name, sizes, most in (
        ("valid_size", (60, None, None), 59),
        ("train_size", (3, 58, None), 57),
        ("test_size", (3, None, 11), 10),
    ):
        with pytest.raises(ValueError, match=rf"{name} must be in \[1, {most}\]; got .*; choose"):
            official_sizes(60, 10, *sizes)
    with pytest.raises(ValueError, match="valid_size must be an int >= 1"):
        official_sizes(60, 10, 0, None, None)
