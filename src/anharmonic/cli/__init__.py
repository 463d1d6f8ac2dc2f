"""The command line."""

from anharmonic.cli.flags import fields_of, run_command
from anharmonic.cli.main import is_debugging, one_line

__all__ = ["fields_of", "is_debugging", "one_line", "run_command"]
