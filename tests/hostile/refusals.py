"""Tables of wrong values."""

from functools import partial

import pytest


def wrong_values(*rows, **common):
    """Cases of a call and the name of its one wrong argument, which the error must hold.

    A row is a function, arguments that are right, and lists of wrong values by name.
    """
    return pytest.mark.parametrize(
        ("call", "name"),
        [
            pytest.param(
                partial(make, **{**common, **given, name: value}),
                name,
                id=f"{make.__name__} {name} {number}",
            )
            for make, given, wrong in rows
            for name, values in wrong.items()
            for number, value in enumerate(values)
        ],
    )
