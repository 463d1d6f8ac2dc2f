"""GPU kernels beside cuDNN's LSTM: checks against float64, then training steps, memory and limits.

python benchmarks/gpu.py --json benchmarks/gpu.json --markdown benchmarks/gpu.md
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import torch

from harness import gpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="turns that count")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    parser.add_argument("--quick", action="store_true", help="100 steps each, to try it")
    arguments = parser.parse_args()
    if arguments.from_json is not None:
        result = json.loads(arguments.from_json.read_text("utf-8"))
    elif not torch.cuda.is_available():
        print("benchmarks/gpu.py needs a CUDA device; none is here; nothing was timed.")
        return 2
    else:
        cases = list(gpu.CASES)
        if arguments.quick:
            cases = [dataclasses.replace(case, steps=100) for case in cases]
        result = gpu.measure(
            cases, arguments.repeats, lambda line: print(line, file=sys.stderr, flush=True)
        )
    text = gpu.table(result)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(text + "\n", "utf-8")
    lines = gpu.missed(result)
    print("\n".join(f"missed: {line}" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
