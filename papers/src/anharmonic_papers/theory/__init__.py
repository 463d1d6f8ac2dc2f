"""The papers' propositions as code: bounds, exact formulas and explicit constructions."""

from anharmonic_papers.theory.statements import all_statements

__all__ = ["all_statements"]
