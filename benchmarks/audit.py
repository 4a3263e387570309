"""Lines a second of an audit, beside a scan that only parses and walks all trees.

``python -m benchmarks.audit [FOLDER]`` runs each with two processes, in turn, and
prints the best of three; by default over the packages of this environment. Memory is
the sum of the largest sizes of the processes.
"""

import argparse
import ast
import os
import sysconfig
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter
from typing import Any

from retrykit.audit import audit
from retrykit.audit._files import find_files

__all__ = ["main"]

_PROCESSES = 2
_ROUNDS = 3
_CHUNK = 40


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


def _walk_all(folder: str) -> int:
    paths = [each.path for each in find_files([folder])[0]]
    chunks = [paths[each : each + _CHUNK] for each in range(0, len(paths), _CHUNK)]
    with ProcessPoolExecutor(_PROCESSES) as pool:
        return sum(pool.map(_walk, chunks))


def _audit_all(folder: str) -> int:
    return audit([folder], processes=_PROCESSES).lines


def _measured(function: Callable[[str], int], folder: str) -> tuple[float, float]:
    """Return lines a second and megabytes, measured in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        start = perf_counter()
        lines = function(folder)
        result = f"{lines / (perf_counter() - start)} {_memory()}"
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as opened:
        speed, memory = opened.read().split()
    os.waitpid(child, 0)
    return float(speed), float(memory)


def _memory() -> float:
    """Return the megabytes of this process and those that it has ended, at most."""
    import resource  # noqa: PLC0415  not on Windows

    kinds: list[Any] = [resource.RUSAGE_SELF, *[resource.RUSAGE_CHILDREN] * _PROCESSES]
    return sum(resource.getrusage(each).ru_maxrss for each in kinds) / 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=sysconfig.get_path("purelib"))
    folder = parser.parse_args().folder
    functions = {"parse and walk": _walk_all, "retrykit audit": _audit_all}
    best = dict.fromkeys(functions, (0.0, 0.0))
    for _ in range(_ROUNDS):
        for name, function in functions.items():
            best[name] = max(best[name], _measured(function, folder))
    for name, (speed, memory) in best.items():
        print(f"{name:15} {speed:10,.0f} lines/s {memory:6.0f} MB")
    ratio = best["retrykit audit"][0] / best["parse and walk"][0]
    print(f"{ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
