"""Sizes of the parts of a data set, which a reduced budget may bound."""

from collections.abc import Iterable, Sequence

from anharmonic._checks import positive_int, require


def official_sizes(
    train: int,
    test: int,
    valid_size: int,
    train_size: int | None,
    test_size: int | None,
    copies: int = 1,
) -> dict[str, int]:
    """Return the sizes of the parts for an official test set and validation cut from training.

    The training part holds each of its examples `copies` times, so its size is rounded up.
    """
    left = train - bounded_int("valid_size", valid_size, train - 1)
    if train_size is not None:
        left = -(-bounded_int("train_size", train_size, left * copies) // copies)
    return {
        "train": left * copies,
        "valid": valid_size,
        "test": test if test_size is None else bounded_int("test_size", test_size, test),
    }


def bounded_sizes(sizes: Iterable[int], largest: Sequence[int]) -> dict[str, int]:
    """Check the sizes of the three parts and return them by name."""
    given = zip(("train", "valid", "test"), sizes, largest, strict=True)
    return {part: bounded_int(f"{part}_size", size, most) for part, size, most in given}


def bounded_int(name: str, value: int, most: int) -> int:
    """Check that a value is an integer from 1 to `most` and return it."""
    fits = positive_int(name, value) <= most
    require(fits, name, value, f"in [1, {most}]", "choose a number inside")
    return value
