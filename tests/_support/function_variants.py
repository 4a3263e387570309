"""Sync and async variants of a function, with their decorator and runner."""

import asyncio

import wrapt

from retrykit import Policy, aretry, retry
from tests._support.optional_trio import trio

POLICY = Policy(schedule=[1, 2], on=OSError)


def fails_twice(seen):
    """Return a function that records its arguments, and fails twice."""

    def fetch(*args, **kwargs):
        seen.append((args, kwargs))
        if len(seen) < 3:
            raise OSError(len(seen))
        return "value"

    return fetch


def as_is(fn):
    return fn


def as_coroutine_function(fn):
    async def fetch(*args, **kwargs):
        return fn(*args, **kwargs)

    return fetch


def call(fn):
    return fn()


def under_asyncio(fn):
    return asyncio.run(fn())


VARIANTS = {
    "blocking": (as_is, retry(POLICY), call),
    "asyncio": (as_coroutine_function, retry(POLICY), under_asyncio),
    "asyncio, aretry": (as_coroutine_function, aretry(POLICY), under_asyncio),
    "trio": (as_coroutine_function, retry(POLICY), trio.run),
}
"""By name: makes the function, decorates it, and runs the result."""

UNDETECTED_VARIANTS = {
    "blocking": (as_is, retry(POLICY), call),
    "asyncio, aretry": (as_coroutine_function, aretry(POLICY), under_asyncio),
    "trio, aretry": (as_coroutine_function, aretry(POLICY), trio.run),
}
"""The variants that work even if a callable does not look like a coroutine function."""


@wrapt.decorator
def passthrough(wrapped, _instance, args, kwargs):
    """A wrapt decorator that only calls the function."""
    return wrapped(*args, **kwargs)
