"""The command line."""

from anharmonic.cli.main import is_debugging, one_line
from anharmonic.cli.options import distinct, field_options, parse, short_usage

__all__ = ["distinct", "field_options", "is_debugging", "one_line", "parse", "short_usage"]
