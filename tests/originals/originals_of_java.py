"""The classes of Java libraries, each run by a Java program in this folder."""

import functools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from zipfile import ZipFile

from tests.originals.comparison import documented, original

# Debian's packages libgoogle-http-client-java, libguava-java and default-jdk-headless.
GUAVA = "/usr/share/java/guava.jar"
GOOGLE = "/usr/share/java/google-http-client.jar"
CLASSES = os.environ.get("CLASSPATH", f"{GOOGLE}{os.pathsep}{GUAVA}").split(os.pathsep)
LONGEST = (2**31 - 1) / 1000


@functools.cache
def intervals() -> Popen[str]:
    """Return the program that prints delays for each line that it reads."""
    program = str(Path(__file__).with_name("Intervals.java"))
    command = ["java", "-cp", os.pathsep.join(CLASSES), program]
    return Popen(command, stdin=PIPE, stdout=PIPE, text=True)  # noqa: S603  our own


def version() -> str:
    with ZipFile(CLASSES[0]) as jar:
        lines = jar.read("META-INF/MANIFEST.MF").decode().splitlines()
    return next(line.split()[1] for line in lines if "Implementation-Version" in line)


def google_waits(
    *,
    initial_interval: float = 0.5,
    randomization_factor: float = 0.5,
    multiplier: float = 1.5,
    max_interval: float = 60,
) -> Iterator[float]:
    first, longest = (round(each * 1000) for each in (initial_interval, max_interval))
    settings = [first, randomization_factor, multiplier, longest]
    program, draws = intervals(), [random.random() for _ in range(12)]
    assert program.stdin is not None
    assert program.stdout is not None
    print(*settings, *draws, file=program.stdin, flush=True)
    yield from (int(each) / 1000 for each in program.stdout.readline().split())


if shutil.which("java") and all(Path(each).exists() for each in CLASSES):
    original(
        "google",
        {"initial_interval": 1, "randomization_factor": 0, "multiplier": 2},
        {"randomization_factor": 0.9, "multiplier": 30, "max_interval": LONGEST},
        {"initial_interval": LONGEST, "max_interval": LONGEST},
        {"initial_interval": 0.007, "multiplier": 1.1, "max_interval": 0.02},
        package="google-http-client",
        version=version,
        how="its class, in Java",
    )(google_waits)
else:
    documented("google", "Google HTTP Client for Java, its class documentation")
