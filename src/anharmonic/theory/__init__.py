"""The documents' propositions as code: bounds, exact formulas and explicit constructions."""
