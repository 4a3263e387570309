"""Measure everything, and print the table of docs/benchmarks.md."""

import argparse
import sys
from pathlib import Path

from benchmarks import calls, imports, memory
from benchmarks.contenders import installed
from benchmarks.proofs import prove
from benchmarks.table import format_table

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("-o", "--output", type=Path, help="also write it to a file")
parser.add_argument("--rounds", type=int, default=25, help="laps of each library (25)")
arguments = parser.parse_args()

contenders = installed()
for contender in contenders:
    print(f"checking {contender.name}", file=sys.stderr)
    prove(contender)
rows = []
for row in calls.measure(contenders, arguments.rounds):
    print(f"measured: {row.title}", file=sys.stderr)
    rows.append(row)
rows += imports.measure(contenders, arguments.rounds)
rows.append(memory.measure(contenders))
text = format_table(contenders, rows, arguments.rounds)
print(text)
if arguments.output:
    arguments.output.write_text(text, encoding="utf-8")
