"""Invalid hooks of tenacity and backoff, by the message of their error."""

import asyncio

from retrykit.integrations import backoff, tenacity

__all__ = ["ERRORS"]

STATE = "a function that takes the RetryCallState"
LIMIT = "a finite number >= 0"
DETAILS = "a function that takes the details"


def no_argument():
    """Take nothing."""


ERRORS = {
    f"hook must be {STATE}, got None": lambda: tenacity.before(None),
    f"hook must be {STATE}, got 1": lambda: tenacity.after(1),
    f"hook must be {STATE}, and nothing else, got {no_argument!r}": (
        lambda: tenacity.before_sleep(no_argument)
    ),
    f"callback must be {STATE}, got 3": lambda: tenacity.retry_error_callback(3),
    f"function must be {STATE}, got 1.5": lambda: tenacity.wait(1.5),
    f"stop must be {STATE}, got 3": lambda: tenacity.wait(print, stop=3),
    f"after must be {STATE}, got 3": lambda: tenacity.wait(print, after=3),
    f"after must be {STATE}, got 4": lambda: tenacity.stop(print, after=4),
    f"function must be a sync function that takes the RetryCallState, even under "
    f"aretry, got {asyncio.sleep!r}": lambda: tenacity.wait(asyncio.sleep),
    f"function must be {STATE}, got None": lambda: tenacity.stop(None),
    f"predicate must be {STATE}, got {OSError!r}": (
        lambda: tenacity.retry_on_error(OSError)
    ),
    f"predicate must be {STATE}, got None": lambda: tenacity.retry_on_result(None),
    f"kind must be a class that takes the last attempt, got {no_argument!r}": (
        lambda: tenacity.retry_error_cls(no_argument)
    ),
    "stops must be one of the parameters of tenacity's Retrying, got 3; after, before, "
    "before_sleep, enabled, name, reraise, retry, retry_error_callback, "
    "retry_error_cls, sleep, stop, wait": lambda: tenacity.policy(stops=3),
    f"limit must be {LIMIT}, got -1": lambda: tenacity.stop_after_delay(-1, [1]),
    f"limit must be {LIMIT}, got -2": lambda: tenacity.stop_before_delay(-2, [1]),
    "handlers must be at least one function, got ()": backoff.on_backoff,
    f"handlers[1] must be {DETAILS}, got None": lambda: backoff.on_giveup(print, None),
    f"handlers[0] must be {DETAILS}, got 7": lambda: backoff.on_success(7),
    "function must be a function that takes the result, got None": (
        lambda: backoff.predicate(None)
    ),
    f"on_success[0] must be {DETAILS}, got 3": lambda: backoff.predicate(print, 3),
    "function must be a function that takes the error, got None": (
        lambda: backoff.giveup(None)
    ),
    "exception must be an Exception type, since no other is ever retried, got "
    f"{KeyboardInterrupt!r}; write Exception, or narrower": (
        lambda: backoff.giveup(print, KeyboardInterrupt)
    ),
    f"exception must be an Exception type, or a tuple of them, got {print!r}": (
        lambda: backoff.giveup(print, print)
    ),
    "jitter must be a function that takes the delay, got 3": (
        lambda: backoff.wait([1], jitter=3)
    ),
    f"max_time must be {LIMIT}, got -1": lambda: backoff.wait([1], max_time=-1),
    "function must be a generator function, got 3": lambda: backoff.wait_gen(3),
    "jitter must be a function that takes the delay, got 4": (
        lambda: backoff.wait_gen(print, jitter=4)
    ),
    f"max_time must be {LIMIT}, got -2": lambda: backoff.wait_gen(print, max_time=-2),
}
