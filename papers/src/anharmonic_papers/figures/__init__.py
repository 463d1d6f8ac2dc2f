"""Measure and draw the papers' figures."""
