"""Baseline models that the papers compare with."""
