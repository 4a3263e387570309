"""Schedules of a user's own that do not behave."""

from retrykit import Policy
from retrykit.schedules import Schedule


class Odd(Schedule):
    """One that raises when it is looked at."""

    def __init__(self, error):
        self.error = error

    def delay(self, _retry, _previous, _random, /):
        raise self.error

    def bounds(self, _retry, /):
        raise self.error


class Negative(Schedule):
    """One whose delays are no delays."""

    def delay(self, _retry, _previous, _random, /):
        return -1.0

    def bounds(self, _retry, /):
        return -1.0, -1.0


def __getattr__(name):
    if name == "lazy":
        raise ValueError("not\nready")
    raise AttributeError(name)


RAISING = Odd(ZeroDivisionError("division by zero"))
STOPPED = Odd(KeyboardInterrupt())
POLICY = Policy(schedule=RAISING)
NEGATIVE = Negative()
