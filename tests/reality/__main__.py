"""``python -m tests.reality [--write] [WORD]...`` holds simulations against reality.

It runs the cells whose names have all of these words, or all cells, a few ``--beside``
each other, and simulates the calls that they recorded. Recordings are kept in
``build/reality``: another run makes only those that are missing, that have another
cell, or whose timers were late, unless it is told to make all again. The exit code is 1
if a simulation differs, if timers were late, or if the document has another
table than the one that is printed; ``--write`` writes it there.
"""

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.reality.cell import Cell
from tests.reality.cells import CELLS
from tests.reality.comparison import MOST_LAG, compare, not_simulated
from tests.reality.rig import Recording, record, recorded
from tests.reality.table import Row, build_table, put, row

__all__ = ["main"]

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "build" / "reality"
PAGE = ROOT / "docs" / "simulation_checks.md"
# A recording whose timers were late is made again, so often with fewer beside it.
TRIES = 2


def main(words: Sequence[str] | None = None) -> int:
    """Record, compare, print and write; return the exit code."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser("tests.reality", description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--beside", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=12.0)
    parser.add_argument("words", nargs="*")
    chosen = parser.parse_args(words)
    cells = [
        each
        for each in CELLS.values()
        if all(word in each.name for word in chosen.words)
    ]
    left_out = {each.name: why for each in cells if (why := not_simulated(each))}
    run = [each for each in cells if each.name not in left_out]
    if chosen.again:
        for each in run:
            path_of(each).unlink(missing_ok=True)
    beside, until = chosen.beside, time.monotonic() + 60 * chosen.minutes
    for _ in range(TRIES):
        late = [each for each in run if not is_good(recording_of(each))]
        record_all(late, beside, until)
        beside = max(beside // 2, 2)
    rows: list[Row] = []
    problems: list[str] = []
    for each in run:
        found = recording_of(each)
        if found is None:
            problems.append(f"{each.name}: no recording")
            continue
        comparison = compare(each, found)
        rows.append(row(each, found, comparison))
        if not is_good(found):
            problems.append(f"{each.name}: timers were late by {found.lag:.3f} s")
        elif comparison.differences:
            problems += [f"{each.name}: {word}" for word in comparison.differences]
    table = build_table(rows)
    print(table)
    if not chosen.words and not put(PAGE, table, write=chosen.write):
        problems.append(
            "docs/simulation_checks.md has another table: --write renews it"
        )
    for name, why in left_out.items():
        print(f"{name} is left out: {why}")
    print(*problems, sep="\n")
    return 1 if problems else 0


def path_of(cell: Cell) -> Path:
    return RECORDINGS / f"{hashlib.sha256(cell.name.encode()).hexdigest()[:12]}.json.gz"


def recording_of(cell: Cell) -> Recording | None:
    return recorded(cell, path_of(cell))


def is_good(recording: Recording | None) -> bool:
    """Return whether there is a recording that counts."""
    return recording is not None and recording.lag < MOST_LAG


def record_all(cells: list[Cell], beside: int, until: float) -> None:
    """Record some cells, so many side by side, and report each to stderr."""
    # The longest ones first, so that none runs alone at the end.
    cells = sorted(cells, key=lambda each: -each.end)
    pool = ThreadPoolExecutor(beside)
    try:
        running = {pool.submit(record_until, each, until): each for each in cells}
        for number, each in enumerate(as_completed(running), 1):
            word = keep(running[each], each)
            counted = f"{number}/{len(cells)} {running[each].name}: {word}"
            print(counted, file=sys.stderr, flush=True)
    finally:
        # After Ctrl-C, those that have begun end, and nothing else begins.
        pool.shutdown(cancel_futures=True)


def keep(cell: Cell, recording: Future[Recording]) -> str:
    """Keep a recording, unless there is one whose timers are less late."""
    try:
        found = recording.result()
    except (OSError, EOFError) as error:
        return repr(error)
    before = recording_of(cell)
    if before is None or found.lag < before.lag:
        found.save(path_of(cell))
    return f"lag {found.lag:.3f} s"


def record_until(cell: Cell, until: float) -> Recording:
    """Record a cell.

    Raises:
        TimeoutError: It would not end in time.
    """
    if time.monotonic() + cell.end + cell.timeout > until:
        raise TimeoutError("left for the next run")
    return record(cell)


if __name__ == "__main__":
    sys.exit(main())
