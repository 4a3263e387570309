"""What importing costs, each time in a fresh interpreter.

The interpreters keep compiled modules in a folder of their own, so that what
is measured is what users see from the second time on.
"""

import os
import subprocess
import sys
from collections import Counter
from tempfile import TemporaryDirectory

from benchmarks.calls import Row
from benchmarks.contenders import Contender

__all__ = ["loaded", "measure"]

_TIMED = """
from time import perf_counter
{before}
start = perf_counter()
{statement}
print(perf_counter() - start)
"""

_LOADED = """
import sys
import wrapt
before = set(sys.modules)
from retrykit import retry
print(*sorted(set(sys.modules) - before))
"""


def measure(contenders: list[Contender], rounds: int) -> list[Row]:
    """Return the rows about imports, in milliseconds.

    Args:
        contenders: Who is measured.
        rounds: How many interpreters are started for each. Count, >= 1.
    """
    codes = {c.name: _code("", _statement(c.module)) for c in contenders if c.module}
    codes["beyond wrapt"] = _code("import wrapt", _statement("retrykit"))
    best = dict.fromkeys(codes, float("inf"))
    with TemporaryDirectory() as folder:
        # The first round compiles, and is beaten by any other.
        for _ in range(rounds + 1):
            for name, code in codes.items():
                best[name] = min(best[name], float(_printed(code, folder)))
    in_all = {name: seconds * 1e3 for name, seconds in best.items()}
    own = in_all | {"retrykit": in_all["beyond wrapt"]}
    return [
        Row(
            "import, beyond wrapt's own", [own.get(c.name, 0) for c in contenders], "ms"
        ),
        Row("import, in all", [in_all.get(c.name, 0) for c in contenders], "ms"),
    ]


def loaded() -> str:
    """Return the modules that retrykit loads and wrapt does not, as a text."""
    with TemporaryDirectory() as folder:
        names = _printed(_LOADED, folder).split()
    counts = Counter(name.split(".")[0] for name in names)
    return ", ".join(
        top if count == 1 else f"{top} ({count} modules)"
        for top, count in sorted(counts.items())
    )


def _statement(module: str) -> str:
    # Of its own it imports nothing yet; the decorator brings all that a call needs.
    return "from retrykit import retry" if module == "retrykit" else f"import {module}"


def _code(before: str, statement: str) -> str:
    return _TIMED.format(before=before, statement=statement)


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
