"""Programs with urllib3 and requests do the same before and after their migration.

Each sends its request to a server on loopback, which answers by a script, once with the
real ``Retry`` and once with retrykit's. The sleeps of urllib3 are recorded; retrykit
waits in virtual time.
"""

from types import ModuleType
from unittest.mock import patch

import pytest
import requests
import urllib3

from retrykit.testing import virtual_time
from tests._support import scripted_server
from tests._support.exports import exports_of
from tests._support.scripted_server import answer, serve
from tests._support.side_by_side import draw
from tests.migrate.programs import PROGRAMS

EXACT = [each for each in PROGRAMS if each.library == "urllib3" and each.scripts]


def busy(status, seconds):
    return answer(status, [("Retry-After", seconds)])


STEPS = exports_of(scripted_server) | {"busy": busy}


def describe(error):
    """Return the types of an error and of those that it wraps."""
    if isinstance(error, urllib3.exceptions.MaxRetryError):
        return type(error).__name__, describe(error.reason)
    if isinstance(error, requests.RequestException) and error.args:
        return type(error).__name__, describe(error.args[0])
    if isinstance(error, urllib3.exceptions.ResponseError):
        return str(error)
    return type(error).__name__


def outcome(source, script, method, share):
    """Return the requests of a program, its waits, and how it ends."""
    module = ModuleType("program")
    waits = []
    with draw(share), patch("time.sleep", waits.append), virtual_time() as clock:
        exec(compile(source, "program.py", "exec"), vars(module))  # noqa: S102
        with serve(*eval(script, STEPS)) as server:  # noqa: S307  from the list
            try:
                ended = module.main(server.url, method)
            except Exception as error:  # noqa: BLE001  it is the outcome
                ended = describe(error)
            seen = [(each.method, each.path) for each in server.seen]
    every = [round(wait, 6) for wait in (*waits, *clock.sleeps) if wait]
    return seen, every, ended


CASES = [
    pytest.param(
        program.before, program.after, script.strip(), id=f"{program}: {script}"
    )
    for program in EXACT
    for script in program.scripts.split(" | ")
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("before", "after", "script"), CASES)
def test_a_migrated_program_sends_the_same(before, after, script, method):
    for share in (0.0, 0.5, 1.0) if "jitter" in before else (0.5,):
        expected = outcome(before, script, method, share)
        assert outcome(after, script, method, share) == expected
        assert expected[0]


def test_a_connection_that_is_refused_is_tried_as_often():
    [program, *_] = EXACT
    found = []
    for source in (program.before, program.after):
        module, waits = ModuleType("program"), []
        with patch("time.sleep", waits.append), virtual_time() as clock:
            exec(compile(source, "program.py", "exec"), vars(module))  # noqa: S102
            with pytest.raises(requests.ConnectionError) as caught:
                module.main("http://127.0.0.1:1/", "POST")
        every = [wait for wait in (*waits, *clock.sleeps) if wait]
        found.append((every, describe(caught.value)))
    assert found[0] == found[1]
    assert len(found[0][0]) == 4
