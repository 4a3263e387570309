"""Limits that give scripted answers, and the ways to make a call under a policy."""

import asyncio

from retrykit import aretrying, retrying
from retrykit.limits import Lease, Limit, Refusal
from tests._support.optional_trio import trio

__all__ = ["FORMS", "NotedLease", "Script", "failing", "in_async_block", "in_block"]
__all__ += ["in_coroutine", "in_function", "in_trio", "refusal"]


class NotedLease(Lease):
    """A lease that notes what is reported."""

    generation = 0

    def __init__(self, limit, delay):
        self.limit, self.delay = limit, delay

    def succeeded(self):
        self.limit.note("succeeded")

    def failed(self, error=None):
        self.limit.note(f"failed {type(error).__name__}")

    def ignored(self):
        self.limit.note("ignored")


class Script(Limit):
    """A limit that gives answers of a list: a delay, a refusal, or an error."""

    state = "scripted"

    def __init__(self, *answers, name="", notes=None, default=0.0):
        self.answers, self.name = list(answers), name
        self.notes = [] if notes is None else notes
        self.default = default

    def note(self, text):
        self.notes.append(f"{self.name} {text}".strip())

    def acquire(self):
        self.note("asked")
        answer = self.answers.pop(0) if self.answers else self.default
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Refusal) else NotedLease(self, answer)


def refusal(retry_in=None):
    return Refusal("busy", retry_in)


def failing(times, error=OSError):
    """Return a function that fails so many times, and how often it was called."""
    calls = []

    def fetch():
        calls.append(None)
        if len(calls) <= times:
            raise error(len(calls))
        return "fetched"

    return fetch, calls


def in_function(policy, fn):
    return policy.call(fn)


def in_coroutine(policy, fn):
    async def attempt():
        await asyncio.sleep(0)
        return fn()

    return asyncio.run(policy.acall(attempt))


def in_trio(policy, fn):
    async def attempt():
        await trio.lowlevel.checkpoint()
        return fn()

    return trio.run(policy.acall, attempt)


def in_block(policy, fn):
    for attempt in retrying(policy):
        with attempt:
            return fn()
    return None


def in_async_block(policy, fn):
    async def call():
        async for attempt in aretrying(policy):
            with attempt:
                return fn()
        return None

    return asyncio.run(call())


FORMS = [in_function, in_coroutine, in_trio, in_block, in_async_block]
"""Ways to make a call under a policy."""
