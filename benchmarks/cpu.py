"""Speed beside ``torch.nn.LSTM``: the same as ``anharmonic bench``, beside its siblings.

python benchmarks/cpu.py --json benchmarks/cpu.json --readme README.md
"""

import sys

from anharmonic.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["bench", *sys.argv[1:]]))
