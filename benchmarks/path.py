"""Functions that a failing call runs: ``python -m benchmarks.path``.

A call that gives up after two failures, under retrykit and tenacity, as installed:
retrykit logs the retry, to nowhere, and tenacity logs nothing. Counts the function
calls in each package, their modules, and the switches between modules. With ``-v``,
lists the calls in retrykit.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from types import FrameType
from typing import Any

import tenacity

from benchmarks.contenders import in_state
from retrykit import Policy, retry


def main() -> None:
    """Print one line for each package."""
    print(f"{'as installed':<12}{'calls':>8}{'modules':>9}{'switches':>10}")
    with in_state("as installed"):
        paths = {
            "retrykit": path(retry(Policy(schedule=[0, 0], max_attempts=2))(fail)),
            "tenacity": path(tenacity.retry(stop=tenacity.stop_after_attempt(2))(fail)),
        }
    for package, calls in paths.items():
        inside = [
            (module, name) for module, name in calls if module.split(".")[0] == package
        ]
        modules = [module for module, _ in inside]
        switches = sum(a != b for a, b in pairwise(modules))
        print(f"{package:<12}{len(inside):>8}{len({*modules}):>9}{switches:>10}")
        if "-v" in sys.argv and package == "retrykit":
            for module, name in inside:
                print(f"  {module}: {name}")


def fail() -> None:
    """Fail like a service that is down."""
    msg = "refused"
    raise ConnectionError(msg)


def path(function: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the module and the name of each function that is called."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            calls.append((module, frame.f_code.co_qualname))

    def attempt() -> None:
        with suppress(ConnectionError, tenacity.RetryError):
            function()

    # The first call imports modules.
    attempt()
    sys.setprofile(profile)
    try:
        attempt()
    finally:
        sys.setprofile(None)
    return calls


if __name__ == "__main__":
    main()
