"""The papers' data sets."""
