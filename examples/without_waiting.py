"""Test a retried function without waiting: days pass in milliseconds.

Inside `virtual_time()`, retried calls use a clock that moves only when they sleep.
Nothing is patched. pytest would find these tests; here `main` calls them.

Prints::

    test_waits_an_hour_and_then_a_day: passed
    test_does_not_wait_beyond_max_elapsed: passed
    test_a_slow_attempt_counts_as_elapsed_time: passed
"""

from collections.abc import Callable
from contextlib import suppress

from retrykit import retry
from retrykit.testing import virtual_time

HOUR, DAY = 3_600.0, 86_400.0


@retry(on=LookupError, schedule=["1h", "1d", "6d"], max_elapsed="7d")
def verify(look_up: Callable[[], str]) -> str:
    """Return the address of a host."""
    return look_up()


def test_waits_an_hour_and_then_a_day() -> None:
    """The host has an address on the second day."""
    with virtual_time() as clock:

        def look_up() -> str:
            if clock.now() < DAY:
                raise LookupError
            return "192.0.2.7"

        assert verify(look_up) == "192.0.2.7"
        assert clock.sleeps == [HOUR, DAY]


def test_does_not_wait_beyond_max_elapsed() -> None:
    """A third delay would end an hour after seven days."""

    def look_up() -> str:
        raise LookupError

    with virtual_time() as clock, suppress(LookupError):
        verify(look_up)
    assert clock.sleeps == [HOUR, DAY]


def test_a_slow_attempt_counts_as_elapsed_time() -> None:
    """An attempt of a week leaves no time for another one."""
    with virtual_time() as clock, suppress(LookupError):

        def look_up() -> str:
            clock.advance(7 * DAY)
            raise LookupError

        verify(look_up)
    assert clock.sleeps == []


def main() -> None:
    """Run the tests."""
    for test in (
        test_waits_an_hour_and_then_a_day,
        test_does_not_wait_beyond_max_elapsed,
        test_a_slow_attempt_counts_as_elapsed_time,
    ):
        test()
        print(f"{test.__name__}: passed")


if __name__ == "__main__":
    main()
