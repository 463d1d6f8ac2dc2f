"""The papers' constructions: networks with weights that are written down, and their errors."""

from anharmonic_papers.theory.constructions import (
    hamiltonian_statements,
    inverse_statements,
    lem,
    lem_statements,
    lstm,
    networks,
    operator_statements,
    operators,
    oscillators,
    remark_statements,
    signals,
    sine_statements,
    systems,
)

__all__ = [
    "hamiltonian_statements",
    "inverse_statements",
    "lem",
    "lem_statements",
    "lstm",
    "networks",
    "operator_statements",
    "operators",
    "oscillators",
    "remark_statements",
    "signals",
    "sine_statements",
    "systems",
]
