"""Start-up time of the command line, compared with ``import rich``.

``python -m benchmarks.start_up``
"""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import perf_counter

__all__ = ["main"]

_ROUNDS = 20
_CASES = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import rich'": ["-c", "import rich"],
    "retrykit --help": ["-m", "retrykit", "--help"],
    "retrykit show zizq:retry_limit=3": [
        "-m",
        "retrykit",
        "show",
        "zizq:retry_limit=3",
    ],
}


def main() -> None:
    """Print the time of each case, and its ratio to that of importing rich."""
    best = dict.fromkeys(_CASES, float("inf"))
    with TemporaryDirectory() as folder:
        # The first round compiles, and is slower than any other.
        for _ in range(_ROUNDS + 1):
            for name, arguments in _CASES.items():
                best[name] = min(best[name], _seconds(arguments, folder))
    rich = best["python -c 'import rich'"]
    for name, seconds in best.items():
        print(f"{name:<34} {seconds * 1e3:6.1f} ms  {seconds / rich:4.1f}")


def _seconds(arguments: list[str], folder: str) -> float:
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    start = perf_counter()
    subprocess.run(  # noqa: S603  this interpreter, and arguments from above
        [sys.executable, *arguments],
        env=environ,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return perf_counter() - start


if __name__ == "__main__":
    main()
