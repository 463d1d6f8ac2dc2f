"""Commands that this package adds to ``anharmonic``."""
