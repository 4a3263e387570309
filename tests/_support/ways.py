"""How a function is coloured, decorated and run: for tests of what can be called."""

import asyncio

import trio
import wrapt

from retrykit import Policy, aretry, retry

POLICY = Policy(schedule=[1, 2], on=OSError)


def failing_twice(seen):
    """A function that notes how it is called, and fails the first two times."""

    def fetch(*args, **kwargs):
        seen.append((args, kwargs))
        if len(seen) < 3:
            raise OSError(len(seen))
        return "value"

    return fetch


def itself(fn):
    return fn


def awaited(fn):
    async def fetch(*args, **kwargs):
        return fn(*args, **kwargs)

    return fetch


def called(fn):
    return fn()


def under_asyncio(fn):
    return asyncio.run(fn())


WAYS = {
    "blocking": (itself, retry(POLICY), called),
    "asyncio": (awaited, retry(POLICY), under_asyncio),
    "asyncio, aretry": (awaited, aretry(POLICY), under_asyncio),
    "trio": (awaited, retry(POLICY), trio.run),
}
"""How a function is coloured, how it is decorated, and how the result is run."""

HIDDEN_WAYS = {
    "blocking": (itself, retry(POLICY), called),
    "asyncio, aretry": (awaited, aretry(POLICY), under_asyncio),
    "trio, aretry": (awaited, aretry(POLICY), trio.run),
}
"""Those in which a callable need not show that what it returns is awaited."""


@wrapt.decorator
def passing(wrapped, _instance, args, kwargs):
    """A decorator of wrapt's that does nothing but call."""
    return wrapped(*args, **kwargs)
