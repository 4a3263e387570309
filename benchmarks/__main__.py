"""Measure everything as installed and quiet, and print the tables of the docs.

Times are processor time, the best of some laps in turns. Every library is first checked
to make the same number of attempts with jittered delays, and to log what is said here.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import calls, http, imports, memory
from benchmarks.contenders import STATES, Contender, State, in_state, installed
from benchmarks.proofs import prove
from benchmarks.table import format_table, machine, versions


def main() -> None:
    """Print a section for each state of the logs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="also write it to a file")
    parser.add_argument("--rounds", type=int, default=12, help="laps of each call (12)")
    arguments = parser.parse_args()
    text = "\n\n".join(
        part for state in STATES for part in _section(state, arguments.rounds)
    )
    print(text)
    if arguments.output:
        arguments.output.write_text(f"{text}\n", encoding="utf-8")


def _section(state: State, rounds: int) -> Iterator[str]:
    contenders = installed(state)
    rows = []
    with in_state(state):
        for contender in contenders:
            _report(state, "checking", contender.name)
            prove(contender, state)
        for row in calls.measure(contenders, rounds):
            _report(state, "measured", row.title)
            rows.append(row)
        clients = http.table(rounds)
        _report(state, "measured", "HTTP clients")
    rows.append(memory.measure(contenders, state))
    if state == "as installed":
        # No log changes them.
        rows += imports.measure(contenders, rounds)
    yield f"## {state.capitalize()}\n\n{STATES[state]} Best of {rounds} laps."
    yield format_table(contenders, rows)
    yield clients
    if state == "as installed":
        yield "Logged by default:\n\n" + _logs(contenders)
    named = [c.name for c in contenders if c.module and not c.variant]
    yield f"{machine()}; {versions([*named, *http.LIBRARIES])}."


def _logs(contenders: list[Contender]) -> str:
    return "\n".join(f"- {c.name}: {c.logs}" for c in contenders if c.module)


def _report(*words: str) -> None:
    # The stderr of the measured calls goes to nowhere.
    print(*words, file=sys.__stderr__)


main()
