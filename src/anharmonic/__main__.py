"""``python -m anharmonic`` is the command ``anharmonic``."""

import sys

from anharmonic.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
