"""Functions of other modules, and of other classes, that wait for a loop."""

import math
from textwrap import dedent

import pytest

from retrykit.audit import audit
from retrykit.audit._files import find_files
from retrykit.audit._project import Project
from retrykit.audit._reading import read_file
from tests._support.audited import audit_project

WAITING = """
import random, time

MOST = 30

def delay_of(attempt):
    return 2 ** attempt

def spread(attempt):
    return random.uniform(0, delay_of(attempt))

def sleep(seconds):
    while seconds > 0:
        time.sleep(1)
        seconds -= 1

def never(error):
    raise Broken from error

class Pauses:
    def before_next(self, error):
        self._sleep(0.5)

    def count(self, error):
        return self.errors[error]

    def rest(self):
        time.sleep(1)

    def _sleep(self, seconds):
        time.sleep(seconds)
"""
LOOP = """
import time
from shop import waiting
from shop.waiting import Pauses, delay_of as pause_after, spread

class Client:
    def __init__(self, pauses: Pauses):
        self.pauses = Pauses()
        self.given = pauses

    {kind} load(self):
        pauses = waiting.Pauses()
        for attempt in range(5):
            try:
                return fetch()
            except OSError as error:
                {statement}
"""


def site_in(folder, statement, kind="def"):
    """Return the only loop of a project of two modules."""
    package = folder / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "waiting.py").write_text(WAITING)
    text = LOOP.format(kind=kind, statement=statement)
    (package / "client.py").write_text(dedent(text))
    files, _ = find_files([str(folder)])
    project = Project.of_files(files, [read_file(each) for each in files])
    [site] = audit_project(project)[0]
    return site


@pytest.mark.parametrize(
    ("statement", "delays"),
    [
        ("time.sleep(pause_after(attempt))", "exponential delays, no jitter"),
        ("time.sleep(waiting.delay_of(attempt))", "exponential delays, no jitter"),
        ("time.sleep(spread(attempt))", "exponential delays, with jitter"),
        ("pauses.before_next(error)", "500 ms, no jitter, 2 s in all"),
        ("self.pauses.before_next(error)", "500 ms, no jitter, 2 s in all"),
        ("self.unknown.before_next(error)", "delays: ?"),
        ("time.sleep(waiting.missing(attempt))", "delays: ?"),
        ("made().pauses.before_next(error)", "delays: ?"),
        ("made()().before_next(error)", "delays: ?"),
        ("pauses.count(error)", "no delay"),
    ],
)
def test_functions_of_another_module_tell_the_delays(tmp_path, statement, delays):
    site = site_in(tmp_path, statement)
    assert str(site.behavior) == f"5 calls; {delays}; retries OSError"


def test_a_known_delay_is_not_read_again_for_another_function(tmp_path):
    site = site_in(tmp_path, "waiting.sleep(SECONDS)")
    expected = "5 calls; constant delays, no jitter; retries OSError"
    assert str(site.behavior) == expected


def test_a_function_of_another_module_that_always_raises_ends_the_loop(tmp_path):
    attempts = "if attempt == 2: waiting.never(error)"
    site = site_in(tmp_path, f"{attempts}; time.sleep(1)")
    assert site.behavior.ending == "raises"


ENDS = """
import time

class Client:
    async def _end(self, error):
        await self.close()
        if error.status == 404:
            raise Missing from error
        raise Broken from error

    async def _check(self, error):
        if error.status == 404:
            raise Missing from error

    async def _quit(self, error):
        await self.close()
        sys.exit(1)

    async def _must(self, error):
        raise NotImplementedError

    async def load(self):
        for attempt in range(3):
            try:
                return await fetch()
            except OSError as error:
                {statement}
                log.info("retry")
"""


@pytest.mark.parametrize(
    ("statement", "endings"),
    [
        ("await self._end(error)", []),
        ("if attempt == 2: await self._end(error)", ["raises"]),
        ("if attempt == 2: await self._quit(error)", ["raises"]),
        ("await other._end(error)", ["hidden"]),
        ("await self._check(error)", ["hidden"]),
        ("await self._must(error)", ["hidden"]),
    ],
)
def test_a_method_that_always_raises_ends_the_loop(tmp_path, statement, endings):
    file = tmp_path / "client.py"
    file.write_text(ENDS.format(statement=statement))
    sites = audit([file]).sites
    assert [each.behavior.ending for each in sites] == endings


def test_an_error_is_raised_by_a_function_of_another_module_without_a_retry(tmp_path):
    with pytest.raises(ValueError, match="not enough values"):
        site_in(tmp_path, "waiting.never(error)")


@pytest.mark.parametrize(
    ("function", "calls"), [("process_storage_error", None), ("log_error", math.inf)]
)
def test_a_function_that_handles_an_error_may_end_the_loop(tmp_path, function, calls):
    file = tmp_path / "client.py"
    file.write_text(f"""
import time

def load():
    while True:
        try:
            return fetch()
        except OSError as error:
            {function}(error)
            time.sleep(1)
""")
    [site] = audit([file]).sites
    assert site.behavior.calls == calls


def test_a_function_of_another_module_blocks_a_coroutine(tmp_path):
    assert site_in(tmp_path, "pauses.rest()", "async def").blocking
