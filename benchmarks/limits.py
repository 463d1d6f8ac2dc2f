"""Limits of this machine, and how far training steps are from them.

python benchmarks/limits.py --bench benchmarks/cpu.json --readme benchmarks/README.md
"""

from pathlib import Path

from harness import limits, speed, speed_report


def main() -> None:
    parser = speed_report.parser(__doc__, "limits")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--bench", type=Path, help="what benchmarks/cpu.py --json wrote here")
    arguments = parser.parse_args()
    bench = None if arguments.bench is None else speed.read(arguments.bench)
    result = limits.measure(arguments.threads, quick=arguments.quick)
    speed_report.write(arguments, result, limits.table(result, bench))


if __name__ == "__main__":
    main()
