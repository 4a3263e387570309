"""Lines a second of an audit, beside a scan that only parses and walks all trees.

``python -m benchmarks.audit [FOLDER]`` runs each in turn, with one process and with
two, and prints the best of three runs; by default over the packages of this
environment. Memory is the most that all processes have at a time, what they share
counted once, as Linux tells it twenty times a second.
"""

import argparse
import ast
import os
import re
import sysconfig
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from select import select
from time import perf_counter
from typing import NamedTuple

from benchmarks.table import machine, markdown, number
from retrykit.audit import audit
from retrykit.audit._files import find_files

__all__ = ["main"]

_ROUNDS = 3
_CHUNK = 40
_MEGA = 1e6
_SAMPLED_EVERY = 0.05


class _Run(NamedTuple):
    """A scan, measured.

    Attributes:
        lines: The lines that it read.
        seconds: How long it took.
        processor: The seconds of processor time of all its processes.
        memory: The most megabytes that they have at a time.
    """

    lines: int
    seconds: float
    processor: float
    memory: float


def _walk(paths: Sequence[str]) -> int:
    """Parse files and walk their trees; return the number of their lines."""
    warnings.simplefilter("ignore")
    lines = 0
    for path in paths:
        with open(path, "rb") as opened:  # noqa: PTH123  as the audit does
            source = opened.read()
        lines += source.count(b"\n")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for _ in ast.walk(tree):
            pass
    return lines


def _walk_all(processes: int, folder: str) -> int:
    paths = [each.path for each in find_files([folder])[0]]
    chunks = [paths[each : each + _CHUNK] for each in range(0, len(paths), _CHUNK)]
    if processes == 1:
        return sum(map(_walk, chunks))
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(_walk, chunks))


def _audit_all(processes: int, folder: str) -> int:
    return audit([folder], processes=processes).lines


_SCANS: dict[tuple[str, int], Callable[[str], int]] = {
    (name, processes): partial(function, processes)
    for name, function in (("parse and walk", _walk_all), ("audit", _audit_all))
    for processes in (1, 2)
}


def _measure(scan: Callable[[str], int], folder: str) -> _Run:
    """Return what a scan takes, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        start = perf_counter()
        lines = scan(folder)
        seconds = perf_counter() - start
        os.write(writing, f"{lines} {seconds} {_processor_time()}".encode())
        os._exit(0)
    os.close(writing)
    memory = 0.0
    while not select([reading], [], [], _SAMPLED_EVERY)[0]:
        memory = max(memory, _memory(child))
    with os.fdopen(reading) as opened:
        read, seconds, processor = map(float, opened.read().split())
    os.waitpid(child, 0)
    return _Run(int(read), seconds, processor, memory)


def _processor_time() -> float:
    """Return the seconds of this process and of those that it has ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _memory(process: int) -> float:
    """Return the megabytes of a process and those that it started."""
    found = 0.0
    folder = Path(f"/proc/{process}")
    try:
        sizes = (folder / "smaps_rollup").read_text("ascii")
        [size] = re.findall(r"^Pss: +(\d+) kB", sizes, re.MULTILINE)
        found = int(size) / 1e3
        tasks = (folder / "task").iterdir()
        started = " ".join((x / "children").read_text("ascii") for x in tasks)
        return found + sum(_memory(int(each)) for each in started.split())
    except OSError:
        # It has just ended.
        return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=sysconfig.get_path("purelib"))
    folder = parser.parse_args().folder
    runs: dict[tuple[str, int], list[_Run]] = {each: [] for each in _SCANS}
    for _ in range(_ROUNDS):
        for (name, processes), scan in _SCANS.items():
            runs[name, processes].append(_measure(scan, folder))
    best = {key: min(each, key=lambda run: run.seconds) for key, each in runs.items()}
    first = next(iter(best.values()))
    heads = ["", "processes", "lines a second", "times"]
    heads += ["processor time of a million lines (s)", "memory (MB)"]
    rows = [
        [
            name,
            str(processes),
            number(each.lines / each.seconds),
            f"{first.seconds / each.seconds:.2f}",
            number(each.processor / each.lines * _MEGA),
            number(each.memory),
        ]
        for (name, processes), each in best.items()
    ]
    print(f"{machine()}; {first.lines:,} lines\n\n{markdown(heads, rows)}")


if __name__ == "__main__":
    main()
