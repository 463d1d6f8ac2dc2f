"""Split data sets with an official test set; validation data come from the training set."""

from __future__ import annotations

from anharmonic._checks import positive_int, require


def official_sizes(
    train: int,
    test: int,
    valid_size: int,
    train_size: int | None,
    test_size: int | None,
) -> dict[str, int]:
    """Return the sizes of the parts for an official test set and validation cut from training.

    Args:
        train: The number of samples of the official training set.
        test: The number of samples of the official test set.
        valid_size: The number of samples of the training set kept for validation.
        train_size: The number of training samples to use; None for all remaining ones.
        test_size: The number of test samples to use; None for all.

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
    """Check that a value is an integer from 1 to `most` and return it.

    Example:
        >>> bounded_int("train_size", 3, 5)
        3
    """
    fits = positive_int(name, value) <= most
    require(fits, name, value, f"in [1, {most}]", "choose a number inside")
    return value
