"""Tables of wrong values."""

import pytest


def wrong_values(table):
    """Cases of a function, the name of an argument and a value that it refuses, by its name.

    The table has, for each function, the names and for each name the values.
    """
    return pytest.mark.parametrize(
        ("make", "name", "value"),
        [
            pytest.param(make, name, value, id=f"{make.__name__} {name} {number}")
            for make, names in table.items()
            for name, values in names.items()
            for number, value in enumerate(values)
        ],
    )
