"""Peak memory of one training step on long sequences, each in a process of its own.

python benchmarks/memory.py --json benchmarks/memory.json --readme benchmarks/README.md
"""

import dataclasses
import sys

from harness import memory, speed_report


def main() -> int:
    parser = speed_report.parser(__doc__, "memory")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    cases = list(memory.CASES)
    if arguments.quick:
        cases = [dataclasses.replace(case, steps=20) for case in cases]
    result = memory.measure(
        cases, threads=arguments.threads, say=lambda line: print(line, file=sys.stderr, flush=True)
    )
    speed_report.write(arguments, result, memory.table(result))
    lines = memory.missed(result)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
