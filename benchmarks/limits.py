"""Limits of this machine, and how far training steps are from them.

python benchmarks/limits.py --bench benchmarks/cpu.json --readme benchmarks/README.md
"""

import argparse
import json
from pathlib import Path

from harness import limits, speed
from harness.speed_report import fill


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--bench", type=Path, help="what python benchmarks/cpu.py --json wrote here"
    )
    parser.add_argument("--json", type=Path, help="file for the limits")
    parser.add_argument("--readme", type=Path, help="page with a block <!-- limits -->")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it")
    arguments = parser.parse_args()
    bench = None if arguments.bench is None else speed.read(arguments.bench)
    result = limits.measure(arguments.threads, quick=arguments.quick)
    text = limits.table(result, bench)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.readme is not None:
        fill(arguments.readme, "limits", text)


if __name__ == "__main__":
    main()
