"""The command: ``python -m tests.fuzz --count 1000000 --seed 7``."""

import argparse
import os
import sys

from tests.fuzz.report import print_report
from tests.fuzz.runner import run, run_one
from tests.fuzz.targets import TARGETS


def main():
    """Run the fuzzers, and return the exit status: 1 if there are faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="inputs in all")
    parser.add_argument("--seed", type=int, default=1, help="seed of the inputs")
    parser.add_argument("--only", choices=[*TARGETS], action="append", metavar="NAME")
    parser.add_argument("--one", type=int, metavar="N", help="run input N of --only")
    parser.add_argument(
        "--limit", type=float, default=2.0, help="seconds an input may take"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    names = args.only or [name for name, target in TARGETS.items() if target.share]
    targets = [TARGETS[name] for name in names]
    if args.one is not None:
        return run_one(targets[0], args.seed, args.one, args.limit)
    tallies = run(targets, args.count, args.seed, args.limit, args.processes)
    print_report(tallies, args.seed)
    return int(any(tally.faults for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
