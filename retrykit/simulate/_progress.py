"""Progress of simulations: estimates, reports, and what an interruption leaves."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from retrykit._internal.durations import duration_in_words
from retrykit._internal.late_modules import logging
from retrykit._internal.validation import check_instance, invalid_setting, user_facing
from retrykit.simulate._events import SECOND, Events
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._results import Simulation

__all__ = ["Estimate", "Progress", "Watcher", "attach_simulation", "check_progress"]
__all__ += ["run_seconds", "simulation_of"]

Progress = Callable[[int, int], object]
"""Takes the number of seconds that have been simulated, and the number of all seconds.

`basin` counts simulations instead.
"""

_LONG: Final = 60.0
_ATTRIBUTE: Final = "retrykit_simulation"


class Estimate(NamedTuple):
    """The estimated work of a simulation.

    Attributes:
        attempts: Number of attempts.
        seconds: How long they take to simulate.
    """

    attempts: float
    seconds: float


class Watcher:
    """Reports the progress of a simulation, and warns if it will take a long time.

    Args:
        progress: Called with the number of seconds so far, and the number of all
            seconds; None if nobody listens.
        runs: Number of simulations that it watches, all about as long as the first; 0
            for no warning.
        name: The name of these simulations, in a warning.
    """

    def __init__(
        self,
        progress: Progress | None = None,
        runs: int = 1,
        name: str = "this simulation",
    ) -> None:
        self._progress, self._runs, self._name = progress, runs, name

    def expect(self, estimate: Callable[[], Estimate]) -> None:
        """Warn if the simulations may take more than a minute together.

        Only the first call checks that; later ones do nothing.

        Args:
            estimate: Returns the estimate of the first simulation.
        """
        runs, self._runs = self._runs, 0
        if not runs:
            return
        # Two digits, as it is an estimate.
        attempts, takes = (float(f"{each * runs:.2g}") for each in estimate())
        if takes > _LONG:
            self.warn(
                f"{self._name} may take {duration_in_words(takes)}, for about "
                f"{attempts:,.0f} attempts; with a shorter horizon, or a server of "
                "less capacity, it takes less"
            )

    def warn(self, text: str) -> None:
        """Log a warning about simulations that take a long time."""
        logging.getLogger("retrykit").warning("%s", text)

    def reach(self, time: int, recorder: Recorder) -> None:
        """Report that everything before a time, in nanoseconds, has been counted."""
        over, whole = time // SECOND, recorder.end // SECOND
        for second in range(recorder.over + 1, over + 1):
            recorder.over = second
            self.advance(second, whole)

    def advance(self, seconds: int, of: int) -> None:
        """Report the progress of the simulation.

        Args:
            seconds: Number of seconds that have been simulated.
            of: Number of all seconds.
        """
        if self._progress is not None:
            self._progress(seconds, of)


def check_progress(progress: object) -> Progress | None:
    """Return *progress* if it is None or a function."""
    if progress is not None and not callable(progress):
        rule = "a function of two numbers, or None"
        raise invalid_setting("progress", rule, progress)
    return progress


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
        recorder: Counts what happens, for a number of seconds.
        queue_length: Returns the present length of the queue.
        watcher: Is told after each second.
        since: A time in nanoseconds; the run ends as soon as attempts succeed again
            after it and nothing is left to do. None runs all seconds.
    """
    whole = recorder.end // SECOND
    for second in range(1, whole + 1):
        events.run(second * SECOND)
        recorder.end_second(queue_length())
        watcher.advance(second, whole)
        if since is None or not recorder.rests:
            continue
        # Nothing is left from which the load could rise again.
        if recorder.recovery(since, second) is not None:
            recorder.cut(second)
            return
    # Attempts that count may end later.
    while recorder.pending:
        events.run(events.now + SECOND)


def attach_simulation(error: BaseException, simulation: Simulation) -> None:
    """Attach the finished part of a simulation to the exception that interrupts it."""
    vars(error)[_ATTRIBUTE] = simulation


@user_facing
def simulation_of(error: BaseException) -> Simulation | None:
    """Return the finished part of the simulation that an exception has interrupted.

    >>> def interrupt(seconds, of):
    ...     if seconds == 120:
    ...         raise KeyboardInterrupt
    >>> from retrykit import Policy
    >>> from retrykit.simulate import simulate
    >>> try:
    ...     simulate(Policy(), load="25%", progress=interrupt)
    ... except KeyboardInterrupt as error:
    ...     print(simulation_of(error))
    interrupted after 2 min of 5 min 20 s: it has not recovered, 4.8 times its load

    Args:
        error: The `KeyboardInterrupt` that an ``except`` clause caught.

    Returns:
        The result of the seconds that were over; None if there are none, or if the
        exception interrupted no simulation.

    Raises:
        ConfigError: *error* is not an exception.
    """
    check_instance("error", error, BaseException)
    found: Any = getattr(error, _ATTRIBUTE, None)
    return found if isinstance(found, Simulation) else None
