"""GPU kernels beside cuDNN's LSTM: checks against float64, then training steps, memory and limits.

python benchmarks/gpu.py --json benchmarks/gpu.json --markdown benchmarks/gpu.md
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

from harness import gpu, speed_report


def main() -> int:
    parser = speed_report.parser(__doc__, "gpu")
    parser.add_argument("--repeats", type=int, default=20, help="turns that count")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
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
    speed_report.write(arguments, result, gpu.table(result))
    lines = gpu.missed(result)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
