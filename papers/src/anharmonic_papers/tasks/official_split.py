"""Parts of a data set whose test set is given and whose validation set is cut from training."""

from __future__ import annotations

from anharmonic._checks import positive_int, require


def official_sizes(
    train: int,
    test: int,
    valid_size: int,
    train_size: int | None,
    test_size: int | None,
) -> dict[str, int]:
    """Sizes of the parts where the test set is given and validation is cut from training.

    Args:
        train: Samples of the official training set.
        test: Samples of the official test set.
        valid_size: Samples of the training set kept for validation.
        train_size: Training samples used; all that are left if None.
        test_size: Test samples used; all if None.

    Raises:
        TypeError: If a size is not an integer.
        ValueError: If a size is out of range.

    Example:
        >>> official_sizes(100, 20, 10, None, 5)
        {'train': 90, 'valid': 10, 'test': 5}
    """
    left = train - bounded_int("valid_size", valid_size, train - 1)
    return {
        "train": left if train_size is None else bounded_int("train_size", train_size, left),
        "valid": valid_size,
        "test": test if test_size is None else bounded_int("test_size", test_size, test),
    }


def bounded_int(name: str, value: int, most: int) -> int:
    """Check for an integer from 1 to `most` and return it.

    Example:
        >>> bounded_int("train_size", 3, 5)
        3
    """
    fits = positive_int(name, value) <= most
    require(fits, name, value, f"in [1, {most}]", "choose a number inside")
    return value
