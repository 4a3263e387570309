"""Decorated callables that tests pickle for other processes."""

import asyncio
import functools
import inspect
from dataclasses import dataclass

from retrykit import Policy, aretry, current_state, retry, with_policy
from retrykit.testing import virtual_time

POLICY = Policy(schedule=[1, 2], on=OSError)


class TwoArgumentError(OSError):
    """An error with several arguments and an attribute, without a message."""

    def __init__(self, host, port):
        super().__init__(host, port)
        self.port = port


def fail_twice(*arguments):
    """Fail twice, then return the arguments; fail forever if "never" is among them."""
    if current_state().attempt < 3 or "never" in arguments:
        raise TwoArgumentError("localhost", current_state().attempt)
    return arguments


def plain(key):
    return fail_twice(key)


@retry(POLICY)
def fetch(key):
    return fail_twice(key)


@retry(POLICY)
async def afetch(key):
    return fail_twice(key)


async def later(key):
    return fail_twice(key)


def started(key):
    return asyncio.ensure_future(later(key))


@aretry(POLICY)
def task(key):
    return started(key)


@retry(POLICY)
@functools.lru_cache
def cached(key):
    return fail_twice(key)


@functools.lru_cache
@retry(POLICY)
def cached_above(key):
    return fail_twice(key)


@retry(POLICY)
@functools.singledispatch
def described(key):
    return fail_twice(key)


@dataclass(unsafe_hash=True)
class Client:
    """Something with methods, equal to its copies."""

    host: str = "localhost"

    @retry(POLICY)
    def get(self, key):
        return fail_twice(self, key)

    @retry(POLICY)
    async def aget(self, key):
        return fail_twice(self, key)

    @retry(POLICY)
    @classmethod
    def made(cls, key):
        return fail_twice(cls, key)

    @classmethod
    @retry(POLICY)
    def also_made(cls, key):
        return fail_twice(cls, key)

    @retry(POLICY)
    @staticmethod
    def given(key):
        return fail_twice(key)

    @staticmethod
    @retry(POLICY)
    def also_given(key):
        return fail_twice(key)

    @retry(POLICY)
    @functools.lru_cache  # noqa: B019  tests clear it
    def cached(self, key):
        return fail_twice(self, key)

    quick = with_policy(get, schedule=[7, 7])

    def plain(self, key):
        return fail_twice(self, key)

    def __call__(self, key):
        return fail_twice(self, key)


class Holder:
    """An object that decorates its own bound method."""

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

# Under another policy or name than the object of their own qualified name.
quick = with_policy(fetch, schedule=[7, 7])
quick_method = with_policy(CLIENT.get, schedule=[7, 7])
quick_classmethod = with_policy(Client.made, schedule=[7, 7])
quick_object = with_policy(callable_object, schedule=[7, 7])
quick_partial = with_policy(partial, schedule=[7, 7])
renamed = retry(POLICY)(plain)


def call_with_delays(fn, *args):
    """Return the result of a call, or the attempts that failed, and its delays."""
    cached.cache_clear()
    cached_above.cache_clear()
    Client.cached.cache_clear()
    with virtual_time() as clock:
        try:
            return asyncio.run(awaited(fn, args)), clock.sleeps
        except TwoArgumentError as error:
            return error.port, clock.sleeps


async def awaited(fn, args):
    result = fn(*args)
    return await result if inspect.isawaitable(result) else result


def give_up(raises):
    """Give up after three attempts, with the form of error that *raises* names."""

    def fail():
        raise TwoArgumentError("localhost", current_state().attempt)

    with virtual_time():
        POLICY.replace(raises=raises, name="fetch").call(fail)
