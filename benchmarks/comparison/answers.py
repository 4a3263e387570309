"""Answers of the libraries, each found in a process of its own.

``python -m benchmarks.comparison.answers tenacity`` prints those of a library as JSON.
"""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from importlib.metadata import version

from benchmarks.comparison.claims import CLAIMS, Answer, Library

__all__ = ["LIBRARIES", "Found", "answer", "ask"]

LIBRARIES = ["retrykit", "tenacity", "stamina", "backoff", "google-api-core"]
LIBRARIES += ["redress", "nopanic", "resilix"]
"""The libraries by the names of their distributions; each has a module ``of_NAME``."""

VERSION = "version"

Found = dict[str, dict[str, Answer]]
"""The answers of each library by claim, and its version as the answer to `VERSION`."""


def ask(pythons: dict[str, str] | None = None) -> Found:
    """Run the programs of every library.

    Args:
        pythons: The interpreter of each library; by default this one.
    """
    with ThreadPoolExecutor(2) as pool:
        every = [(pythons or {}).get(name, sys.executable) for name in LIBRARIES]
        found = pool.map(_ask, LIBRARIES, every)
    return dict(zip(LIBRARIES, found, strict=True))


def _ask(name: str, python: str) -> dict[str, Answer]:
    command = [python, "-Wignore", "-m", "benchmarks.comparison.answers", name]
    done = subprocess.run(  # noqa: S603  this module
        command, check=True, stdout=subprocess.PIPE, text=True
    )
    return {claim: Answer(*each) for claim, each in json.loads(done.stdout).items()}


def answer(library: Library, claim: str) -> Answer:
    """Run a program; if it fails, the answer is unclear, with its error."""
    from benchmarks.comparison.behavior import PROGRAMS  # noqa: PLC0415  needs trio

    program = library.programs.get(claim) or partial(PROGRAMS[claim], library)
    try:
        return program()
    except Exception as error:  # noqa: BLE001  whatever a new release does
        return Answer("unclear", f"{type(error).__name__}: {error}")


def _main(names: Iterable[str]) -> None:
    logging.disable()
    for name in names:
        module = f"benchmarks.comparison.of_{name.replace('-', '_')}"
        with redirect_stdout(io.StringIO()):
            library: Library = import_module(module).LIBRARY
            found = {claim: answer(library, claim) for claim in CLAIMS}
            number = "" if name == "retrykit" else version(library.name)
        print(json.dumps({VERSION: Answer(number)} | found))


if __name__ == "__main__":
    _main(sys.argv[1:])
