"""Functions whose sends take a given virtual time, in each form of hedging."""

import asyncio
from threading import Lock

from retrykit import aretry, retry
from tests._support import required
from tests._support.optional_trio import trio

__all__ = ["FORMS", "Form"]

FORMS = ["threads", "asyncio", "trio", "virtual loop"]

# Where there is no trio, no task of it is cancelled.
CANCELLED = (
    asyncio.CancelledError,
    *([trio.Cancelled] if required.installed("trio") else []),
)


class Form:
    """A form of hedged calls: in threads, or in tasks of an event loop.

    Attributes:
        sent: The virtual times at which the sends began.
        cancelled: The numbers of the sends that were cancelled, from 1.
    """

    def __init__(self, name, clock):
        if name == "threads":
            required.skip_without("threads")
        self.name, self.clock = name, clock
        self.sent, self.cancelled = [], []
        self._lock = Lock()

    @property
    def in_tasks(self):
        return self.name != "threads"

    def function(self, *script):
        """Return a function whose n-th send takes seconds and has an outcome.

        An outcome is a result, an error to raise, or a function of no arguments.
        """

        def begin():
            with self._lock:
                self.sent.append(self.clock.now())
                return len(self.sent)

        def end(outcome):
            if callable(outcome) and not isinstance(outcome, type):
                outcome = outcome()
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        def send():
            number = begin()
            seconds, outcome = script[number - 1]
            self.clock.sleep(seconds)
            return end(outcome)

        async def asend():
            number = begin()
            seconds, outcome = script[number - 1]
            try:
                await self.clock.asleep(seconds)
            except tuple(CANCELLED):
                self.cancelled.append(number)
                raise
            return end(outcome)

        return asend if self.in_tasks else send

    def decorate(self, hedge, fn, **settings):
        """Return a function with retries, without arguments; none is awaited."""
        decorator = aretry if self.in_tasks else retry
        return self.blocking(decorator(hedge=hedge, **settings)(fn))

    def blocking(self, fn):
        """Return a function that runs an async one, in an event loop of this form."""
        if not self.in_tasks:
            return fn

        def call():
            if self.name == "trio":
                return trio.run(fn)
            factory = None
            if self.name == "virtual loop":
                factory = self.clock.new_event_loop
            with asyncio.Runner(loop_factory=factory) as runner:
                return runner.run(fn())

        return call

    def call(self, hedge, *script, **settings):
        """Make a call, and return its result."""
        return self.decorate(hedge, self.function(*script), **settings)()
