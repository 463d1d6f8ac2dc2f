"""The papers' figures: what is measured, and how it is drawn."""
