"""The documents' constructions: networks with weights that are written down, and how well they do."""

from anharmonic.theory.constructions import (
    lem,
    lem_statements,
    lstm,
    networks,
    operator_statements,
    operators,
    oscillators,
    sine_statements,
)

__all__ = [
    "lem",
    "lem_statements",
    "lstm",
    "networks",
    "operator_statements",
    "operators",
    "oscillators",
    "sine_statements",
]
