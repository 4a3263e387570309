"""Runs what is written in JavaScript: installs packages of npm, and asks scripts."""

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.originals.comparison import CALLS, RETRIES, original

__all__ = ["register"]

PACKAGES = {
    "axios": "1.21.1",
    "axios-retry": "4.5.0",
    "bullmq": "6.7.0",
    "got": "16.1.0",
    "ky": "2.1.0",
    "npm": "12.2.2",
    "p-retry": "9.0.0",
    "retry": "0.13.1",
    "undici": "8.13.1",
}

# Timers record their delays, and do not wait. The script after this defines `call`,
# which makes one call that fails until it gives up.
BEFORE = """
const [folder, settings, calls, retries] = JSON.parse(process.argv[1]);
const load = (path) => import("file://" + folder + "/node_modules/" + path);
let waits = [];
globalThis.setTimeout = (after, delay) => {
  waits.push(delay);
  return setImmediate(waits.length < retries + 5 ? after : () => {});
};
"""
AFTER = """
const walks = [];
for (let i = 0; i < calls; i++) {
  waits = [];
  await call();
  walks.push(waits.slice(0, retries).map((wait) => wait / 1000));
}
console.log(JSON.stringify(walks));
"""


def register(
    preset: str,
    package: str,
    script: str,
    *settings: dict[str, Any],
    in_seconds: tuple[str, ...] = (),
    how: str = "its function",
) -> None:
    """Register an original in JavaScript, as `original` does.

    Args:
        preset: The name of the preset.
        package: The package of npm whose version is told.
        script: Defines the function `call`, for some `settings`.
        *settings: The parameters to compare, besides the defaults.
        in_seconds: Those that are durations; the script gets milliseconds.
        how: What is compared.
    """

    def delays(**given: Any) -> Iterator[float]:
        converted = {
            _camel_case(name): value * 1000 if name in in_seconds else value
            for name, value in given.items()
        }
        return iter(next(_calls(script, json.dumps(converted))))

    version: Callable[[], str] = functools.partial(_read_version, package)
    original(preset, package, *settings, version=version, how=how)(delays)


def _read_version(package: str) -> str:
    found = json.loads((_folder() / package / "package.json").read_text("utf-8"))
    return str(found["version"])


@functools.cache
def _calls(script: str, settings: str) -> Iterator[list[float]]:
    given = [str(_folder().parent), json.loads(settings), CALLS, RETRIES]
    program = BEFORE + script + AFTER
    # The same random numbers in each run.
    words = ["node", "--random-seed=7", "--input-type=module", "-e", program]
    run = subprocess.run(  # noqa: S603  scripts of this folder
        [*words, json.dumps(given)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    return iter(json.loads(run.stdout))


@functools.cache
def _folder() -> Path:
    """Return the folder node_modules with all packages, which this run installs."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            msg = f"the originals in JavaScript need {program}, which is not installed"
            raise RuntimeError(msg)
    folder = tempfile.TemporaryDirectory(prefix="originals-")
    # Kept as long as the process runs.
    _FOLDERS.append(folder)
    words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    run = subprocess.run(  # noqa: S603  packages that are named here
        [*words, "--prefix", folder.name, *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    return Path(folder.name) / "node_modules"


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)
