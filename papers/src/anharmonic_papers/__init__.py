"""The papers behind anharmonic, reproduced with it."""
