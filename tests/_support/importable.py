"""What the tests send to other processes, which import this module by its name."""

import asyncio
import functools
import inspect
from dataclasses import dataclass

from retrykit import Policy, aretry, current_state, retry, with_policy
from retrykit.testing import virtual_time

POLICY = Policy(schedule=[1, 2], on=OSError)


class RefusedError(OSError):
    """An error with a mind of its own: arguments, attributes, no message."""

    def __init__(self, host, port):
        super().__init__(host, port)
        self.port = port


def at_last(*facts):
    """Fail until the third attempt, then give the facts back; or fail for ever."""
    if current_state().attempt < 3 or "never" in facts:
        raise RefusedError("localhost", current_state().attempt)
    return facts


def plain(key):
    return at_last(key)


@retry(POLICY)
def fetch(key):
    return at_last(key)


@retry(POLICY)
async def afetch(key):
    return at_last(key)


async def later(key):
    return at_last(key)


def started(key):
    return asyncio.ensure_future(later(key))


@aretry(POLICY)
def task(key):
    return started(key)


@retry(POLICY)
@functools.lru_cache
def cached(key):
    return at_last(key)


@functools.lru_cache
@retry(POLICY)
def cached_above(key):
    return at_last(key)


@retry(POLICY)
@functools.singledispatch
def described(key):
    return at_last(key)


@dataclass(unsafe_hash=True)
class Client:
    """Something with methods, equal to its copies."""

    host: str = "localhost"

    @retry(POLICY)
    def get(self, key):
        return at_last(self, key)

    @retry(POLICY)
    async def aget(self, key):
        return at_last(self, key)

    @retry(POLICY)
    @classmethod
    def made(cls, key):
        return at_last(cls, key)

    @classmethod
    @retry(POLICY)
    def also_made(cls, key):
        return at_last(cls, key)

    @retry(POLICY)
    @staticmethod
    def given(key):
        return at_last(key)

    @staticmethod
    @retry(POLICY)
    def also_given(key):
        return at_last(key)

    @retry(POLICY)
    @functools.lru_cache  # noqa: B019  the tests clear it
    def cached(self, key):
        return at_last(self, key)

    quick = with_policy(get, schedule=[7, 7])

    def plain(self, key):
        return at_last(self, key)

    def __call__(self, key):
        return at_last(self, key)


class Holder:
    """An object that decorates a method of its own when it is made."""

    def __init__(self):
        self.get = retry(POLICY)(self.plain)
        self.quick = with_policy(self.get, schedule=[7])

    def plain(self):
        return self


CLIENT = Client("example")
partial = retry(POLICY)(functools.partial(plain, "a"))
partial_of_it = functools.partial(fetch, "a")
partial_task = aretry(POLICY)(functools.partial(started, "a"))
bound_later = retry(POLICY)(CLIENT.plain)
callable_object = retry(POLICY)(CLIENT)
builtin = retry(POLICY)(len)

# Under another policy or name than what is found by their own.
quick = with_policy(fetch, schedule=[7, 7])
quick_method = with_policy(CLIENT.get, schedule=[7, 7])
quick_classmethod = with_policy(Client.made, schedule=[7, 7])
quick_object = with_policy(callable_object, schedule=[7, 7])
quick_partial = with_policy(partial, schedule=[7, 7])
renamed = retry(POLICY)(plain)


def called(fn, *args):
    """Call, and tell what it came to, and the delays; in whatever process this is."""
    cached.cache_clear()
    cached_above.cache_clear()
    Client.cached.cache_clear()
    with virtual_time() as clock:
        try:
            return asyncio.run(awaited(fn, args)), clock.sleeps
        except RefusedError as error:
            return error.port, clock.sleeps


async def awaited(fn, args):
    result = fn(*args)
    return await result if inspect.isawaitable(result) else result


def give_up(raises):
    """Give up after three attempts, with the error that the policy wants."""

    def fail():
        raise RefusedError("localhost", current_state().attempt)

    with virtual_time():
        POLICY.replace(raises=raises, name="fetch").call(fail)
