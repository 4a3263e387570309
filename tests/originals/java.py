"""Runs what is written in Java: writes programs, which the JDK compiles and runs."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any
from zipfile import ZipFile

from tests.originals.comparison import CALLS, RETRIES, original
from tests.originals.spelling import camel_case, find_durations

__all__ = ["LONGEST", "register"]

LONGEST = (2**31 - 1) / 1000
"""The longest duration that is an `int` of milliseconds, in seconds."""

# By their packages: the jars of Debian, of which other versions may be in CLASSPATH.
JARS = {"com.google.api.client": "google-http-client", "com.google.common": "guava"}
FOLDER = "/usr/share/java"

# Prints a line for each call. `Math.random` has the same random numbers in each run:
# nothing public can seed it.
PROGRAM = Template("""
class Delays {
    public static void main(String[] arguments) throws Exception {
        var source = Class.forName("java.lang.Math$$RandomNumberGeneratorHolder")
            .getDeclaredField("randomNumberGenerator");
        source.setAccessible(true);
        ((java.util.Random) source.get(null)).setSeed(7);
        for (int call = 0; call < $calls; call++) {
            var original = new $name.Builder()$settings.build();
            for (int retry = 0; retry < $retries; retry++)
                System.out.print(original.$method() + " ");
            System.out.println();
        }
    }
}
""")


def register(preset: str, path: str, *settings: dict[str, Any]) -> None:
    """Register an original in Java, as `original` does.

    Its class has a nested class `Builder`, with a setter for each parameter of the
    preset; a duration is a whole number of milliseconds there, and named so:
    ``setMaxIntervalMillis``.

    Args:
        preset: The name of the preset.
        path: The class, and the method that returns the next delay in milliseconds,
            written ``package.Class#method``.
        *settings: The parameters to compare, besides the defaults.
    """

    def delays(**given: Any) -> Iterator[float]:
        durations = find_durations(preset)
        setters = ""
        for name, value in given.items():
            is_duration = name in durations
            setter = camel_case(f"set_{name}{'_millis' * is_duration}")
            setters += f".{setter}({round(value * 1000) if is_duration else value})"
        return iter(next(_calls(path, setters)))

    jar = next(jar for package, jar in JARS.items() if path.startswith(package))
    version = functools.partial(_read_version, jar)
    how = "its class, in Java"
    original(preset, *settings, package=jar, version=version, how=how)(delays)


def _read_version(jar: str) -> str:
    with ZipFile(_find(jar)) as opened:
        lines = opened.read("META-INF/MANIFEST.MF").decode().splitlines()
    return next(line.split()[1] for line in lines if "Implementation-Version" in line)


@functools.cache
def _calls(path: str, setters: str) -> Iterator[list[float]]:
    name, _, method = path.partition("#")
    program = PROGRAM.substitute(
        name=name, method=method, settings=setters, calls=CALLS, retries=RETRIES
    )
    if shutil.which("java") is None:
        msg = "the originals in Java need java, which is not installed"
        raise RuntimeError(msg)
    words = ["java", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp"]
    words += [os.pathsep.join(map(_find, JARS.values()))]
    with tempfile.TemporaryDirectory(prefix="originals-") as folder:
        file = Path(folder, "Delays.java")
        file.write_text(program, "utf-8")
        run = subprocess.run(  # noqa: S603  the program above
            [*words, str(file)], capture_output=True, text=True, check=False
        )
    if run.returncode:
        raise RuntimeError(run.stderr)
    lines = run.stdout.splitlines()
    return iter([[int(each) / 1000 for each in line.split()] for line in lines])


def _find(jar: str) -> str:
    """Return the path of a jar."""
    paths = os.environ.get("CLASSPATH", f"{FOLDER}/{jar}.jar").split(os.pathsep)
    for path in paths:
        if Path(path).name.startswith(jar) and Path(path).exists():
            return path
    msg = f"the originals in Java need {jar}.jar, which is not installed"
    raise RuntimeError(msg)
