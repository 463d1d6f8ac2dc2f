"""Speed beside ``torch.nn.LSTM``: ``anharmonic bench`` for a checkout that is not on the path.

python benchmarks/cpu.py --json benchmarks/cpu.json --readme README.md
"""

import sys

from anharmonic.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["bench", *sys.argv[1:]]))
