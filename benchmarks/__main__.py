"""The one command: measure everything, print the table."""

import argparse
import logging
import sys
from pathlib import Path

from benchmarks import calls, imports, memory
from benchmarks.contenders import installed
from benchmarks.proofs import prove
from benchmarks.table import printed

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("-o", "--output", type=Path, help="write it as Markdown, too")
parser.add_argument("--rounds", type=int, default=25, help="laps of each (25)")
given = parser.parse_args()

# What stamina logs of each retry is made, and written nowhere.
logging.getLogger().addHandler(logging.NullHandler())

contenders = installed()
for contender in contenders:
    print(f"proving that {contender.name} works", file=sys.stderr)
    prove(contender)
rows = []
for row in calls.measure(contenders, given.rounds):
    print(f"measured: {row.title}", file=sys.stderr)
    rows.append(row)
rows.append(imports.measure(contenders, given.rounds))
rows.append(memory.measure(contenders))
text = printed(contenders, rows, given.rounds)
print(text)
if given.output:
    given.output.write_text(text, encoding="utf-8")
