"""Progress of a simulation: how long it may take, how far it is, its interruption."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from retrykit._core.limits import most_attempts
from retrykit._internal.durations import duration_in_words
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.simulate._clients import Clients
from retrykit.simulate._events import SECOND, Events
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._results import Simulation

__all__ = ["Progress", "Watcher", "attach_simulation", "check_progress"]
__all__ += ["expected_attempts", "run_seconds", "simulation_of"]

Progress = Callable[[int, int], object]
"""Gets the number of seconds that have been simulated, and of all."""

# Of the slowest engine, on a slow core.
_ATTEMPTS_PER_SECOND: Final = 100_000
_LONG: Final = 60.0
_ATTRIBUTE: Final = "retrykit_simulation"


class Watcher:
    """Is told how a simulation proceeds.

    Args:
        progress: Is told how far it is.
        runs: Number of simulations like this one that follow each other.
    """

    def __init__(self, progress: Progress | None = None, runs: int = 1) -> None:
        self._progress, self._runs = progress, runs

    def expect(self, attempts: float) -> None:
        """Warn if about so many attempts take long."""
        # Two digits, as it is an estimate.
        attempts = float(f"{attempts * self._runs:.2g}")
        takes = attempts / _ATTEMPTS_PER_SECOND
        if takes > _LONG:
            self.warn(
                f"this simulation may take {duration_in_words(takes)}, for up to "
                f"{attempts:,.0f} attempts; with a shorter horizon, or a server of "
                "less capacity, it takes less"
            )

    def warn(self, text: str) -> None:
        """Warn of a simulation that takes long."""
        logging.getLogger("retrykit").warning("%s", text)

    def reach(self, time: int, recorder: Recorder) -> None:
        """Tell that all before a time has been counted, in nanoseconds."""
        over, whole = time // SECOND, recorder.end // SECOND
        for second in range(recorder.over + 1, over + 1):
            recorder.over = second
            self.advance(second, whole)

    def advance(self, seconds: int, of: int) -> None:
        """Tell how far the simulation is."""
        if self._progress is not None:
            self._progress(seconds, of)


def check_progress(progress: object) -> Progress | None:
    """Return a function that gets the progress, or None."""
    if progress is not None and not callable(progress):
        rule = "a function of two numbers, or None"
        raise invalid_setting("progress", rule, progress)
    return progress


def expected_attempts(rate: float, seconds: float, clients: Sequence[Clients]) -> float:
    """Return how many attempts are made if the server does not recover.

    Args:
        rate: Calls per second.
        seconds: How long they are made.
        clients: Who makes them.
    """
    whole = sum(each.share for each in clients)
    per_call = sum(each.share * _per_call(each, seconds) for each in clients) / whole
    return rate * seconds * per_call


def _per_call(clients: Clients, seconds: float) -> float:
    """Return a bound of the attempts of a call in some seconds."""
    policy = clients.policy
    if policy.budget is not None:
        return _WITH_BUDGET
    most = most_attempts(policy) or math.inf
    longest = seconds if policy.max_elapsed is None else policy.max_elapsed
    left, attempts = min(longest, seconds) - clients.timeout, 1
    while left > 0 and attempts < min(most, _MOST_PER_CALL):
        bounds = policy.schedule.bounds(attempts)
        left -= clients.timeout + (0.0 if bounds is None else bounds[0])
        attempts += 1
    return attempts


_WITH_BUDGET: Final = 2.0
_MOST_PER_CALL: Final = 10_000


def run_seconds(
    events: Events,
    recorder: Recorder,
    queue_length: Callable[[], int],
    watcher: Watcher,
    *,
    since: int | None = None,
) -> None:
    """Run a simulation second by second.

    Args:
        events: Its events.
        recorder: What counts them, for some seconds.
        queue_length: Returns the present length of the queue.
        watcher: Is told after each second.
        since: Stop as soon as attempts succeed again after this time, which is in
            nanoseconds; None if all seconds are wanted.
    """
    whole = recorder.end // SECOND
    for second in range(1, whole + 1):
        events.run(second * SECOND)
        recorder.end_second(queue_length())
        watcher.advance(second, whole)
        if since is not None and recorder.recovery(since, second) is not None:
            recorder.cut()
            return
    # Attempts that count may end later.
    while recorder.pending:
        events.run(events.now + SECOND)


def attach_simulation(error: BaseException, simulation: Simulation) -> None:
    """Attach what there is of a simulation to the exception that interrupts it."""
    vars(error)[_ATTRIBUTE] = simulation


@user_facing
def simulation_of(error: BaseException) -> Simulation | None:
    """Return what there is of the simulation that an exception has interrupted.

    >>> def interrupt(seconds, of):
    ...     if seconds == 120:
    ...         raise KeyboardInterrupt
    >>> from retrykit import Policy
    >>> from retrykit.simulate import simulate
    >>> try:
    ...     simulate(Policy(), load="25%", progress=interrupt)
    ... except KeyboardInterrupt as error:
    ...     print(simulation_of(error))
    interrupted after 2 min of 5 min 20 s: it has not recovered, 4.9 times its load

    Args:
        error: The `KeyboardInterrupt` that an ``except`` clause caught.

    Returns:
        The seconds that were over; None if there are none.

    Raises:
        ConfigError: *error* is not an exception.
    """
    check_instance("error", error, BaseException)
    found: Any = getattr(error, _ATTRIBUTE, None)
    return found if isinstance(found, Simulation) else None
