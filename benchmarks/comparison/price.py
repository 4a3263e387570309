"""Price of each library: size, memory, import and a call, as multiples of retrykit's.

``python -m benchmarks.comparison.price [--write]`` prints the table, or writes it into
docs/comparison.md. Memory and import are measured in new processes, calls in turns.
"""

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks import calls, imports
from benchmarks.comparison.answers import LIBRARIES
from benchmarks.comparison.claims import folder_of
from benchmarks.comparison.page import PAGE, put
from benchmarks.contenders import CONTENDERS, Contender, in_state
from benchmarks.table import markdown

__all__ = ["main"]

ROUNDS = 3
CALL = "function, success"
BY_NAME = {each.name: each for each in CONTENDERS}
COMPARED = [BY_NAME[name] for name in LIBRARIES]

_GROWTH = """
from pathlib import Path

def resident():
    return int(Path("/proc/self/statm").read_text("ascii").split()[1])

{loaded}
before = resident()
{statement}
print(resident() - before)
"""


def _files(contender: Contender) -> Iterator[Path]:
    # That of google-api-core has clients, too.
    yield from folder_of(contender.module).rglob("*.py")


def _lines(contender: Contender) -> float:
    return sum(path.read_text("utf-8").count("\n") for path in _files(contender))


def _compressed(contender: Contender) -> float:
    """Return the bytes of the files in an archive such as a wheel."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(contender):
            archive.write(path)
    return len(buffer.getvalue())


def _memory(contender: Contender, loaded: str = "") -> float:
    """Return the pages by which an import grows a process, the least of some."""
    statement = imports.statement(contender.module)
    code = _GROWTH.format(loaded=loaded, statement=statement)
    done = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # noqa: S603
        for _ in range(3)
    ]
    return min(float(each.stdout) for each in done)


def measure() -> dict[str, list[float]]:
    """Return the figures of the libraries, by the title of the row."""
    with in_state("quiet"):
        [call] = calls.measure(COMPARED, ROUNDS, CALL)
    bare, loaded = imports.measure(COMPARED, ROUNDS)
    return {
        "Lines, with docstrings": [_lines(each) for each in COMPARED],
        "Size in a wheel": [_compressed(each) for each in COMPARED],
        "Memory of the import": [_memory(each) for each in COMPARED],
        "Memory, after asyncio": [_memory(each, "import asyncio") for each in COMPARED],
        "Time of the import": bare.figures,
        "Time, after asyncio": loaded.figures,
        "A call that succeeds": call.figures,
    }


def main(options: Iterable[str]) -> None:
    """Print the table, or write it."""
    rows = {
        title: [f"{each / figures[0]:.2g}" for each in figures]
        for title, figures in measure().items()
    }
    print(
        markdown(["", *LIBRARIES], [[title, *cells] for title, cells in rows.items()])
    )
    if "--write" in options:
        text = put(PAGE.read_text("utf-8"), "prices", LIBRARIES, rows)
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
