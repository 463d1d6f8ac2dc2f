"""Constants of flags and their help."""

AUTO = "auto"
"""The value of an unset flag."""
HELP = ("-h", "--help", "--help-all")
"""Flags that request help."""
NARROWEST = 60
"""Smallest width for layouts; narrower terminals wrap lines themselves."""
