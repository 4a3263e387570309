"""Import times, each in a fresh interpreter.

The interpreters keep compiled modules in their own folder, so the times are those
that users see from the second time on.
"""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.calls import Row
from benchmarks.contenders import Contender

__all__ = ["measure", "statement"]

_TIMED = """
{loaded}
from time import process_time
start = process_time()
{statement}
print(process_time() - start)
"""


def measure(contenders: list[Contender], rounds: int) -> list[Row]:
    """Return the rows of import times, in milliseconds.

    Args:
        contenders: The libraries to measure.
        rounds: The number of interpreters for each. Count, >= 1.
    """
    return [
        _row("import", "", contenders, rounds),
        _row(
            "import after asyncio",
            "import asyncio, inspect, typing",
            contenders,
            rounds,
        ),
    ]


def _row(title: str, loaded: str, contenders: list[Contender], rounds: int) -> Row:
    codes = {c.module: _code(c.module, loaded) for c in contenders if c.module}
    best = dict.fromkeys(codes, float("inf"))
    with TemporaryDirectory() as folder:
        # The first round compiles, and is slower than any other.
        for _ in range(rounds + 1):
            for name, code in codes.items():
                best[name] = min(best[name], float(_printed(code, folder)))
    return Row(title, [best.get(c.module, 0.0) * 1e3 for c in contenders], "ms")


def _code(module: str, loaded: str) -> str:
    return _TIMED.format(loaded=loaded, statement=statement(module))


def statement(module: str) -> str:
    """Return the statement that imports all that a call needs."""
    # `import retrykit` imports nothing.
    return "from retrykit import retry" if module == "retrykit" else f"import {module}"


def _printed(code: str, folder: str) -> str:
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(  # noqa: S603  this interpreter, and code from above
        [sys.executable, "-c", code],
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
