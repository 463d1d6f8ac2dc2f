"""The command line."""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names

if TYPE_CHECKING:
    from anharmonic.cli.flags import fields_of, run_command
    from anharmonic.cli.main import is_debugging, one_line
    from anharmonic.cli.train import command_of
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = ["command_of", "fields_of", "is_debugging", "one_line", "run_command"]
