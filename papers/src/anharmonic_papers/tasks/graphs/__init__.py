"""The papers' graphs."""
