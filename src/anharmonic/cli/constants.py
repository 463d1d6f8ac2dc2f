"""What flags and their help share."""

AUTO = "auto"
"""The value of a flag that was left open."""
HELP = ("-h", "--help", "--help-all")
"""What asks for help."""
NARROWEST = 60
"""A narrower terminal breaks lines itself."""
