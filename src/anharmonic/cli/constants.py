"""What flags and their help share."""

AUTO = "auto"
"""The value of a flag that was left open."""
NARROWEST = 60
"""A narrower terminal breaks lines itself."""
