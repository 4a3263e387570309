"""A client as a user writes it, to be shown and checked."""

from retrykit import Policy, retry
from retrykit.schedules import exponential

POLITE = Policy(schedule=exponential(1).cap("10s").full_jitter(), on=ConnectionError)
DELAYS = exponential(0.1).take(3)


@retry(POLITE)
def order():
    """Never called."""


@retry(max_attempts=None)
def pay():
    """Never called."""
