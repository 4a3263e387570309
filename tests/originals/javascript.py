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
from tests.originals.spelling import camel_case, find_durations

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
# which makes one call that fails until it gives up, or lets `follow` collect the delays
# that a function returns for retry 1, 2 and so on; false is none. `fail` is a request
# that fails as those of `fetch`, sockets and axios do.
BEFORE = """
const [folder, path, settings, calls, retries] = JSON.parse(process.argv[1]);
const load = (path) => import("file://" + folder + "/node_modules/" + path);
const library = await load(path);
const original = library.default;
let waits = [];
const follow = (most, delayOf) => {
  for (let retry = 1; retry <= most; retry++) {
    const delay = delayOf(retry);
    if (delay === false) return;
    waits.push(delay);
  }
};
const fail = async (config) => {
  const lost = { code: "ECONNRESET", config };
  throw Object.assign(new TypeError("fetch failed"), lost);
};
globalThis.setTimeout = (after, delay) => {
  waits.push(delay);
  return setImmediate(waits.length < retries + 5 ? after : () => {});
};
"""
AFTER = """
const walks = [];
for (let i = 0; i < calls; i++) {
  waits = [];
  await Promise.resolve().then(call).catch(() => {});
  walks.push(waits.slice(0, retries).map((wait) => wait / 1000));
}
console.log(JSON.stringify(walks));
"""


def register(
    path: str,
    script: str,
    *settings: dict[str, Any],
    preset: str = "",
    spell: Callable[[str], str] | None = None,
    how: str = "its function",
) -> None:
    """Register an original in JavaScript, as `original` does.

    Args:
        path: The module that the script has as `library`, and its default export as
            `original`; it begins with the package of npm whose version is told.
        script: Defines the function `call`, for some `settings`, in which durations are
            milliseconds.
        *settings: The parameters to compare, besides the defaults.
        preset: The name of the preset, if it is not that of the package.
        spell: Returns the name that a parameter has there; None is in camel case.
        how: What is compared.
    """

    def delays(**given: Any) -> Iterator[float]:
        converted = {
            (spell or camel_case)(name): value * 1000 if name in durations else value
            for name, value in given.items()
        }
        return iter(next(_calls(path, script, json.dumps(converted))))

    package, _, _ = path.partition("/")
    preset = preset or package
    durations = find_durations(preset)
    version: Callable[[], str] = functools.partial(_read_version, package)
    original(preset, *settings, package=package, version=version, how=how)(delays)


def _read_version(package: str) -> str:
    found = json.loads((_folder() / package / "package.json").read_text("utf-8"))
    return str(found["version"])


@functools.cache
def _calls(path: str, script: str, settings: str) -> Iterator[list[float]]:
    given = [str(_folder().parent), path, json.loads(settings), CALLS, RETRIES]
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
